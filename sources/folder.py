"""A folder of images in the HuggingFace imagefolder convention, or a folder of text files.

Sub-folders are walked. Where a folder holds a `metadata.csv|jsonl|parquet` with a `file_name` column, that lists the
images of the folder and of those below, in its order; elsewhere every image counts, in natural order (2 before 10).
The id is the column `id` of the metadata, or the path below the data set's folder. A column `text` is shown with the
image.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from twothirds.sources.errors import DatasetError
from twothirds.sources.files.location import (
    MAX_FILE_BYTES,
    TOO_LARGE,
    child,
    file_system,
    is_url,
    open_binary,
    reason_of,
)
from twothirds.sources.files.private_hosts import home_of
from twothirds.sources.pictures.images import AUDIO, is_audio, is_image
from twothirds.sources.printable import quoted
from twothirds.sources.rows import ANY, Columns, Row, Rows, name_and_problem, problem_of_id, text_of
from twothirds.sources.tables.encoding import decoded
from twothirds.sources.tables.records import Record, is_empty, is_table, open_table

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
TEXT = ".txt"
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
    if file[:1] != "." and "/." not in file and "__MACOSX" not in file:  # as most are
        return False
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


def is_text_folder(files: Sequence[str]) -> bool:
    return any(file.lower().endswith(TEXT) for file in files)


def rows_of_folder(folder: str, files: Sequence[str], columns: Columns = ANY) -> Rows:
    tables = [file for file in files if file.endswith(METADATA) and posixpath.basename(file) in METADATA]
    folders = [posixpath.dirname(table) for table in tables]
    twice = next((name for name, times in Counter(folders).items() if times > 1), None)
    if twice is not None:
        raise DatasetError(f"{quoted(child(folder, twice))} holds more than one metadata table: keep one of {METADATA}")
    if columns != ANY and not tables:
        named = next(filter(None, (columns.id, columns.text, columns.image)))
        raise DatasetError(f"{quoted(folder)} has no table, and so no column {named!r}: leave the column out")
    if not any(map(is_image, files)) and not tables and is_text_folder(files):
        texts = [file for file in files if file.lower().endswith(TEXT)]
        remarks: list[str] = []
        return Rows(len(texts), _rows_of_texts(folder, texts, remarks), home_of(folder), remarks)
    return Rows(sum(map(is_image, files)), _rows(folder, files, tables, columns), home_of(folder))


def _rows_of_texts(folder: str, files: Sequence[str], remarks: list[str]) -> Iterator[Row]:
    """Each file is a text; what is not UTF-8 is read as Windows-1252, which is remarked on once."""
    converted = 0
    for file in files:
        if problem := LEADS_OUT if leads_out(folder, file) else problem_of_id(file):
            yield Row(file, problem=problem)
            continue
        text, problem, encoding = read_text(child(folder, file))
        converted += encoding == "cp1252"
        yield Row(file, text=text, problem=problem, extra=class_of(file))
    if converted:
        many = f"{converted:,} text files are" if converted > 1 else "one text file is"
        remarks.append(f"{many} not UTF-8: read as Windows-1252; save as UTF-8 if letters look wrong")


def read_text(location: str) -> tuple[str | None, str | None, str]:
    """The text of a file, or why there is none, and its encoding."""
    try:
        with open_binary(location) as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            return None, TOO_LARGE, ""
        text, encoding = decoded(content)
    except UnicodeDecodeError:
        return None, "is not UTF-8", ""
    except Exception as error:  # file systems raise any exception
        return None, reason_of(error), ""
    return *text_of(text.strip()), encoding


def class_of(file: str) -> dict[str, str]:
    """The folder that a file is in, which is its class by convention."""
    return {"label": posixpath.basename(posixpath.dirname(file))} if "/" in file else {}


def _rows(folder: str, files: Sequence[str], tables: Sequence[str], columns: Columns) -> Iterator[Row]:
    known = set(files) if tables else set()
    listed: set[str] = set()
    for table in tables:
        for row, file in _rows_of_metadata(folder, table, known, columns):
            listed.add(file)
            yield row
    governed = tuple(posixpath.join(posixpath.dirname(table), "") for table in tables)
    for file in files:
        if is_audio(file) and file not in listed:
            yield Row(file, problem=f"audio: {AUDIO}")
        if (not is_image(file.rstrip("/")) and not file.endswith("/")) or file in listed:
            continue
        if leads_out(folder, file):
            yield Row(file, problem=LEADS_OUT)
        elif file.startswith(governed):
            yield Row(file, problem="is not listed in the metadata table: add a row for it or remove it")
        elif is_url(folder) and "::" in file:
            yield Row(file, problem="name contains '::', which would lead out of the data set: rename the image")
        else:
            yield Row(file, image=child(folder, file), problem=problem_of_id(file), extra=class_of(file))


def _rows_of_metadata(folder: str, table: str, known: set[str], columns: Columns) -> Iterator[tuple[Row, str]]:
    """Each row with the file it names. Only files inside the folder count: a table cannot name files outside of it."""
    opened = open_table(inside(folder, table))
    names = _columns_of_metadata(opened.columns, columns, quoted(child(folder, table)))
    for record in opened.records:
        named = record.cell(names.image)
        file = "" if is_empty(named) else posixpath.normpath(posixpath.join(posixpath.dirname(table), str(named)))
        yield _row_of_metadata(folder, record, file, known, names), file


def _columns_of_metadata(header: Sequence[str] | None, columns: Columns, where: str) -> Columns:
    """As they are called in the table; the column of images is `file_name` unless the user named another."""
    image = columns.image or "file_name"
    if header is None:
        return Columns(columns.id or "id", columns.text or ("text" if columns.image is None else None), image)
    if image not in header:
        raise DatasetError(f"{where} has no column {image!r}: add one with the images' paths")
    return replace(columns.among(header, where, needed=False), image=image)


def _row_of_metadata(folder: str, record: Record, file: str, known: set[str], columns: Columns) -> Row:
    name, problem = name_and_problem(record, columns.id or "id", default=file or f"row {record.row}")
    if problem is None and not file:
        problem = "missing file_name"
    if problem is None and file not in known:
        problem = "missing file"
    if problem is None and leads_out(folder, file):
        problem = LEADS_OUT
    words = record.cell(columns.text)
    text, bad = (None, None) if is_empty(words) else text_of(words)
    if problem or bad:
        return Row(name, problem=problem or bad)
    used = (columns.id or "id", columns.image, columns.text)
    extra = {key: value for key, value in record.cells.items() if key not in used}
    return Row(name, text=text, image=child(folder, file), extra=extra)
