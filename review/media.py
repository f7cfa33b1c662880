"""What examples look like in a browser. Pictures are encoded anew; films are sent as they are, as films only."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from sources.dataset import Example
from sources.errors import DatasetError
from sources.images import open_image
from sources.moving import animated_webp, is_film

SIDES = {"large": 1000, "small": 480}
# What browsers play; of other films the first frame is shown.
FILMS = {".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm", ".mov": "video/quicktime"}
QUALITY = 85
KEPT_BYTES = 128 * 2**20


@dataclass(frozen=True)
class Media:
    kind: str
    content: bytes


def film_kind(image: str | None) -> str | None:
    return next((kind for suffix, kind in FILMS.items() if (image or "").lower().endswith(suffix)), None)


class Pictures:
    """Encoded pictures; those used last are kept, for many people look at the same ones."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Media] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def of(self, digest: str, shown: dict[str, Any], size: str) -> Media | None:
        """None for what is no picture, or cannot be read any more."""
        with self._lock:
            if (digest, size) in self._kept:
                self._kept.move_to_end((digest, size))
                return self._kept[digest, size]
        example = Example(shown["id"], digest, image=shown.get("image"), home=shown.get("home"))
        media = _encoded(example, size) if example.image else None
        if media is not None:
            self._keep((digest, size), media)
        return media

    def _keep(self, at: tuple[str, str], media: Media) -> None:
        with self._lock:
            if at not in self._kept:
                self._kept[at] = media
                self._bytes += len(media.content)
            while self._bytes > KEPT_BYTES and len(self._kept) > 1:
                self._bytes -= len(self._kept.popitem(last=False)[1].content)


def _encoded(example: Example, size: str) -> Media | None:
    side = SIDES[size]
    try:
        kind, content = film_kind(example.image), example.image_bytes()
        if kind is not None and is_film(content):
            return Media(kind, content)
        if moving := animated_webp(example, side):
            return Media("image/webp", moving)
        picture = open_image(example, longest_side=side)
    except DatasetError:
        return None
    written = io.BytesIO()
    picture.save(written, "WEBP", quality=QUALITY, method=2)
    return Media("image/webp", written.getvalue())
