"""Parquet and Arrow tables: read as a stream, and single image cells by their location (`pets.parquet#image[17]`).

Tables made with HuggingFace hold images as {bytes, path}. Their bytes stay in the table: an example carries the
location of its cell, which another process can read as well.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from cachetools import LRUCache

from twothirds.sources.errors import DatasetError, Unreadable
from twothirds.sources.files.location import file_name, fingerprint, is_url, open_binary, reason_of

BATCH_BYTES = 32 * 2**20  # of one batch of a stream, about
MAX_BATCH_ROWS = 4096
CACHED_ROW_GROUPS = 2
ARROW = ".arrow"
ARROW_ROWS = 64  # that become Python objects at a time

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
    return part.partition("?")[0].lower().endswith((".parquet", ARROW))


def columns_and_rows(table: str) -> tuple[list[str], int]:
    with _opened(table) as stream:
        if _is_arrow(table):
            batches = _batches(stream)
            return list(batches.schema.names), sum(batch.num_rows for batch in batches)
        file = _parquet_file(stream)
        return list(file.schema_arrow.names), file.metadata.num_rows


def iter_rows(table: str) -> Iterator[dict[str, Any]]:
    if _is_arrow(table):
        yield from _arrow_rows(table)
        return
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
    with _lock, _opened(table, options) as stream:
        if _is_arrow(table):
            key: tuple[Any, ...] = (table, column, fingerprint(table, options))
            if key not in _row_groups:  # of a file on this machine this is a map of it, not a copy
                _row_groups[key] = _batches(stream).read_all().column(column)
            return 0, _row_groups[key]
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


def _is_arrow(table: str) -> bool:
    return file_name(table).lower().endswith(ARROW)


def _batches(stream: Any) -> Any:
    """Of a file in Arrow's streaming format, which HuggingFace writes, or in its file format."""
    import pyarrow.ipc

    try:
        if stream.read(6) == b"ARROW1":
            file = pyarrow.ipc.open_file(stream)
            return pyarrow.RecordBatchReader.from_batches(
                file.schema, (file.get_batch(number) for number in range(file.num_record_batches))
            )
        stream.seek(0)
        return pyarrow.ipc.open_stream(stream)
    except Exception as error:  # Arrow raises several kinds for a file that is not Arrow
        raise Unreadable(reason_of(error)) from None


def _opened(table: str, options: Mapping[str, Any] | None = None) -> Any:
    """Arrow files on this machine are mapped into memory: what is not looked at is not read."""
    if not _is_arrow(table) or is_url(table):
        return open_binary(table, options)
    import pyarrow

    try:
        return pyarrow.memory_map(table)
    except OSError as error:
        raise Unreadable(reason_of(error)) from None


def _arrow_rows(table: str) -> Iterator[dict[str, Any]]:
    with _opened(table) as stream:
        try:
            for batch in _batches(stream):
                for start in range(0, batch.num_rows, ARROW_ROWS):
                    yield from batch.slice(start, ARROW_ROWS).to_pylist()
        except Unreadable:
            raise
        except Exception as error:  # a damaged batch can surface as any of Arrow's exceptions
            raise Unreadable(reason_of(error)) from None


def _parquet_file(stream: Any) -> Any:
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(stream)
    except Exception as error:  # Arrow raises several kinds for a file that is not Parquet
        raise Unreadable(reason_of(error)) from None


def _bytes_per_row(file: Any, group: int) -> int:
    row_group = file.metadata.row_group(group)
    return int(row_group.total_byte_size // max(row_group.num_rows, 1))
