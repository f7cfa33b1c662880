"""One thing a question can be about."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

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
