"""CSV, JSONL and Parquet tables, read as a stream of records, and the rows of a data set that they hold.

A problem with a record or row is kept in it; only a table that cannot be read as a whole raises DatasetError."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import math
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sources.errors import DatasetError, Unreadable
from sources.location import absolute, child, file_name, is_url, open_binary, parent, reason_of
from sources.parquet import cell_location, columns_and_rows, iter_rows
from sources.printable import printable, quoted
from sources.private_hosts import home_of

SUFFIXES = (".csv", ".jsonl", ".parquet")
MAX_CELL_CHARACTERS = 2**28  # also of a line: a hostile archive must not fill the memory


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
        raise DatasetError(f"{quoted(location)} cannot be read: {problem}; check the file and its path") from None
    return Table(header, None, _naming_failures(_csv_records(location, header), location))


def _naming_failures(records: Iterator[Record], location: str) -> Iterator[Record]:
    try:
        yield from records
    except (OSError, Unreadable) as error:
        raise DatasetError(
            f"{quoted(location)} cannot be read to its end: {reason_of(error)}; write it again"
        ) from None


def _parquet_records(location: str) -> Iterator[Record]:
    for row, cells in enumerate(iter_rows(location), 1):
        yield Record(row, cells)


def _csv_header(location: str) -> tuple[str, ...]:
    rows = _csv_rows(location)
    header = tuple(name.strip() for name in next(rows, ()))
    rows.close()
    if not header:
        raise DatasetError(f"{quoted(location)} is empty: its first line must name the columns")
    twice = next((name for name, times in Counter(header).items() if times > 1), None)
    if twice is not None:
        raise DatasetError(f"{quoted(location)} has the column {twice!r} twice: rename one")
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
            raise DatasetError(f"{quoted(location)} is UTF-16: save it as UTF-8")
        stream.seek(0)
        # Strict, because a quote that is never closed would otherwise swallow the rest of the table silently.
        reader = csv.reader(_lines(text, location), strict=True)
        try:
            yield from (row for row in reader if row)
        except csv.Error as error:
            where = f"line {reader.line_num} of {quoted(location)}"
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
            raise DatasetError(f"line {number} of {quoted(location)} has more than {longest}: write shorter ones")
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


MAX_PATH_CHARS = 16_384  # characters; signed addresses have a few thousand
MAX_HEADER_CHARS = 400  # of a header that a message repeats
# fsspec has many more protocols, some of which run commands or write files: only the user may name those.
ELSEWHERE = ("http", "https", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hf", "memory")
ARCHIVES = ("zip", "tar")
HERE = ("file", "local", "")


@dataclass(frozen=True, slots=True)
class Row:
    """`name` stands for the row in messages: its id, or which row it is. A row with a problem becomes no example."""

    name: str
    text: str | None = None
    image: str | None = None
    content: bytes | None = field(default=None, repr=False)  # of the image, where the table brought it along
    problem: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rows:
    total: int | None
    rows: Iterator[Row]
    home: str | None = None  # host and port of the data set, where it is on the web


def rows_of_table(location: str) -> Rows:
    """A table with an `id` and an `image` or `text` column; where it has both, the image is the example."""
    table = open_table(location)
    if table.columns is not None:
        _require_columns(location, table.columns)
    return Rows(table.total, (_row_of(record, location) for record in table.records), home_of(location))


def _require_columns(location: str, columns: tuple[str, ...]) -> None:
    found = printable(", ".join(columns[:12]))[:MAX_HEADER_CHARS] + (", …" if len(columns) > 12 else "")
    if "id" not in columns:
        raise DatasetError(f"{quoted(location)} has no column 'id' (it has {found}): add or rename one")
    if "image" not in columns and "text" not in columns:
        raise DatasetError(f"{quoted(location)} has no column 'text' or 'image' (it has {found}): add or rename one")


def _row_of(record: Record, table: str) -> Row:
    name, problem = name_and_problem(record)
    if problem is not None:
        return Row(name, problem=problem)
    cells = record.cells
    extra = {key: value for key, value in cells.items() if key not in ("id", "image")}
    if "image" in cells:
        location, content, problem = _image_of(cells["image"], table, record.row)
        return Row(name, image=location, content=content, problem=problem, extra=extra)
    text, problem = _text_of(cells.get("text"))
    extra.pop("text", None)
    return Row(name, text=text, problem=problem, extra=extra)


def name_and_problem(record: Record, *, default: str | None = None) -> tuple[str, str | None]:
    """The id of a record, or how to name it and why it has none. Ids go into CSV files and databases as they are."""
    if record.problem is not None:
        return f"row {record.row}", record.problem
    value = record.cells.get("id", default)
    if is_empty(value):
        return f"row {record.row}", "missing id"
    if not isinstance(value, (str, int, float)):
        return f"row {record.row}", f"id is a {type(value).__name__}, not a string or a number"
    return str(value), problem_of_id(str(value))


def problem_of_id(name: str) -> str | None:
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        return "id is not valid Unicode: rename it"
    if any(letter < " " or letter == "\x7f" for letter in name):
        return "id contains a control character: rename it"
    return None


def is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def _text_of(value: Any) -> tuple[str | None, str | None]:
    if is_empty(value):
        return None, "empty text"
    if not isinstance(value, (str, int, float)):
        return None, f"text is a {type(value).__name__}, not a string"
    return str(value), None


def _image_of(value: Any, table: str, row: int) -> tuple[str | None, bytes | None, str | None]:
    """Location, content and problem of an image cell: a path, a URL, bytes, or HuggingFace's {bytes, path}."""
    content = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(content, bytes):
        return cell_location(table, "image", row - 1), content, None
    path = value.get("path") if isinstance(value, dict) else value
    if is_empty(path):
        return None, None, "missing image"
    if not isinstance(path, str):
        return None, None, f"image is a {type(path).__name__}, not a path"
    if "\0" in path:
        return None, None, "image path contains a NUL"
    if len(path) > MAX_PATH_CHARS:
        return None, None, f"image path has more than {MAX_PATH_CHARS:,} characters"
    if is_url(path):
        problem = _problem_of_address(path, remote=not _is_here(table))
        return (None, None, problem) if problem else (absolute(path), None, None)
    if path.startswith("/") and not is_url(table):
        return path, None, None
    if is_url(table) and "::" in path:
        return None, None, "image path contains '::', which would lead out of the data set: rename the image"
    return child(parent(table), path), None, None


def _problem_of_address(path: str, *, remote: bool) -> str | None:
    """Why a table may not name this address. A table from elsewhere must not name local files."""
    kinds = [part.partition("://")[0] if "://" in part or "/" not in part else "" for part in path.split("::")]
    if strange := next((kind for kind in kinds if kind not in (*ELSEWHERE, *ARCHIVES, *HERE)), None):
        return f"a table may not name an address of the kind {strange!r}: download the image"
    if remote and any(kind in HERE for kind in kinds):
        return "a table from elsewhere may not name a file of this machine: put the image beside it"
    return None


def _is_here(table: str) -> bool:
    return not is_url(table) or table.rpartition("::")[2].partition("://")[0] in HERE
