"""Rows of a data set before their content was looked at, and how the cells of a table become one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sources.errors import DatasetError
from sources.location import absolute, child, is_url, parent, printable, shown
from sources.parquet import cell_location
from sources.reach import home_of
from sources.table import Record, open_table

LONGEST_PATH = 16_384  # characters; signed addresses have a few thousand
SHOWN = 400  # characters of a header that a message repeats
# fsspec knows many more kinds of addresses, some of which run commands or write files: those are for the user alone.
ELSEWHERE = ("http", "https", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hf", "memory")
ARCHIVES = ("zip", "tar")
HERE = ("file", "local", "")


@dataclass(frozen=True, slots=True)
class Row:
    """`name` stands for the row in messages: its id, or which row it is. A row with a problem is no example."""

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
    found = printable(", ".join(columns[:12]))[:SHOWN] + (", …" if len(columns) > 12 else "")
    if "id" not in columns:
        raise DatasetError(f"{shown(location)} has no column 'id' (it has {found}): add or rename one")
    if "image" not in columns and "text" not in columns:
        raise DatasetError(f"{shown(location)} has no column 'text' or 'image' (it has {found}): add or rename one")


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
    if len(path) > LONGEST_PATH:
        return None, None, f"image path has more than {LONGEST_PATH:,} characters"
    if is_url(path):
        problem = _problem_of_address(path, remote=not _is_here(table))
        return (None, None, problem) if problem else (absolute(path), None, None)
    if path.startswith("/") and not is_url(table):
        return path, None, None
    if is_url(table) and "::" in path:
        return None, None, "image path contains '::', which would lead out of the data set: rename the image"
    return child(parent(table), path), None, None


def _problem_of_address(path: str, *, remote: bool) -> str | None:
    """Why a table may not name this address. Whoever wrote one that was fetched must not choose among our own files."""
    kinds = [part.partition("://")[0] if "://" in part or "/" not in part else "" for part in path.split("::")]
    if strange := next((kind for kind in kinds if kind not in (*ELSEWHERE, *ARCHIVES, *HERE)), None):
        return f"a table may not name an address of the kind {strange!r}: download the image"
    if remote and any(kind in HERE for kind in kinds):
        return "a table from elsewhere may not name a file of this machine: put the image beside it"
    return None


def _is_here(table: str) -> bool:
    return not is_url(table) or table.rpartition("::")[2].partition("://")[0] in HERE
