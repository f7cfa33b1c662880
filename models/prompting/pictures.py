"""Pictures as data URLs: upright, made small, and without what cameras write beside the pixels.

A moving picture is a few frames, evenly spaced: GIF and WebP by Pillow, films by PyAV where it is installed."""

from __future__ import annotations

import base64
import io
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from sources.dataset import Example
from sources.errors import DatasetError
from sources.moving import FilmError, evenly, frames_of_film, is_film

if TYPE_CHECKING:
    from PIL.Image import Image

MOVING_FORMATS = ("GIF", "WEBP")
STILL_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff")
FLAT_COLOURS = 256  # a drawing with no more colours stays lossless
JPEG_QUALITY = 90
KEPT_BYTES = 64 * 2**20


class Pictures:
    """The data URLs of examples. Those used last are kept: one example is asked about many times."""

    def __init__(self, size: int, frames: int) -> None:
        self._size = size
        self._frames = frames
        self._kept: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def known(self, example: Example) -> tuple[str, ...] | None:
        with self._lock:
            urls = self._kept.get(example.digest)
            if urls is not None:
                self._kept.move_to_end(example.digest)
            return urls

    def urls(self, example: Example) -> tuple[str, ...]:
        """One URL for a still picture, one per frame for a moving one. Raises DatasetError for what is no picture."""
        urls = self.known(example)
        if urls is None:
            urls = tuple(data_url(frame) for frame in frames_of(example, self._size, self._frames))
            self._keep(example.digest, urls)
        return urls

    def _keep(self, digest: str, urls: tuple[str, ...]) -> None:
        with self._lock:
            if digest not in self._kept:
                self._kept[digest] = urls
                self._bytes += sum(map(len, urls))
            while self._bytes > KEPT_BYTES and len(self._kept) > 1:
                self._bytes -= sum(map(len, self._kept.popitem(last=False)[1]))


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
    """At most as many pictures as `most_frames` says, no side longer than `size`."""
    from sources.images import open_image

    count = most_frames(example, count)
    content = example.image_bytes()
    if is_film(content):
        try:
            return [_shown(frame, size) for frame in frames_of_film(content, count)]
        except FilmError as error:
            raise DatasetError(f"image of example {example.id!r}: {error}") from None
    return _moving(content, size, count) or [open_image(example, longest_side=size)]


def most_frames(example: Example, count: int) -> int:
    """At most how many pictures an example is shown as, told by its name alone."""
    return 1 if (example.image or "").lower().endswith(STILL_SUFFIXES) else count


def _moving(content: bytes, size: int, count: int) -> list[Image]:
    """The frames of an animation; nothing for a still picture, or for one that cannot be opened."""
    from PIL import Image as Pillow

    try:
        with Pillow.open(io.BytesIO(content), formats=MOVING_FORMATS) as image:
            total = getattr(image, "n_frames", 1)
            if total < 2 or count < 2:
                return []
            frames = []
            for number in evenly(total, count):
                image.seek(number)
                frames.append(_shown(image, size))
            return frames
    except Exception:  # not of these formats, or damaged: opening it as a still picture says which
        return []


def _shown(image: Image, size: int) -> Image:
    from PIL import Image as Pillow

    frame = image.convert("RGBA")
    flat = Pillow.alpha_composite(Pillow.new("RGBA", frame.size, "white"), frame).convert("RGB")
    flat.thumbnail((size, size), Pillow.Resampling.LANCZOS)
    return flat
