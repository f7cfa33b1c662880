"""Parquet tables: read as a stream, and single image cells by their location (`pets.parquet#image[17]`).

Tables made with HuggingFace hold images as {bytes, path}. Their bytes stay in the table: an example carries the
location of its cell, which another process can read as well.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from cachetools import LRUCache

from sources.errors import DatasetError, Unreadable
from sources.location import fingerprint, open_binary, reason_of

BATCH_BYTES = 32 * 2**20  # of one batch of a stream, about
MAX_BATCH_ROWS = 4096
CACHED_ROW_GROUPS = 2

_row_groups: LRUCache[tuple[Any, ...], Any] = LRUCache(CACHED_ROW_GROUPS)
_lock = threading.Lock()


def cell_location(table: str, column: str, row: int) -> str:
    return f"{table}#{column}[{row}]"


def cell_of(location: str) -> tuple[str, str, int] | None:
    """Table, column and row of a cell's location; None for any other location."""
    table, _, cell = location.rpartition("#")
    found = re.fullmatch(r"([^\[\]]+)\[(\d{1,18})\]", cell)
    if found is None or not any(_is_parquet(part) for part in table.split("::")):
        return None
    return table, found.group(1), int(found.group(2))


def _is_parquet(part: str) -> bool:
    return part.partition("?")[0].lower().endswith(".parquet")


def columns_and_rows(table: str) -> tuple[list[str], int]:
    with open_binary(table) as stream:
        file = _parquet_file(stream)
        return list(file.schema_arrow.names), file.metadata.num_rows


def iter_rows(table: str) -> Iterator[dict[str, Any]]:
    with open_binary(table) as stream:
        file = _parquet_file(stream)
        heaviest = max((_bytes_per_row(file, group) for group in range(file.num_row_groups)), default=1)
        batch_rows = max(1, min(MAX_BATCH_ROWS, BATCH_BYTES // max(heaviest, 1)))
        try:
            for batch in file.iter_batches(batch_size=batch_rows):
                yield from batch.to_pylist()
        except Exception as error:  # a damaged page can surface as any of Arrow's exceptions
            raise Unreadable(reason_of(error)) from None


def read_cell(table: str, column: str, row: int, options: Mapping[str, Any]) -> bytes:
    """The image bytes of one cell. The row groups read last are kept: in order, each is read once."""
    try:
        first, values = _row_group_of(table, column, row, options)
    except (Unreadable, DatasetError):
        raise
    except Exception as error:  # Arrow's exceptions for a damaged page, a missing column, a file that is gone
        raise Unreadable(reason_of(error)) from None
    value = values[row - first].as_py()
    content = value.get("bytes") if isinstance(value, dict) else value
    if not isinstance(content, bytes):
        raise Unreadable(f"row {row} holds no image")
    return content


def _row_group_of(table: str, column: str, row: int, options: Mapping[str, Any]) -> tuple[int, Any]:
    with _lock, open_binary(table, options) as stream:
        file = _parquet_file(stream)
        first = 0
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if row < first + rows:
                break
            first += rows
        else:
            raise Unreadable(f"has no row {row}")
        key = (table, column, group, fingerprint(table, options))
        if key not in _row_groups:
            _row_groups[key] = file.read_row_group(group, columns=[column]).column(0)
        return first, _row_groups[key]


def _parquet_file(stream: Any) -> Any:
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(stream)
    except Exception as error:  # Arrow raises several kinds for a file that is not Parquet
        raise Unreadable(reason_of(error)) from None


def _bytes_per_row(file: Any, group: int) -> int:
    row_group = file.metadata.row_group(group)
    return int(row_group.total_byte_size // max(row_group.num_rows, 1))
