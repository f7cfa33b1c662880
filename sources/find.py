"""Where the rows of a data set are: which folder, tables or archives its name means, and the truth beside them."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass

from sources.errors import DatasetError, DatasetMissing, Unreadable
from sources.files import (
    PrivateAddress,
    absolute,
    child,
    expanded,
    file_name,
    file_system,
    is_pattern,
    is_url,
    parent,
    reason_of,
)
from sources.folder import TRUTH, inside, is_image_folder, is_text_folder, list_files, rows_of_folder, tables_in
from sources.pictures import AUDIO, is_audio
from sources.printable import quoted
from sources.rows import ANY, Columns, Rows, rows_of_tables
from sources.secrets import with_variables
from sources.tables import is_table, parts_of_saved, splits_in, without_suffix
from sources.webdataset import COMPRESSED, SHARD, rows_of_shards

ACCEPTED = "give a folder of images or texts, a CSV, JSON, JSONL or Parquet file, or a zip or tar archive"


@dataclass(frozen=True, slots=True)
class Place:
    """What a data set's name means: tables, archives, or a folder and its files."""

    tables: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    folder: str = ""
    files: tuple[str, ...] = ()

    @property
    def beside(self) -> str:
        """The folder in which a `truth.csv` belongs to the data set."""
        return self.folder or parent((*self.tables, *self.archives)[0])


def find_rows(spec: str, columns: Columns = ANY) -> Rows:
    """What the data set lists, before any of its content is looked at."""
    place = _resolve(spec)
    if place.tables:
        return rows_of_tables(place.tables, columns)
    if place.archives:
        return rows_of_shards(place.archives, columns)
    return rows_of_folder(place.folder, place.files, columns)


def find_truth(spec: str) -> str | None:
    """The `truth.csv` in the folder, or beside the table."""
    place = _resolve(spec)
    folder = place.beside
    truth = child(folder, TRUTH)
    try:
        return inside(folder, TRUTH) if truth not in place.tables and _exists(truth) else None
    except Unreadable as problem:
        raise DatasetError(f"{quoted(truth)} cannot be read: {problem}") from None


def name_of(spec: str) -> str:
    """A short name, fit for a file's: the folder's, or the table's without its suffix."""
    name = file_name(absolute(spec))
    stem = os.path.splitext(name)[0] if name.lower().endswith((".zip", SHARD)) else without_suffix(name)
    return re.sub(r"[^\w.-]+", "-", stem).strip(".-") or "data"


def _resolve(spec: str) -> Place:
    location = absolute(with_variables(spec) if is_url(spec) else spec)
    if not spec.strip() or "\0" in spec:
        raise DatasetError(f"no data set is called {spec!r}: {ACCEPTED}")
    try:
        if _is_folder(location):
            return _of_folder(spec, location)
        if _exists(location):
            return _of_file(spec, location)
        if is_pattern(location) and (found := expanded(location)):
            return _of_parts(spec, found)
        raise DatasetMissing(f"there is no data set {quoted(spec)}: {_nearest(location) or ACCEPTED}")
    except DatasetError:
        raise
    except PrivateAddress as problem:
        raise DatasetError(f"data set {quoted(spec)} cannot be read: {problem}") from None
    except Unreadable as problem:
        raise DatasetMissing(f"data set {quoted(spec)} cannot be read ({problem}): {ACCEPTED}") from None
    except Exception as error:  # remote file systems raise any exception
        raise DatasetMissing(f"data set {quoted(spec)} cannot be read ({reason_of(error)}): {ACCEPTED}") from None


def _is_folder(location: str) -> bool:
    if not is_url(location):
        return os.path.isdir(location)
    fs, path = file_system(location)
    return (_is_archive_root(location) or not _is_file_name(file_name(location))) and bool(fs.isdir(path))


def _is_archive_root(location: str) -> bool:
    return location.startswith(("zip://::", "tar://::"))


def _is_file_name(name: str) -> bool:
    return is_table(name) or name.lower().endswith((SHARD, ".zip"))


def _exists(location: str) -> bool:
    if not is_url(location):
        return os.path.exists(location)
    fs, path = file_system(location)
    return bool(fs.exists(path))


def _of_file(spec: str, location: str) -> Place:
    name = file_name(location).lower()
    if is_table(name):
        return Place(tables=(location,))
    if name.endswith(SHARD):
        return Place(archives=(location,))
    if name.endswith(".zip"):
        return _of_folder(spec, f"zip://::{location}")
    if name.endswith(COMPRESSED):
        raise DatasetError(f"{quoted(spec)} is a compressed archive, which cannot be read in parts: unpack it")
    if is_audio(name):
        raise DatasetError(f"{quoted(spec)} is audio: {AUDIO}")
    raise DatasetError(f"{quoted(spec)} is not a table: {ACCEPTED}")


def _of_parts(spec: str, parts: list[str]) -> Place:
    if all(is_table(file_name(part)) for part in parts):
        return Place(tables=tuple(parts))
    if all(file_name(part).lower().endswith(SHARD) for part in parts):
        return Place(archives=tuple(parts))
    raise DatasetError(f"{quoted(spec)} matches other files than tables or tar archives: write a narrower pattern")


def _of_folder(spec: str, folder: str) -> Place:
    files = list_files(folder)
    if not files:  # such as a disk that is not mounted
        raise DatasetMissing(f"folder {quoted(spec)} is empty: {ACCEPTED}")
    if saved := parts_of_saved(spec, folder, files):
        return Place(tables=tuple(saved))
    if is_image_folder(files):
        return Place(folder=folder, files=tuple(files))
    if tables := tables_in(files):
        return Place(tables=tuple(inside(folder, table) for table in _one_table(spec, tables)))
    if shards := [file for file in files if file.lower().endswith(SHARD) and "/" not in file]:
        return Place(archives=tuple(inside(folder, shard) for shard in shards))
    if parts := [file for file in files if is_table(file) and os.path.basename(file) != TRUTH and splits_in([file])]:
        return Place(tables=tuple(inside(folder, table) for table in _one_table(spec, parts)))
    if is_text_folder(files):
        return Place(folder=folder, files=tuple(files))
    if any(map(is_audio, files)):
        raise DatasetError(f"folder {quoted(spec)} holds audio: {AUDIO}")
    raise DatasetError(f"folder {quoted(spec)} holds no images, no texts and no table: {ACCEPTED}")


def _one_table(spec: str, tables: list[str]) -> list[str]:
    """The only table, or all parts of it."""
    splits = splits_in(tables)
    if len(tables) == 1 or len(splits) == 1:
        return tables
    if splits:
        named = f"{spec.rstrip('/')}/{os.path.dirname(tables[0])}/{next(iter(splits))}-*".replace("//*", "/")
        raise DatasetError(
            f"folder {quoted(spec)} holds the splits {', '.join(splits)}: name one, as in {quoted(named)}"
        )
    raise DatasetError(f"folder {quoted(spec)} holds several tables ({', '.join(tables[:5])}): name one of them")


def _nearest(location: str) -> str:
    folder = os.path.dirname(location)
    if is_url(location) or not os.path.isdir(folder):
        return ""
    near = difflib.get_close_matches(os.path.basename(location), os.listdir(folder), n=1)
    return f"did you mean {os.path.join(os.path.relpath(folder), near[0])!r}?" if near else ""
