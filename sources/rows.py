"""The rows of a data set: which columns of a table are its ids, texts and pictures, and what each row holds.

A problem with a row is kept in it; only a table that cannot be read as a whole raises DatasetError."""

from __future__ import annotations

import itertools
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from twothirds.sources.errors import DatasetError
from twothirds.sources.files.location import absolute, child, file_name, is_url, parent
from twothirds.sources.files.private_hosts import home_of
from twothirds.sources.printable import printable, quoted
from twothirds.sources.tables.parquet import cell_location
from twothirds.sources.tables.records import Record, Table, is_empty, open_table

MAX_PATH_CHARS = 16_384  # characters; signed addresses have a few thousand
RECORDS_FOR_HEADER = 100
MAX_HEADER_CHARS = 400  # of a header that a message repeats
# fsspec has many more protocols, some of which run commands or write files: only the user may name those.
ELSEWHERE = ("http", "https", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hf", "memory")
ARCHIVES = ("zip", "tar")
HERE = ("file", "local", "")
WEB = ("http", "https")
SAME_KIND = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az"}
BUCKETS = "TWOTHIRDS_BUCKETS"  # that rows of a table from elsewhere may name, besides its own


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that the user has named; by default `id`, `text` and `image`, whatever their capitals.

    Where a text or an image column is named, only what is named is read."""

    id: str | None = None
    text: str | None = None
    image: str | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Columns:
        """As the settings of a run name them."""
        return cls(settings.get("id_column"), settings.get("text_column"), settings.get("image_column"))

    def among(self, found: Sequence[str], where: str, *, needed: bool = True) -> Columns:
        """As they are called in a table, None for what it does not have. Raises DatasetError."""
        for kind, name in (("id", self.id), ("text", self.text), ("image", self.image)):
            if name is not None and name not in found:
                remedy = f"name one of these with --{kind}-column"
                raise DatasetError(f"{where} has no column {name!r} (it has {_listed(found)}): {remedy}")
        named = self.text is not None or self.image is not None
        text = self.text if named else _whatever_its_capitals("text", found)
        image = self.image if named else _whatever_its_capitals("image", found)
        if needed and text is None and image is None:
            remedy = "name one with --text-column or --image-column"
            raise DatasetError(f"{where} has no column 'text' or 'image' (it has {_listed(found)}): {remedy}")
        return Columns(self.id or _whatever_its_capitals("id", found), text, image)


def _whatever_its_capitals(name: str, found: Sequence[str]) -> str | None:
    if name in found:
        return name
    return next((column for column in found if column.strip().lower() == name), None)


def _listed(columns: Sequence[str]) -> str:
    return printable(", ".join(columns[:12]))[:MAX_HEADER_CHARS] + (", …" if len(columns) > 12 else "")


ANY = Columns()


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
    remarks: list[str] = field(default_factory=list)  # what people should know, complete after the last row


def rows_of_tables(locations: Sequence[str], columns: Columns = ANY) -> Rows:
    """The rows of a table, or of the parts of one, each an example: its text, its picture or both."""
    tables = [open_table(location) for location in locations]
    totals = [table.total for table in tables]
    total = None if None in totals else sum(filter(None, totals))
    rows = Rows(total, iter(()), home_of(locations[0]), list(dict.fromkeys(filter(None, (t.remark for t in tables)))))
    for location, table in zip(locations, tables, strict=True):
        if table.columns is not None:
            columns.among(table.columns, quoted(location))
    return replace(rows, rows=_rows(locations, tables, columns, rows.remarks))


def _rows(locations: Sequence[str], tables: Sequence[Table], columns: Columns, remarks: list[str]) -> Iterator[Row]:
    before = 0  # rows of the parts that were read: rows are numbered through
    for location, table in zip(locations, tables, strict=True):
        records, header = table.records, table.columns
        if header is None:
            records, header = _with_header(records)
        found = columns.among(header, quoted(location)) if header else columns
        if header and found.id is None and not before:
            remarks.append(
                f"{file_name(location)} has no id column: rows are numbered from 1, or name it with --id-column"
            )
        number = 0
        for record in records:
            number = record.row
            yield _row_of(record, location, found, f"{before + number}" if found.id is None else None)
        before += number


def _with_header(records: Iterator[Record]) -> tuple[Iterator[Record], tuple[str, ...]]:
    """The columns of the first records: JSON has no header, and not every object has every column."""
    first = list(itertools.islice(records, RECORDS_FOR_HEADER))
    return itertools.chain(first, records), tuple(dict.fromkeys(name for record in first for name in record.cells))


def _row_of(record: Record, table: str, columns: Columns, number: str | None) -> Row:
    name, problem = name_and_problem(record, columns.id or "id", default=number)
    if problem is not None:
        return Row(name, problem=problem)
    cells, used = record.cells, (columns.id, columns.text, columns.image)
    extra = {key: value for key, value in cells.items() if key not in used}
    image, text = map(record.cell, (columns.image, columns.text))
    shown, problem = (None, None) if is_empty(text) else text_of(text)
    if columns.image is None or (_is_no_image(image) and (shown or problem or columns.image not in cells)):
        return Row(name, text=shown, problem=problem or (None if shown else "empty text"), extra=extra)
    location, content, bad = _image_of(image, table, columns.image, record.row)
    return Row(name, text=shown, image=location, content=content, problem=problem or bad, extra=extra)


def _is_no_image(value: Any) -> bool:
    return is_empty(value) or (isinstance(value, dict) and not value.get("bytes") and is_empty(value.get("path")))


def name_and_problem(record: Record, column: str = "id", *, default: str | None = None) -> tuple[str, str | None]:
    """The id of a record, or how to name it and why it has none. Ids go into CSV files and databases as they are."""
    if record.problem is not None:
        return f"row {record.row}", record.problem
    value = record.cells.get(column, default)
    if is_empty(value):
        return f"row {record.row}", "missing id"
    if not isinstance(value, (str, int, float)):
        return f"row {record.row}", f"id is a {type(value).__name__}, not a string or a number"
    return str(value), problem_of_id(str(value))


def problem_of_id(name: str) -> str | None:
    if name.isprintable():
        return None
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        return "id is not valid Unicode: rename it"
    if any(letter < " " or letter == "\x7f" for letter in name):
        return "id contains a control character: rename it"
    return None


def text_of(value: Any) -> tuple[str | None, str | None]:
    """A cell's text, or why it is none."""
    if is_empty(value):
        return None, "empty text"
    if not isinstance(value, (str, int, float)):
        return None, f"text is a {type(value).__name__}, not a string"
    return str(value), None


def _image_of(value: Any, table: str, column: str, row: int) -> tuple[str | None, bytes | None, str | None]:
    """Location, content and problem of an image cell: a path, a URL, bytes, or HuggingFace's {bytes, path}."""
    content = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(content, bytes):
        return cell_location(table, column, row - 1), content, None
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
        problem = _problem_of_address(path, table)
        return (None, None, problem) if problem else (absolute(path), None, None)
    if path.startswith("/") and not is_url(table):
        return path, None, None
    if is_url(table) and "::" in path:
        return None, None, "image path contains '::', which would lead out of the data set: rename the image"
    location = child(parent(table), path)
    problem = _problem_of_bucket(location, table)
    return (None, None, problem) if problem else (location, None, None)


def _problem_of_address(path: str, table: str) -> str | None:
    """Why a table may not name this address. A table from elsewhere must not name local files."""
    kinds = [part.partition("://")[0] if "://" in part or "/" not in part else "" for part in path.split("::")]
    if strange := next((kind for kind in kinds if kind not in (*ELSEWHERE, *ARCHIVES, *HERE)), None):
        return f"a table may not name an address of the kind {strange!r}: download the image"
    if not _is_here(table) and any(kind in HERE for kind in kinds):
        return "a table from elsewhere may not name a file of this machine: put the image beside it"
    return _problem_of_bucket(path, table)


def _problem_of_bucket(location: str, table: str) -> str | None:
    """A table from elsewhere must not make us read, with the user's keys, a bucket that its author cannot."""
    if _is_here(table):
        return None
    allowed = _buckets_in(table) | {_bucket(entry.strip()) for entry in os.environ.get(BUCKETS, "").split(",")}
    if not (other := sorted(_buckets_in(location) - allowed)):
        return None
    remedy = f"download the image, or set {BUCKETS}={other[0]} if you trust its author"
    return f"a table from elsewhere may not name {other[0]!r}, which is read with your keys: {remedy}"


def _buckets_in(location: str) -> set[str]:
    locations = [part for part in location.split("::") if part.partition("://")[0] in ELSEWHERE]
    return {_bucket(part) for part in locations if part.partition("://")[0] not in WEB}


def _bucket(address: str) -> str:
    """`s3://pets` of `s3://pets/1.png`; on the hub, the repository."""
    kind, _, path = address.partition("://")
    names = posixpath.normpath(path).split("/")
    if kind != "hf":
        return f"{SAME_KIND.get(kind, kind)}://{names[0]}"
    depth = 3 if names[0] in ("buckets", "datasets", "spaces") else 2
    return f"hf://{'/'.join(names[:depth]).partition('@')[0]}"


def _is_here(table: str) -> bool:
    return not is_url(table) or table.rpartition("::")[2].partition("://")[0] in HERE
