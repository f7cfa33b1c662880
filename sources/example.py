"""One thing a question can be about."""

from __future__ import annotations

from dataclasses import dataclass

from sources.content import read_bytes
from sources.errors import Unreadable, Vanished
from sources.location import shown


@dataclass(frozen=True, slots=True)
class Example:
    """A picture or a text. `digest` is the SHA-256 of its content: a renamed file is the same, a changed one is not."""

    id: str
    digest: str
    text: str | None = None
    image: str | None = None  # an absolute path, an fsspec URL or a Parquet cell; the bytes are read only when needed

    def image_bytes(self) -> bytes:
        if self.image is None:
            raise ValueError(f"example {self.id!r} has no image")
        try:
            return read_bytes(self.image)
        except Unreadable as problem:
            where = f"image {shown(self.image)} of example {self.id!r}"
            raise Vanished(f"{where} cannot be read any more ({problem}): restore it and run again") from None
