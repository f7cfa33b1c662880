"""CSV, JSONL and Parquet tables, read as a stream of records; what is wrong with one record is said in it."""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from sources.errors import DatasetError, Unreadable
from sources.location import file_name, open_binary, reason_of, shown

SUFFIXES = (".csv", ".jsonl", ".parquet")
MAX_CELL_CHARACTERS = 2**28


@dataclass(frozen=True, slots=True)
class Record:
    row: int  # counted from 1
    cells: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[str, ...] | None  # None where each record has its own
    total: int | None  # None where only reading to the end tells
    records: Iterator[Record]


def is_table(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def open_table(location: str) -> Table:
    """The suffix decides the format. Raises DatasetError where the file as a whole cannot be read."""
    name = file_name(location).lower()
    try:
        if name.endswith(".parquet"):
            return _open_parquet(location)
        stream = open_binary(location)
    except Unreadable as problem:
        raise DatasetError(f"{shown(location)} cannot be read: {problem}; check the file and its path") from None
    table = _open_jsonl(stream) if name.endswith(".jsonl") else _open_csv(stream, location)
    return Table(table.columns, table.total, _naming_failures(table.records, location))


def _naming_failures(records: Iterator[Record], location: str) -> Iterator[Record]:
    try:
        yield from records
    except OSError as error:
        raise DatasetError(f"{shown(location)} cannot be read to its end: {reason_of(error)}; try again") from None


def _open_parquet(location: str) -> Table:
    from sources.parquet import columns_and_rows, iter_rows

    columns, total = columns_and_rows(location)

    def records() -> Iterator[Record]:
        try:
            for row, cells in enumerate(iter_rows(location), 1):
                yield Record(row, cells)
        except Unreadable as problem:
            raise DatasetError(f"{shown(location)} is damaged: {problem}; write it again") from None

    return Table(tuple(columns), total, records())


def _open_csv(stream: IO[bytes], location: str) -> Table:
    csv.field_size_limit(MAX_CELL_CHARACTERS)  # long texts are fine; the default ends at 128 kB
    _refuse_utf16(stream, location)
    # Strict, because a quote that is never closed would otherwise swallow the rest of the table without a word.
    reader = csv.reader(io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline=""), strict=True)
    records = _csv_rows(reader, location)
    header = next(records, None)
    if header is None:
        stream.close()
        raise DatasetError(f"{shown(location)} is empty: its first line must name the columns")
    columns = tuple(name.strip() for name in header)
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        stream.close()
        raise DatasetError(f"{shown(location)} has the column {twice!r} twice: rename one")

    def cells() -> Iterator[Record]:
        with stream:
            for row, values in enumerate(records, 1):
                yield Record(row, dict(zip(columns, values, strict=False)), _problem_of_csv_row(values, len(columns)))

    return Table(columns, None, cells())


def _csv_rows(reader: Any, location: str) -> Iterator[list[str]]:
    try:
        yield from (row for row in reader if row)
    except csv.Error as error:
        where = f"line {reader.line_num} of {shown(location)}"
        raise DatasetError(f"{where} is not CSV ({error}): write a quote inside a quoted cell twice") from None


def _refuse_utf16(stream: IO[bytes], location: str) -> None:
    start = stream.read(2)
    stream.seek(0)
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        stream.close()
        raise DatasetError(f"{shown(location)} is UTF-16: save it as UTF-8")


def _problem_of_csv_row(values: list[str], columns: int) -> str | None:
    if len(values) != columns:
        return f"has {len(values)} cells where the header has {columns}"
    if any(not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value) for value in values):
        return "is not UTF-8"
    return None


def _open_jsonl(stream: IO[bytes]) -> Table:
    def records() -> Iterator[Record]:
        with stream:
            lines = (line for line in stream if line.strip())
            for row, line in enumerate(lines, 1):
                yield _json_record(row, line.removeprefix(codecs.BOM_UTF8) if row == 1 else line)

    return Table(None, None, records())


def _json_record(row: int, line: bytes) -> Record:
    try:
        cells = json.loads(line)
    except UnicodeDecodeError:
        return Record(row, problem="is not UTF-8")
    except (ValueError, RecursionError):
        return Record(row, problem="is not JSON")
    if not isinstance(cells, dict):
        return Record(row, problem="is not a JSON object")
    return Record(row, cells)
