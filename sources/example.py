"""One thing a question can be about."""

from __future__ import annotations

from dataclasses import dataclass

import fsspec


@dataclass(frozen=True, slots=True)
class Example:
    """A picture or a text. `digest` is the SHA-256 of its content: a renamed file is the same, a changed one is not."""

    id: str
    digest: str
    text: str | None = None
    image: str | None = None  # a path or an fsspec URL; the bytes are read only when they are needed

    def image_bytes(self) -> bytes:
        if self.image is None:
            raise ValueError(f"example {self.id!r} has no image")
        with fsspec.open(self.image, "rb") as file:
            content: bytes = file.read()
        return content
