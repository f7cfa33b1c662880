"""Images as data URLs: upright, scaled down, and without metadata.

A moving image becomes a few frames, evenly spaced: GIF and WebP by Pillow, films by PyAV if it is installed."""

from __future__ import annotations

import base64
import io
import threading
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from cachetools import LRUCache

from sources import DatasetError, Example, FilmError, evenly, frames_of_film, is_film, opened

if TYPE_CHECKING:
    from PIL.Image import Image

MOVING_FORMATS = ("GIF", "WEBP")
STILL_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff")
FLAT_COLOURS = 256  # a drawing with no more colours stays lossless
JPEG_QUALITY = 90
CACHE_BYTES = 64 * 2**20


class ImageUrls:
    """The data URLs of examples. Those used last are cached: one example is asked about many times."""

    def __init__(self, size: int, frames: int) -> None:
        self._size = size
        self._frames = frames
        self._cache: LRUCache[str, tuple[str, ...]] = LRUCache(CACHE_BYTES, getsizeof=lambda urls: sum(map(len, urls)))
        self._lock = threading.Lock()

    def cached(self, example: Example) -> tuple[str, ...] | None:
        with self._lock:
            return self._cache.get(example.digest)

    def urls(self, example: Example) -> tuple[str, ...]:
        """One URL for a still image, one per frame for a moving one. Raises DatasetError for what is not an image."""
        urls = self.cached(example)
        if urls is None:
            urls = tuple(data_url(frame) for frame in frames_of(example, self._size, self._frames))
            with self._lock, suppress(ValueError):  # larger than the whole cache
                self._cache[example.digest] = urls
        return urls


def data_url(image: Image) -> str:
    buffer = io.BytesIO()
    if image.getcolors(FLAT_COLOURS) is not None:
        image.save(buffer, "PNG", optimize=True)
        kind = "png"
    else:
        image.save(buffer, "JPEG", quality=JPEG_QUALITY)
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def frames_of(example: Example, size: int, count: int) -> list[Image]:
    """At most `most_frames` images, no side longer than `size`."""
    from sources import open_image

    count = most_frames(example, count)
    content = example.image_bytes()
    if is_film(content):
        try:
            return [_flattened(frame, size) for frame in frames_of_film(content, count)]
        except FilmError as error:
            raise DatasetError(f"image of example {example.id!r}: {error}") from None
    return _moving(content, size, count) or [open_image(example, longest_side=size)]


def most_frames(example: Example, count: int) -> int:
    """At most how many images an example is sent as, by its name alone."""
    return 1 if (example.image or "").lower().endswith(STILL_SUFFIXES) else count


@lru_cache(maxsize=20_000)
def sent_sizes(example: Example, size: int, count: int) -> tuple[tuple[int, int], ...]:
    """Width and height of the images that `frames_of` would give, by the header alone; the largest that they may be
    where it does not tell."""
    largest = ((size, size),) * most_frames(example, count)
    try:
        content = example.image_bytes()
        if is_film(content):
            return largest
        with opened(content) as image:
            moving = count > 1 and image.format in MOVING_FORMATS
            frames = min(getattr(image, "n_frames", 1), count) if moving else 1
            share = min(1.0, size / max(image.size))
            return ((max(round(image.width * share), 1), max(round(image.height * share), 1)),) * frames
    except Exception:  # gone, or damaged: the run says so
        return largest


def _moving(content: bytes, size: int, count: int) -> list[Image]:
    """The frames of an animation; nothing for a still picture, or for one that cannot be opened."""
    if count < 2:
        return []
    try:
        with opened(content) as image:
            if image.format not in MOVING_FORMATS:
                return []
            total = getattr(image, "n_frames", 1)
            if total < 2:
                return []
            frames = []
            for number in evenly(total, count):
                image.seek(number)
                frames.append(_flattened(image, size))
            return frames
    except Exception:  # not of these formats, or damaged: opening it as a still picture says which
        return []


def _flattened(image: Image, size: int) -> Image:
    from PIL import Image as Pillow

    frame = image.convert("RGBA")
    flat = Pillow.alpha_composite(Pillow.new("RGBA", frame.size, "white"), frame).convert("RGB")
    flat.thumbnail((size, size), Pillow.Resampling.LANCZOS)
    return flat
