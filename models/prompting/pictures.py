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

from twothirds.sources import DatasetError, Example, FilmError, evenly, frames_of_film, is_film, opened

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
            stripped = stripped_url(example.image_bytes(), self._size)
            urls = (stripped,) if stripped else tuple(map(data_url, frames_of(example, self._size, self._frames)))
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


def stripped_url(content: bytes, size: int) -> str | None:
    """A still picture as it is, without metadata and whatever follows its end; None for one that does not fit, must be
    turned or flattened, or would be much smaller if it were encoded again."""
    try:
        if is_film(content):
            return None
        with opened(content) as image:
            kind, pixels = image.format or "", image.width * image.height
            plain = image.mode in ("RGB", "L") and "transparency" not in image.info
            turned = image.getexif().get(ORIENTATION, 1) != 1
            still = getattr(image, "n_frames", 1) == 1
            if kind not in _STRIPPED or max(image.size) > size or turned or not (plain and still):
                return None
            image.load()
            if len(content) > pixels if kind == "JPEG" else image.getcolors(FLAT_COLOURS) is None:
                return None
        stripped = _STRIPPED[kind](content)
    except Exception:  # damaged: opening it again says how
        return None
    return f"data:image/{kind.lower()};base64,{base64.b64encode(stripped).decode()}"


def _stripped_jpeg(content: bytes) -> bytes:
    """Frames, tables and scans, up to the end of the image. Raises ValueError or IndexError where it has none."""
    kept, at = [content[:2]], 2
    while True:
        if content[at] != 0xFF:
            raise ValueError("a marker is missing")
        marker = content[at + 1]
        if marker == 0xD9:
            return b"".join([*kept, content[at : at + 2]])
        end = at + 2 + int.from_bytes(content[at + 2 : at + 4], "big")
        if marker == 0xDA:  # the scan itself follows, in which 0xFF is followed by 0 or a restart marker
            while not (content[end] == 0xFF and content[end + 1] not in (0, *range(0xD0, 0xD8))):
                end = content.index(0xFF, end + 1)
        is_form = marker == 0xEE or (marker == 0xE0 and end - at == _JFIF_BYTES)  # its colours and its resolution
        is_metadata = marker == 0xFE or 0xE0 <= marker <= 0xEF
        if is_form or not is_metadata:
            kept.append(content[at:end])
        at = end


def _stripped_png(content: bytes) -> bytes:
    """The chunks without which there is no picture. Raises ValueError where it has no end."""
    kept, at = [content[:8]], 8
    while at < len(content):
        end = at + 12 + int.from_bytes(content[at : at + 4], "big")
        name = content[at + 4 : at + 8]
        if name in (b"IHDR", b"PLTE", b"IDAT", b"IEND"):
            kept.append(content[at:end])
        if name == b"IEND":
            return b"".join(kept)
        at = end
    raise ValueError("the end is missing")


ORIENTATION = 0x0112
_JFIF_BYTES = 18  # of the segment, without a thumbnail
_STRIPPED = {"JPEG": _stripped_jpeg, "PNG": _stripped_png}


def frames_of(example: Example, size: int, count: int) -> list[Image]:
    """At most `most_frames` images, no side longer than `size`."""
    from twothirds.sources import open_image

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
