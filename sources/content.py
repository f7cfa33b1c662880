"""The bytes of one image, whether it is a file, behind a URL or a cell of a Parquet table."""

from __future__ import annotations

from sources.errors import Unreadable
from sources.location import open_binary, reason_of
from sources.parquet import cell_of, read_cell
from sources.private_hosts import options_for_rows

MAX_FILE_BYTES = 256 * 2**20  # no picture worth looking at is larger; a hostile one must not fill the memory


def read_bytes(location: str, home: str | None = None) -> bytes:
    """Raises Unreadable. Safe to call from several threads. `home`, the host of the data set, need not be public."""
    options = options_for_rows(home)
    cell = cell_of(location)
    if cell is not None:
        return read_cell(*cell, options)
    with open_binary(location, options) as file:
        try:
            content = file.read(MAX_FILE_BYTES + 1)
        except Exception as error:  # file systems raise what they like
            raise Unreadable(reason_of(error)) from None
    if len(content) > MAX_FILE_BYTES:
        raise Unreadable(f"larger than {MAX_FILE_BYTES // 2**20} MB")
    return content
