"""Tables, read as a stream of records.

A problem with a record is kept in it; only a table that cannot be read as a whole raises DatasetError."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import Any

from twothirds.sources.errors import DatasetError, Unreadable
from twothirds.sources.files.location import file_name, reason_of
from twothirds.sources.printable import quoted
from twothirds.sources.tables.delimited import MAX_CELL_CHARACTERS, csv_header, csv_rows, form_of, lines_of
from twothirds.sources.tables.encoding import WINDOWS, encoding_of, is_damaged, open_text, remark_on
from twothirds.sources.tables.parquet import columns_and_rows, iter_rows

CHUNK = 2**16  # characters of a list that are read at a time
BETWEEN = " \t\r\n"
_DECODER = json.JSONDecoder()

Value = tuple[Any, str | None]  # the value, or why there is none


def json_values(location: str, encoding: str, *, lines: bool) -> Iterator[Value]:
    with open_text(location, encoding, newline="\n") as text:
        if lines:
            yield from (_value_of(line) for line in lines_of(text, location) if line.strip())
        else:
            yield from _values_of_list(text, location)


def _value_of(line: str) -> Value:
    if is_damaged(line):
        return None, "is not UTF-8"
    try:
        return json.loads(line), None
    except (ValueError, RecursionError):
        return None, "is not JSON"


def _values_of_list(text: TextIOWrapper, location: str) -> Iterator[Value]:
    """The members of one list, or objects one after the other. Only the member that is being read is in memory."""
    buffer, count, is_list, ended = "", 0, False, False
    while not ended:
        # Twice as much each time, so that a long entry does not take quadratic time.
        more = text.read(max(CHUNK, 2 * len(buffer)))
        buffer, ended = (buffer + more).lstrip(BETWEEN), not more
        if count == 0 and not is_list and buffer[:1] == "[":
            is_list, buffer = True, buffer[1:]
        at = 0
        for value, end in _whole_values(buffer, count > 0, ended):
            yield (None, "is not UTF-8") if is_damaged(buffer[at:end]) else (value, None)
            count, at = count + 1, end
        buffer = buffer[at:].lstrip(BETWEEN)
        if is_list and buffer[:1] == "]":
            return
        if len(buffer) > MAX_CELL_CHARACTERS:
            raise DatasetError(f"entry {count + 1} of {quoted(location)} is too long: write shorter ones")
    if buffer or is_list:
        where = f"entry {count + 1} of {quoted(location)}"
        raise DatasetError(f"{where} is not JSON: write a list of objects, or one object per line")


def _whole_values(buffer: str, continued: bool, ended: bool) -> Iterator[tuple[Any, int]]:
    """Values that the buffer holds to their end, each with the place behind it."""
    at = 0
    while True:
        while at < len(buffer) and (buffer[at] in BETWEEN or (buffer[at] == "," and continued)):
            at += 1
        try:
            value, at = _DECODER.raw_decode(buffer, at)
        except (ValueError, RecursionError):  # the rest is not read yet, or it is no JSON
            return
        if at == len(buffer) and not ended:  # a number may go on in what is not read yet
            return
        continued = True
        yield value, at


DELIMITED = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
JSON = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
COLUMNAR = (".parquet", ".arrow")
SUFFIXES = DELIMITED + JSON + COLUMNAR


@dataclass(frozen=True, slots=True)
class Record:
    row: int  # counted from 1
    cells: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None

    def cell(self, column: str | None) -> Any:
        """None also where there is no such column."""
        return None if column is None else self.cells.get(column)


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[str, ...] | None  # None where each record has its own
    total: int | None  # None where only reading to the end tells
    records: Iterator[Record]
    remark: str = ""  # what people should know about how it was read


def is_table(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def without_suffix(name: str) -> str:
    """A table's file name without `.csv`, `.jsonl.gz` and the like."""
    suffix = max((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), key=len, default="")
    return name[: len(name) - len(suffix)]


def open_table(location: str) -> Table:
    """The suffix decides the format. Raises DatasetError where the file as a whole cannot be read.

    No file stays open: the records open it when the first is asked for, and close it after the last."""
    name = file_name(location).lower()
    try:
        if name.endswith(COLUMNAR):
            columns, total = columns_and_rows(location)
            return Table(tuple(columns), total, _naming_failures(_columnar_records(location), location))
        encoding = encoding_of(location)
        remark = remark_on(location, encoding)
        if name.endswith(JSON):
            records = _json_records(location, encoding, lines=not name.removesuffix(".gz").endswith(".json"))
            return Table(None, None, _naming_failures(records, location), remark)
        form = form_of(location, encoding)
        header = csv_header(location, form)
    except (OSError, EOFError, Unreadable) as problem:
        reason = reason_of(problem)
        raise DatasetError(f"{quoted(location)} cannot be read: {reason}; check the file and its path") from None
    rows = (
        Record(row, dict(zip(header, values, strict=False)), _problem_of_cells(values, len(header), encoding))
        for row, values in enumerate(csv_rows(location, form))
        if row > 0
    )
    return Table(header, None, _naming_failures(rows, location), remark)


def _naming_failures(records: Iterator[Record], location: str) -> Iterator[Record]:
    try:
        yield from records
    except (OSError, EOFError, UnicodeError, Unreadable) as error:
        raise DatasetError(
            f"{quoted(location)} cannot be read to its end: {reason_of(error)}; write it again"
        ) from None


def _columnar_records(location: str) -> Iterator[Record]:
    for row, cells in enumerate(iter_rows(location), 1):
        yield Record(row, cells)


def _json_records(location: str, encoding: str, *, lines: bool) -> Iterator[Record]:
    for row, (value, problem) in enumerate(json_values(location, encoding, lines=lines), 1):
        if problem is None and not isinstance(value, dict):
            problem = "is not a JSON object"
        yield Record(row, problem=problem) if problem else Record(row, value)


def _problem_of_cells(values: list[str], columns: int, encoding: str) -> str | None:
    if len(values) != columns:
        return f"has {len(values)} cells where the header has {columns}"
    if any(map(is_damaged, values)):
        return f"is not {'Windows-1252' if encoding == WINDOWS else 'UTF-8'}"
    return None


def is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))
