"""What a browser fetches for a page: pictures, decoded and encoded again as WebP; films, unchanged and as films only;
scripts and style sheets."""

from __future__ import annotations

import io
import pathlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from cachetools import LRUCache
from fastapi import Path
from fastapi.responses import Response

from twothirds.sources import DatasetError, Example, animated_webp, is_animation, is_film, open_image
from twothirds.store.review import Queue
from twothirds.studio.review.access import Refusal

SIDES = {"large": 1000, "small": 480}
STILL = "-still"  # after a size: only the first frame of an animation or a film
Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]
Size = Annotated[str, Path(pattern=f"^({'|'.join(SIDES)})({STILL})?$")]
# Films that browsers play; of others the first frame is shown.
FILMS = {".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm", ".mov": "video/quicktime"}
WEBP_QUALITY = 85
MAX_CACHE_BYTES = 128 * 2**20
MAX_CACHED_KINDS = 100_000
FILE_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
MAY_MOVE = (".gif", ".webp", ".apng")


@dataclass(frozen=True)
class Media:
    kind: str
    content: bytes


def film_kind(image: str | None) -> str | None:
    return next((kind for suffix, kind in FILMS.items() if (image or "").lower().endswith(suffix)), None)


class BrowserPictures:
    """Examples encoded for browsers, with a least-recently-used cache: many people look at the same ones."""

    def __init__(self) -> None:
        self._cache: LRUCache[tuple[str, str], Media] = LRUCache(MAX_CACHE_BYTES, lambda media: len(media.content))
        self._moving: LRUCache[str, bool] = LRUCache(MAX_CACHED_KINDS)
        self._lock = threading.Lock()

    def is_moving(self, digest: str, stored: dict[str, Any]) -> bool:
        """Whether it is an animation, by its header; False where it cannot be read."""
        if not (stored["image"] or "").lower().endswith(MAY_MOVE):
            return False
        with self._lock:
            if (cached := self._moving.get(digest)) is not None:
                return cached
        moving = is_animation(_example(digest, stored))
        with self._lock:
            self._moving[digest] = moving
        return moving

    def get(self, digest: str, stored: dict[str, Any], size: str) -> Media | None:
        """None if the example is not a picture, or can no longer be read."""
        with self._lock:
            if (cached := self._cache.get((digest, size))) is not None:
                return cached
        example = _example(digest, stored)
        media = _encoded(example, size) if example.image else None
        if media is not None and len(media.content) <= MAX_CACHE_BYTES:
            with self._lock:
                self._cache[digest, size] = media
        return media


class StaticFiles:
    """Read once; nothing that an address says is taken for a path."""

    def __init__(self, paths: Iterable[pathlib.Path]) -> None:
        self._files = {path.name: (path.read_bytes(), FILE_KINDS[path.suffix]) for path in paths}

    def response(self, name: str) -> Response:
        if name not in self._files:
            raise Refusal(404, "refused.page")
        content, kind = self._files[name]
        return Response(content, media_type=kind, headers={"Cache-Control": "public, max-age=300"})


def picture_of(queue: Queue, pictures: BrowserPictures, digest: str, size: str) -> Response:
    """Of an example that the queue asks about."""
    shown = queue.questions.example(digest)
    found = pictures.get(digest, shown, size) if shown else None
    if found is None:
        raise Refusal(404, "refused.example")
    cache = {"Cache-Control": "private, max-age=86400, immutable"}
    return Response(found.content, media_type=found.kind, headers=cache)


def _example(digest: str, stored: dict[str, Any]) -> Example:
    return Example(stored["id"], digest, **{name: stored.get(name) for name in ("text", "image", "home")})


def _encoded(example: Example, size: str) -> Media | None:
    side = SIDES[size.removesuffix(STILL)]
    try:
        kind, content = film_kind(example.image), example.image_bytes()
        if kind is not None and not size.endswith(STILL) and is_film(content):
            return Media(kind, content)
        if not size.endswith(STILL) and (moving := animated_webp(example, side)):
            return Media("image/webp", moving)
        picture = open_image(example, longest_side=side)
    except DatasetError:
        return None
    written = io.BytesIO()
    picture.save(written, "WEBP", quality=WEBP_QUALITY, method=2)
    return Media("image/webp", written.getvalue())
