"""Where the rows of a data set are: which folder, tables or archives its name means, and the truth beside them.

A name may stand for several files: `part-*.parquet`, `shard-{0000..0012}.tar`, `{train,test}.csv`."""

from __future__ import annotations

import difflib
import glob
import json
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twothirds.sources.errors import DatasetError, DatasetMissing, Unreadable
from twothirds.sources.files.location import (
    absolute,
    child,
    file_name,
    file_system,
    is_url,
    open_binary,
    parent,
    reason_of,
)
from twothirds.sources.files.private_hosts import PrivateAddress
from twothirds.sources.folder import (
    TRUTH,
    inside,
    is_image_folder,
    is_text_folder,
    list_files,
    rows_of_folder,
    tables_in,
)
from twothirds.sources.pictures.images import AUDIO, is_audio
from twothirds.sources.printable import quoted
from twothirds.sources.rows import ANY, Columns, Rows, rows_of_tables
from twothirds.sources.secrets import with_variables
from twothirds.sources.tables.records import is_table, without_suffix
from twothirds.sources.webdataset import COMPRESSED, SHARD, rows_of_shards

ACCEPTED = "give a folder of images or texts, a CSV, JSON, JSONL or Parquet file, or a zip or tar archive"
SHIPPED = Path(__file__).parents[1] / "datasets"
MAX_FILES = 100_000  # for which one name may stand
_BRACES = re.compile(r"\{([^{},]+)\.\.([^{},]+)\}|\{([^{}]*,[^{}]*)\}")
_WILD = re.compile(r"[*?\[]")
# Of data sets as the HuggingFace library keeps them: saved to disk, or on the hub as parts of Parquet files.
STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
_PART = re.compile(r"(.+?)[-.]\d{3,6}-of-\d{3,6}(?:-[0-9a-f]+)?\.(?:parquet|arrow|jsonl|csv)(?:\.gz)?")


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
    location = _shipped(spec) or absolute(with_variables(spec) if is_url(spec) else spec)
    if not spec.strip() or "\0" in spec:
        raise DatasetError(f"no data set is called {spec!r}: {ACCEPTED}")
    try:
        if _is_folder(location):
            return _of_folder(spec, location)
        if _exists(location):
            return _of_file(spec, location)
        if _is_pattern(location) and (found := _expanded(location)):
            return _of_files(spec, found)
        raise DatasetMissing(f"there is no data set {quoted(spec)}: {_nearest(location) or ACCEPTED}")
    except DatasetError:
        raise
    except PrivateAddress as problem:
        raise DatasetError(f"data set {quoted(spec)} cannot be read: {problem}") from None
    except Unreadable as problem:
        raise DatasetMissing(f"data set {quoted(spec)} cannot be read ({problem}): {ACCEPTED}") from None
    except Exception as error:  # remote file systems raise any exception
        raise DatasetMissing(f"data set {quoted(spec)} cannot be read ({reason_of(error)}): {ACCEPTED}") from None


def shipped_names() -> list[str]:
    """The data sets that come with twothirds: each is known by its name in every folder."""
    return sorted(entry.name for entry in os.scandir(SHIPPED) if entry.is_dir())


def _shipped(spec: str) -> str:
    """Where the data set of that name lies, unless a file or folder here has the name; empty for any other."""
    is_name = bool(re.fullmatch(r"[a-z]+", spec)) and not os.path.exists(spec)
    return str(SHIPPED / spec) if is_name and spec in shipped_names() else ""


def _is_folder(location: str) -> bool:
    if not is_url(location):
        return os.path.isdir(location)
    fs, path = file_system(location)
    name, is_archive_root = file_name(location), location.startswith(("zip://::", "tar://::"))
    is_file = is_table(name) or name.lower().endswith((SHARD, ".zip"))
    return (is_archive_root or not is_file) and bool(fs.isdir(path))


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


def _of_files(spec: str, files: list[str]) -> Place:
    if all(is_table(file_name(file)) for file in files):
        return Place(tables=tuple(files))
    if all(file_name(file).lower().endswith(SHARD) for file in files):
        return Place(archives=tuple(files))
    raise DatasetError(f"{quoted(spec)} matches other files than tables or tar archives: write a narrower pattern")


def _of_folder(spec: str, folder: str) -> Place:
    files = list_files(folder)
    if not files:  # such as a disk that is not mounted
        raise DatasetMissing(f"folder {quoted(spec)} is empty: {ACCEPTED}")
    if saved := _parts_of_saved(spec, folder, files):
        return Place(tables=tuple(saved))
    if is_image_folder(files):
        return Place(folder=folder, files=tuple(files))
    if tables := tables_in(files):
        return Place(tables=tuple(inside(folder, table) for table in _one_table(spec, tables)))
    if shards := [file for file in files if file.lower().endswith(SHARD) and "/" not in file]:
        return Place(archives=tuple(inside(folder, shard) for shard in shards))
    if tables := [file for file in files if is_table(file) and os.path.basename(file) != TRUTH and _splits_in([file])]:
        return Place(tables=tuple(inside(folder, table) for table in _one_table(spec, tables)))
    if is_text_folder(files):
        return Place(folder=folder, files=tuple(files))
    if any(map(is_audio, files)):
        raise DatasetError(f"folder {quoted(spec)} holds audio: {AUDIO}")
    raise DatasetError(f"folder {quoted(spec)} holds no images, no texts and no table: {ACCEPTED}")


def _one_table(spec: str, tables: list[str]) -> list[str]:
    """The only table, or all parts of it."""
    splits = _splits_in(tables)
    if len(tables) == 1 or len(splits) == 1:
        return tables
    if splits:
        named = f"{spec.rstrip('/')}/{os.path.dirname(tables[0])}/{next(iter(splits))}-*".replace("//*", "/")
        raise DatasetError(
            f"folder {quoted(spec)} holds the splits {', '.join(splits)}: name one, as in {quoted(named)}"
        )
    raise DatasetError(f"folder {quoted(spec)} holds several tables ({', '.join(tables[:5])}): name one of them")


def _nearest(location: str) -> str:
    folder, name = os.path.split(location)
    if is_url(location) or not os.path.isdir(folder):
        return ""
    here = difflib.get_close_matches(name, os.listdir(folder), n=1)
    near = [os.path.join(os.path.relpath(folder), found) for found in here]
    if folder == os.getcwd():
        near += difflib.get_close_matches(name, shipped_names(), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def _is_pattern(location: str) -> bool:
    path = location.partition("?")[0] if location.startswith(("http://", "https://")) else location
    return bool(_BRACES.search(path) or _WILD.search(path))


def _expanded(location: str) -> list[str]:
    """The files that a pattern stands for, in order: all that braces name, and those there are that `*` matches."""
    found = []
    for name in _spelled_out(location):
        found += _matches(name) if _WILD.search(name) and not name.startswith("http") else [name]
        if len(found) > MAX_FILES:
            raise DatasetError(f"{quoted(location)} stands for more than {MAX_FILES:,} files: name fewer")
    return found


def _spelled_out(pattern: str) -> Iterator[str]:
    braces = _BRACES.search(pattern)
    if braces is None:
        yield pattern
        return
    for word in _words(braces):
        yield from _spelled_out(pattern[: braces.start()] + word + pattern[braces.end() :])


def _words(braces: re.Match[str]) -> Iterator[str]:
    first, last, listed = braces.groups()
    if listed is not None:
        yield from listed.split(",")
    elif first.isdecimal() and last.isdecimal() and int(last) - int(first) < MAX_FILES:
        yield from (str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))
    else:
        raise DatasetError(f"{braces.group()!r} is no range of file numbers: write {{0000..0012}}")


def _matches(pattern: str) -> list[str]:
    if not is_url(pattern):
        return sorted(glob.glob(pattern))
    fs, path = file_system(pattern)
    scheme = pattern.partition("://")[0]
    return sorted(f"{scheme}://{name}" for name in fs.glob(path))


def _splits_in(files: Sequence[str]) -> list[str]:
    """The splits of which the files are parts (`train-00000-of-00003.parquet`); none where one is no such part."""
    matches = [_PART.fullmatch(posixpath.basename(file)) for file in files]
    return list(dict.fromkeys(match[1] for match in matches if match)) if all(matches) else []


def _parts_of_saved(spec: str, folder: str, files: Sequence[str]) -> list[str]:
    """The Arrow files of a data set that was saved to disk, in their order; none for any other folder."""
    if SPLITS in files:
        splits = [name for name in _read_json(child(folder, SPLITS)).get("splits", []) if f"{name}/{STATE}" in files]
        if len(splits) != 1:
            named = f"{spec.rstrip('/')}/{splits[0] if splits else 'train'}"
            raise DatasetError(f"{quoted(spec)} holds the splits {', '.join(splits)}: name one, as in {quoted(named)}")
        return _data_files(child(folder, splits[0]), [file.removeprefix(f"{splits[0]}/") for file in files])
    return _data_files(folder, files) if STATE in files and INFO in files else []


def _data_files(folder: str, files: Sequence[str]) -> list[str]:
    listed = [entry.get("filename") for entry in _read_json(child(folder, STATE)).get("_data_files", [])]
    missing = next((name for name in listed if name not in files), None)
    if missing is not None or not listed:
        raise DatasetError(f"{quoted(folder)} lacks its part {missing!r}: save the data set again")
    return [child(folder, name) for name in listed]


def _read_json(location: str) -> dict[str, Any]:
    try:
        with open_binary(location) as file:
            content = json.loads(file.read(2**24))
    except (ValueError, Unreadable, OSError) as error:
        raise DatasetError(f"{quoted(location)} cannot be read ({error}): save the data set again") from None
    return content if isinstance(content, dict) else {}
