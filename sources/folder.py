"""A folder of images in the HuggingFace imagefolder convention.

Sub-folders are walked. Where a folder holds a `metadata.csv|jsonl|parquet` with a `file_name` column, that lists the
images of the folder and of those below, in its order; elsewhere every image counts, in natural order (2 before 10).
The id is the column `id` of the metadata, or the path below the data set's folder.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from sources.errors import DatasetError
from sources.location import child, file_system, is_url
from sources.pictures import is_image
from sources.printable import quoted
from sources.private_hosts import home_of
from sources.table import Record, Row, Rows, is_empty, is_table, name_and_problem, open_table, problem_of_id

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
TRUTH = "truth.csv"
FOLLOW_LINKS = "TWOTHIRDS_FOLLOW_LINKS"
LEADS_OUT = f"is a link that leads out of the folder: copy it there, or set {FOLLOW_LINKS}=1 to follow such links"


def list_files(folder: str) -> list[str]:
    """The paths of all files below a folder, relative to it and in natural order; hidden ones are left out.

    Links to files are listed. A link to a folder elsewhere is not followed: it is listed with a slash at its end."""
    if is_url(folder):
        fs, path = file_system(folder)
        start = path.rstrip("/") + "/" if path.rstrip("/") else path
        found: Iterator[str] = (file.removeprefix(start) for file in fs.find(path) if not file.endswith("/"))
    else:
        found = _walk(folder)
    return sorted((file for file in found if not _hidden(file)), key=natural_order)


def _walk(folder: str) -> Iterator[str]:
    seen = set()  # links to folders inside are followed, but not in circles
    for current, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(current)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        below = os.path.relpath(current, folder)
        paths = {name: name if below == "." else f"{below}/{name}" for name in (*folders, *files)}
        outside = {name for name in folders if leads_out(folder, paths[name])}
        folders[:] = sorted(set(folders) - outside, key=natural_order)
        yield from (f"{paths[name]}/" for name in outside)
        yield from (paths[name] for name in files)


def leads_out(folder: str, file: str) -> bool:
    """Whether a path in a local folder is a link out of it: such a link would make private files into examples."""
    path = os.path.join(folder, file.rstrip("/"))
    if is_url(folder) or not os.path.islink(path) or os.environ.get(FOLLOW_LINKS, "0") not in ("", "0"):
        return False
    top = os.path.realpath(folder)
    return os.path.commonpath((top, os.path.realpath(path))) != top


def inside(folder: str, table: str) -> str:
    """The location of a table that belongs to the folder. Raises DatasetError where it is a link out of it."""
    if leads_out(folder, table):
        raise DatasetError(f"{quoted(child(folder, table))} {LEADS_OUT}")
    return child(folder, table)


def _hidden(file: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in file.split("/"))


def natural_order(name: str) -> str:
    """A sort key: numbers by their value, folders before the dot or dash that might follow their name."""
    numbered = re.sub(r"0*([0-9]+)", lambda digits: f"{len(digits.group(1)):05}{digits.group(1)}", name)
    return f"{numbered}\0{name}".replace("/", "\0")


def tables_in(files: Sequence[str]) -> list[str]:
    """Tables right in the folder that could be the data set; the truth is not one."""
    return [file for file in files if "/" not in file and is_table(file) and file != TRUTH]


def is_image_folder(files: Sequence[str]) -> bool:
    if any(is_image(file) or posixpath.basename(file) in METADATA for file in files):
        return True
    return not tables_in(files) and any(file.endswith("/") for file in files)


def rows_of_folder(folder: str, files: Sequence[str]) -> Rows:
    tables = [file for file in files if posixpath.basename(file) in METADATA]
    folders = [posixpath.dirname(table) for table in tables]
    twice = next((name for name, times in Counter(folders).items() if times > 1), None)
    if twice is not None:
        raise DatasetError(f"{quoted(child(folder, twice))} holds more than one metadata table: keep one of {METADATA}")
    return Rows(sum(map(is_image, files)), _rows(folder, files, tables), home_of(folder))


def _rows(folder: str, files: Sequence[str], tables: Sequence[str]) -> Iterator[Row]:
    known = set(files) if tables else set()
    listed: set[str] = set()
    for table in tables:
        for row, file in _rows_of_metadata(folder, table, known):
            listed.add(file)
            yield row
    governed = tuple(posixpath.join(posixpath.dirname(table), "") for table in tables)
    for file in files:
        if (not is_image(file.rstrip("/")) and not file.endswith("/")) or file in listed:
            continue
        if leads_out(folder, file):
            yield Row(file, problem=LEADS_OUT)
        elif file.startswith(governed):
            yield Row(file, problem="is not listed in the metadata table: add a row for it or remove it")
        else:
            label = {"label": posixpath.basename(posixpath.dirname(file))} if "/" in file else {}
            yield Row(file, image=child(folder, file), problem=problem_of_id(file), extra=label)


def _rows_of_metadata(folder: str, table: str, known: set[str]) -> Iterator[tuple[Row, str]]:
    """Each row with the file it names. Only files inside the folder count: a table cannot name files outside of it."""
    opened = open_table(inside(folder, table))
    if opened.columns is not None and "file_name" not in opened.columns:
        raise DatasetError(f"{quoted(child(folder, table))} has no column 'file_name': add one with the images' paths")
    for record in opened.records:
        named = record.cells.get("file_name")
        file = "" if is_empty(named) else posixpath.normpath(posixpath.join(posixpath.dirname(table), str(named)))
        yield _row_of_metadata(folder, record, file, known), file


def _row_of_metadata(folder: str, record: Record, file: str, known: set[str]) -> Row:
    name, problem = name_and_problem(record, default=file or f"row {record.row}")
    if problem is None and not file:
        problem = "missing file_name"
    if problem is None and file not in known:
        problem = "missing file"
    if problem is None and leads_out(folder, file):
        problem = LEADS_OUT
    if problem is not None:
        return Row(name, problem=problem)
    extra = {key: value for key, value in record.cells.items() if key not in ("id", "file_name")}
    return Row(name, image=child(folder, file), extra=extra)
