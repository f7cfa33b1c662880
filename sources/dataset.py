"""A data set that was read: its examples, the rows that could not be used, and the truth where it is known."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


from twothirds.sources.errors import DatasetError, Unreadable, Vanished
from twothirds.sources.files.location import MAX_FILE_BYTES, TOO_LARGE, is_url, member_of, open_binary, reason_of
from twothirds.sources.files.private_hosts import options_for_rows
from twothirds.sources.printable import printable, quoted
from twothirds.sources.rows import ANY, Columns
from twothirds.sources.tables.parquet import cell_of, read_cell

MAX_LINES_PER_REASON = 5
TEXT_LIMIT = 12_000  # characters of a text that models are shown


@dataclass(frozen=True, slots=True)
class Example:
    """A picture, a text, or a picture with its text. `digest` is the SHA-256 of its content: a renamed file is the
    same, a changed one is not."""

    id: str
    digest: str
    text: str | None = None
    image: str | None = None  # an absolute path, an fsspec URL or a Parquet cell; the bytes are read only when needed
    home: str | None = None  # host and port of a data set on the web: the only private host that its rows may name

    def image_bytes(self) -> bytes:
        """Raises Vanished where the file is gone or has changed: an answer about the new content would be stored as one
        about the old."""
        if self.image is None:
            raise ValueError(f"example {self.id!r} has no image")
        where = f"image {quoted(self.image)} of example {self.id!r}"
        try:
            content = read_bytes(self.image, self.home)
        except Unreadable as problem:
            raise Vanished(f"{where} cannot be read any more ({problem}): restore it and run again") from None
        if digest_of_content(self.text, content) != self.digest:
            raise Vanished(f"{where} has changed since the data set was read: run again to ask about what it is now")
        return content


def digest_of_content(text: str | None, picture: bytes | None) -> str:
    """Of a text, of a picture, or of both."""
    words = b"" if text is None else text.encode("utf-8", "surrogatepass")
    if picture is None:
        return hashlib.sha256(b"text\0" + words).hexdigest()
    if text is None:
        return hashlib.sha256(picture).hexdigest()
    return hashlib.sha256(b"picture with text\0" + hashlib.sha256(picture).digest() + words).hexdigest()


def picture_at(path: Path, name: str = "") -> Example:
    """An image file that belongs to no data set."""
    return Example(name or path.stem, hashlib.sha256(path.read_bytes()).hexdigest(), image=str(path))


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row of the data set that could not be used, and why. Where it has no id, `id` says which row it is."""

    id: str
    reason: str

    def __str__(self) -> str:
        name = self.id if printable(self.id) == self.id else repr(self.id)
        return f"{name}: {self.reason}"


def lines_of_skipped(quarantined: Iterable[Quarantined]) -> list[str]:
    """A line for each, and one for all that share a reason where these are many."""
    by_reason: dict[str, list[str]] = {}
    for row in quarantined:
        by_reason.setdefault(row.reason, []).append(row.id)
    lines = []
    for reason, names in by_reason.items():
        many = [f"{names[0]} and {len(names) - 1:,} more"] if len(names) > MAX_LINES_PER_REASON else names
        lines += [f"left out {name}: {reason}" for name in many]
    return lines


@dataclass(frozen=True, eq=False, slots=True)
class Truth:
    """What is known of the examples: one row per example of the data set, in its order; -1 where the cell is empty."""

    columns: tuple[str, ...]
    matrix: NDArray[np.int8]


@dataclass(frozen=True, eq=False, slots=True)
class Dataset:
    name: str  # short, as in `faces`
    spec: str  # as the user gave it
    examples: tuple[Example, ...]
    quarantined: tuple[Quarantined, ...]
    truth: Truth | None
    digest: str  # of the ids and contents, in order
    columns: Columns = ANY  # as the user gave them
    remarks: tuple[str, ...] = ()  # on how it was read

    def notes(self) -> list[str]:
        """What people should know about the examples, a line each."""
        return [*self.remarks, *_notes_on(self.examples)]

    def lines(self) -> list[str]:
        """The notes, and what was left out."""
        return self.notes() + lines_of_skipped(self.quarantined)


def _notes_on(examples: Sequence[Example]) -> Iterator[str]:
    lengths = [len(example.text) for example in examples if example.text is not None and len(example.text) > TEXT_LIMIT]
    if lengths:
        cut = f"{len(lengths):,} of {len(examples):,} texts are" if len(lengths) > 1 else "one text is"
        yield f"{cut} longer than {TEXT_LIMIT:,} characters (up to {max(lengths):,}): models are shown the beginning"
    copies = len(examples) - len({example.digest for example in examples})
    if copies:
        same = f"{copies:,} of {len(examples):,} examples have" if copies > 1 else "one example has"
        yield f"{same} the same content as another: each content is labelled once"


def digest_of_examples(examples: Iterable[Example]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps([example.id, example.digest]).encode() + b"\n")
    return digest.hexdigest()


def read_bytes(location: str, home: str | None = None) -> bytes:
    """Raises Unreadable. Safe to call from several threads. `home`, the host of the data set, need not be public."""
    options = options_for_rows(home)
    try:
        return _read(location, options)
    except DatasetError as error:  # such as a package that this kind of address needs
        raise Unreadable(str(error)) from None


def _read(location: str, options: Mapping[str, Any]) -> bytes:
    if (cell := cell_of(location)) is not None:
        table, column, row = cell
        return read_cell(table, column, row, options)
    member = member_of(location)
    archive, start, size = member or (location, 0, MAX_FILE_BYTES + 1)
    with open_binary(archive, options) as file:
        try:
            if member is None and not is_url(location):  # room for `size` bytes takes longer than to read a small file
                size = min(size, os.fstat(file.fileno()).st_size + 1)
            file.seek(start)
            content = file.read(size)
        except Exception as error:  # file systems raise any exception
            raise Unreadable(reason_of(error)) from None
    if len(content) > MAX_FILE_BYTES:
        raise Unreadable(TOO_LARGE)
    return content
