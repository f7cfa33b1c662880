"""CSV, JSONL and Parquet tables, read as a stream of records; what is wrong with one record is said in it."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from sources.errors import DatasetError, Unreadable
from sources.location import file_name, open_binary, reason_of, shown
from sources.parquet import columns_and_rows, iter_rows

SUFFIXES = (".csv", ".jsonl", ".parquet")
MAX_CELL_CHARACTERS = 2**28  # of a line, too: a hostile one of an archive must not fill the memory


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
    """The suffix decides the format. Raises DatasetError where the file as a whole cannot be read.

    No file stays open: the records open it when the first is asked for, and close it after the last."""
    name = file_name(location).lower()
    try:
        if name.endswith(".parquet"):
            columns, total = columns_and_rows(location)
            return Table(tuple(columns), total, _naming_failures(_parquet_records(location), location))
        if name.endswith(".jsonl"):
            return Table(None, None, _naming_failures(_jsonl_records(location), location))
        header = _csv_header(location)
    except Unreadable as problem:
        raise DatasetError(f"{shown(location)} cannot be read: {problem}; check the file and its path") from None
    return Table(header, None, _naming_failures(_csv_records(location, header), location))


def _naming_failures(records: Iterator[Record], location: str) -> Iterator[Record]:
    try:
        yield from records
    except (OSError, Unreadable) as error:
        raise DatasetError(f"{shown(location)} cannot be read to its end: {reason_of(error)}; write it again") from None


def _parquet_records(location: str) -> Iterator[Record]:
    for row, cells in enumerate(iter_rows(location), 1):
        yield Record(row, cells)


def _csv_header(location: str) -> tuple[str, ...]:
    rows = _csv_rows(location)
    header = tuple(name.strip() for name in next(rows, ()))
    rows.close()
    if not header:
        raise DatasetError(f"{shown(location)} is empty: its first line must name the columns")
    twice = next((name for name, times in Counter(header).items() if times > 1), None)
    if twice is not None:
        raise DatasetError(f"{shown(location)} has the column {twice!r} twice: rename one")
    return header


def _csv_records(location: str, header: tuple[str, ...]) -> Iterator[Record]:
    for row, values in enumerate(_csv_rows(location)):
        if row > 0:
            cells = dict(zip(header, values, strict=False))
            yield Record(row, cells, _problem_of_csv_row(values, len(header)))


def _csv_rows(location: str) -> Generator[list[str], None, None]:
    csv.field_size_limit(MAX_CELL_CHARACTERS)  # long texts are fine; the default ends at 128 kB
    with open_binary(location) as stream, io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="") as text:
        if stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise DatasetError(f"{shown(location)} is UTF-16: save it as UTF-8")
        stream.seek(0)
        # Strict, because a quote that is never closed would otherwise swallow the rest of the table without a word.
        reader = csv.reader(_lines(text, location), strict=True)
        try:
            yield from (row for row in reader if row)
        except csv.Error as error:
            where = f"line {reader.line_num} of {shown(location)}"
            raise DatasetError(f"{where} is not CSV ({error}): write a quote inside a quoted cell twice") from None


def _problem_of_csv_row(values: list[str], columns: int) -> str | None:
    if len(values) != columns:
        return f"has {len(values)} cells where the header has {columns}"
    if any(not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value) for value in values):
        return "is not UTF-8"
    return None


def _jsonl_records(location: str) -> Iterator[Record]:
    with open_binary(location) as stream, io.TextIOWrapper(stream, "utf-8", "surrogateescape", newline="\n") as text:
        lines = (line.encode("utf-8", "surrogateescape") for line in _lines(text, location) if line.strip())
        for row, line in enumerate(lines, 1):
            yield _json_record(row, line.removeprefix(codecs.BOM_UTF8) if row == 1 else line)


def _lines(text: io.TextIOWrapper, location: str) -> Iterator[str]:
    for number in itertools.count(1):
        line = text.readline(MAX_CELL_CHARACTERS + 1)
        if len(line) > MAX_CELL_CHARACTERS:
            longest = f"{MAX_CELL_CHARACTERS:,} characters"
            raise DatasetError(f"line {number} of {shown(location)} has more than {longest}: write shorter ones")
        if not line:
            return
        yield line


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
