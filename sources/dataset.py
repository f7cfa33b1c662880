"""What can be wrong with a data set: as a whole, or with one file of it.

One thing a question can be about.

A data set that was read: its examples, what had to be left out, and the truth where it is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sources.content import read_bytes
from sources.errors import DatasetError, Unreadable, Vanished
from sources.location import printable, shown

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Example:
    """A picture or a text. `digest` is the SHA-256 of its content: a renamed file is the same, a changed one is not."""

    id: str
    digest: str
    text: str | None = None
    image: str | None = None  # an absolute path, an fsspec URL or a Parquet cell; the bytes are read only when needed
    home: str | None = None  # host and port of a data set on the web: of hosts that are not public, the only one to ask

    def image_bytes(self) -> bytes:
        """Raises Vanished where the content is not there any more, or is another one: an answer to what is seen now
        would be kept as one to what was there before."""
        if self.image is None:
            raise ValueError(f"example {self.id!r} has no image")
        where = f"image {shown(self.image)} of example {self.id!r}"
        try:
            content = read_bytes(self.image, self.home)
        except Unreadable as problem:
            raise Vanished(f"{where} cannot be read any more ({problem}): restore it and run again") from None
        if hashlib.sha256(content).hexdigest() != self.digest:
            raise Vanished(f"{where} has changed since the data set was read: run again to ask about what it is now")
        return content


def picture_at(path: Path, name: str = "") -> Example:
    """A picture that belongs to no data set, as it is now."""
    return Example(name or path.stem, hashlib.sha256(path.read_bytes()).hexdigest(), image=str(path))


__all__ = ["Dataset", "DatasetError", "Example", "Quarantined", "Truth", "digest_of_examples"]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Something in the data set that is no example, and why. Where it has no id, `id` says which row it is."""

    id: str
    reason: str

    def __str__(self) -> str:
        name = self.id if printable(self.id) == self.id else repr(self.id)
        return f"{name}: {self.reason}"


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


def digest_of_examples(examples: Iterable[Example]) -> str:
    whole = hashlib.sha256()
    for example in examples:
        whole.update(json.dumps([example.id, example.digest]).encode() + b"\n")
    return whole.hexdigest()
