"""Where the rows of a data set are: which folder or table its name means, and the truth beside it."""

from __future__ import annotations

import difflib
import os
import re

from sources.errors import DatasetError, Unreadable
from sources.folder import TRUTH, inside, is_image_folder, list_files, rows_of_folder, tables_in
from sources.location import absolute, child, file_name, file_system, is_url, parent, reason_of
from sources.printable import quoted
from sources.private_hosts import PrivateAddress
from sources.secrets import with_variables, without_secrets
from sources.table import Rows, is_table, rows_of_table

ACCEPTED = "give a folder of images, or a CSV, JSONL or Parquet file with an id and a text or image column"


def find_rows(spec: str) -> Rows:
    """What the data set lists, before any of its content is looked at."""
    location, files = _resolve(spec)
    return rows_of_table(location) if files is None else rows_of_folder(location, files)


def find_truth(spec: str) -> str | None:
    """The `truth.csv` in the folder, or beside the table."""
    location, files = _resolve(spec)
    folder = parent(location) if files is None else location
    truth = child(folder, TRUTH)
    try:
        return inside(folder, TRUTH) if truth != location and _exists(truth) else None
    except Unreadable as problem:
        raise DatasetError(f"{quoted(truth)} cannot be read: {problem}") from None


def name_of(spec: str) -> str:
    """A short name, fit for a file's: the folder's, or the table's without its suffix."""
    name = file_name(absolute(spec))
    stem = os.path.splitext(name)[0] if is_table(name) or name.lower().endswith(".zip") else name
    return re.sub(r"[^\w.-]+", "-", stem).strip(".-") or "data"


def _resolve(spec: str) -> tuple[str, list[str] | None]:
    """A table's location and None, or an image folder's location and its files."""
    location = absolute(with_variables(spec) if is_url(spec) else spec)
    if not spec.strip() or "\0" in spec:
        raise DatasetError(f"no data set is called {spec!r}: {ACCEPTED}")
    try:
        if _is_folder(location):
            files = list_files(location)
        elif _exists(location):
            return _single_table(spec, location), None
        else:
            raise DatasetError(f"there is no data set {quoted(spec)}: {_nearest(location) or ACCEPTED}")
    except DatasetError:
        raise
    except PrivateAddress as problem:
        raise DatasetError(f"data set {quoted(spec)} cannot be read: {problem}") from None
    except Unreadable as problem:
        raise DatasetError(f"data set {quoted(spec)} cannot be read ({problem}): {ACCEPTED}") from None
    except Exception as error:  # remote file systems raise any exception
        raise DatasetError(f"data set {quoted(spec)} cannot be read ({reason_of(error)}): {ACCEPTED}") from None
    if is_image_folder(files):
        return location, files
    return inside(location, _only_table(spec, files)), None


def _is_folder(location: str) -> bool:
    if not is_url(location):
        return os.path.isdir(location)
    fs, path = file_system(location)
    return not is_table(file_name(location)) and bool(fs.isdir(path))


def _exists(location: str) -> bool:
    if not is_url(location):
        return os.path.exists(location)
    fs, path = file_system(location)
    return bool(fs.exists(path))


def _single_table(spec: str, location: str) -> str:
    if not is_table(file_name(location)):
        hint = f"zip://::{without_secrets(spec)}" if location.lower().endswith(".zip") else ""
        raise DatasetError(f"{quoted(spec)} is not a table: {f'read an archive as {hint}' if hint else ACCEPTED}")
    return location


def _only_table(spec: str, files: list[str]) -> str:
    tables = tables_in(files)
    if not tables:
        raise DatasetError(f"folder {quoted(spec)} holds no images and no table: {ACCEPTED}")
    if len(tables) > 1:
        raise DatasetError(f"folder {quoted(spec)} holds several tables ({', '.join(tables[:5])}): name one of them")
    return tables[0]


def _nearest(location: str) -> str:
    folder = os.path.dirname(location)
    if is_url(location) or not os.path.isdir(folder):
        return ""
    near = difflib.get_close_matches(os.path.basename(location), os.listdir(folder), n=1)
    return f"did you mean {os.path.join(os.path.relpath(folder), near[0])!r}?" if near else ""
