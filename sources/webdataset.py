"""Archives in the WebDataset convention: members of a tar file that share a name up to its first dot are one example.

`0001.jpg`, `0001.txt` and `0001.json` are a picture, its text and its other columns. An archive is read once, from its
beginning to its end; later a picture is read by its place in the archive, without looking through the others."""

from __future__ import annotations

import json
import posixpath
import tarfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import IO, Any

from twothirds.sources.errors import DatasetError
from twothirds.sources.files.location import (
    MAX_FILE_BYTES,
    TOO_LARGE,
    file_name,
    member_location,
    open_binary,
    reason_of,
)
from twothirds.sources.files.private_hosts import home_of
from twothirds.sources.folder import METADATA, class_of
from twothirds.sources.pictures.images import is_image
from twothirds.sources.printable import quoted
from twothirds.sources.rows import Columns, Row, Rows, problem_of_id, text_of
from twothirds.sources.tables.encoding import decoded
from twothirds.sources.tables.records import is_empty

SHARD = ".tar"
COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
TEXTS = ("txt", "text", "caption")
CLASSES = ("cls", "label")


def rows_of_shards(archives: Sequence[str], columns: Columns) -> Rows:
    if columns.image is not None:
        raise DatasetError(f"{quoted(archives[0])} has no image column {columns.image!r}: its pictures are its members")
    remarks: list[str] = []
    return Rows(None, _rows(archives, columns, remarks), home_of(archives[0]), remarks)


def _rows(archives: Sequence[str], columns: Columns, remarks: list[str]) -> Iterator[Row]:
    for archive in archives:
        try:
            with open_binary(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
                members = (member for member in _members(tar) if _counts(member, archive, remarks))
                for key, group in groupby(members, key=lambda member: _key(member.name)):
                    yield _Sample(archive, key, columns).row(tar, group)
        except DatasetError:
            raise
        except Exception as error:  # tarfile and file systems raise many kinds
            raise DatasetError(f"{quoted(archive)} cannot be read: {reason_of(error)}; write it again") from None


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (member := tar.next()) is not None:
        tar.members = []  # type: ignore[attr-defined]  # else all that was read stays in memory
        yield member


def _counts(member: tarfile.TarInfo, archive: str, remarks: list[str]) -> bool:
    """Links and devices are no examples; hidden files are left out as in folders."""
    name = posixpath.basename(member.name)
    if name in METADATA:
        remarks.append(f"{name} in {file_name(archive)} is not read: unpack the archive to use it")
    return member.isreg() and not name.startswith(".") and name not in METADATA


def _key(name: str) -> str:
    folder, base = posixpath.split(posixpath.normpath(name))
    return posixpath.join(folder, base.partition(".")[0])


class _Sample:
    """The members of one example, as they come."""

    def __init__(self, archive: str, key: str, columns: Columns) -> None:
        self._archive, self._key, self._columns = archive, key, columns
        self._picture: tuple[str, bytes] | None = None
        self._text: str | None = None
        self._extra: dict[str, Any] = dict(class_of(key))
        self._problem = problem_of_id(key)

    def row(self, tar: tarfile.TarFile, members: Iterator[tarfile.TarInfo]) -> Row:
        for member in members:
            self._problem = self._take(tar, member) or self._problem
        name = self._named(self._columns.id, self._key)
        text = self._named(self._columns.text, self._text or self._text_in_json())
        problem = self._problem
        if problem is None and self._picture is None and text is None:
            problem = "holds neither a picture nor a text"
        if problem is not None:
            return Row(name or self._key, problem=problem)
        image, content = self._picture or (None, None)
        return Row(name or self._key, text=text, image=image, content=content, extra=self._extra)

    def _text_in_json(self) -> str | None:
        return str(self._extra.pop("text")) if isinstance(self._extra.get("text"), str) else None

    def _named(self, column: str | None, otherwise: str | None) -> str | None:
        """A column of the example's JSON, where the user named one."""
        if column is None:
            return otherwise
        value = self._extra.pop(column, None)
        if is_empty(value):
            self._problem = self._problem or f"has no column {column!r}"
            return None
        text, problem = text_of(value)
        self._problem = self._problem or problem
        return text

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> str | None:
        """Keep what a member holds; why it cannot be used otherwise."""
        suffix = posixpath.basename(member.name).partition(".")[2].lower()
        last = suffix.rpartition(".")[2]
        if not (is_image(f".{last}") or last in (*TEXTS, *CLASSES, "json")):
            return None
        if member.size > MAX_FILE_BYTES:
            return TOO_LARGE
        if member.issparse():
            return "is a sparse file: write the archive again"
        content = _read(tar, member)
        if is_image(f".{last}"):
            if self._picture is not None:
                return "has two pictures: give each a name of its own"
            self._picture = member_location(self._archive, member.offset_data, member.size), content
            return None
        return self._take_words(last, content)

    def _take_words(self, suffix: str, content: bytes) -> str | None:
        try:
            words, _ = decoded(content)
            if suffix == "json":
                values = json.loads(words)
                self._extra |= values if isinstance(values, dict) else {"json": values}
            elif suffix in CLASSES:
                self._extra["label"] = words.strip()
            elif words.strip():
                self._text = words.strip()
        except UnicodeDecodeError:
            return f"its .{suffix} is not UTF-8"
        except (ValueError, RecursionError):
            return f"its .{suffix} is not JSON"
        return None


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream: IO[bytes] | None = tar.extractfile(member)
    if stream is None:
        return b""
    with stream:
        return stream.read()
