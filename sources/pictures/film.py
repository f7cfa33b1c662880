"""Moving pictures: films, read frame by frame by PyAV (optional: `pip install av`), and animations.

Animations are decoded and encoded again for a browser, so that nothing but pixels and times gets through."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from PIL import Image, ImageSequence

from twothirds.sources.pictures.limits import MAX_PIXELS, check_blocks, check_cost

if TYPE_CHECKING:
    from twothirds.sources.dataset import Example

SUFFIXES = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v", ".mpg", ".mpeg")
MAX_FILM_PIXELS = 500 * MAX_PIXELS  # pixels times frames: about eight minutes of 1920 × 1080
# Still pictures in a film's container, by the brand that it begins with.
_AVIF = (b"avif", b"avis")
_HEIC = (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1")


class FilmError(Exception):
    """Why a film cannot be used, in a few words."""


def is_film(content: bytes) -> bool:
    """Judged by the first bytes."""
    if content[4:8] == b"ftyp":
        return content[8:12] not in _AVIF + _HEIC
    is_avi = content[:4] == b"RIFF" and content[8:12] == b"AVI "
    return is_avi or content[:4] in (b"\x1a\x45\xdf\xa3", b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3")


def is_heic(content: bytes) -> bool:
    """Judged by the first bytes. AVIF may begin with a brand that both have, and names its own after it."""
    return content[4:8] == b"ftyp" and content[8:12] in _HEIC and not any(brand in content[16:64] for brand in _AVIF)


def first_frame(content: bytes) -> Image.Image:
    with _frames(content) as frames:
        for frame in frames:
            picture: Image.Image = frame.to_image()
            return picture
    raise FilmError("damaged film (it has no frame)")


def frames_of_film(content: bytes, count: int) -> list[Image.Image]:
    """`count` frames, evenly spaced, the first and the last among them; all of a film that has no more."""
    with _frames(content) as frames:
        total = sum(1 for _ in frames)
    wanted = set(evenly(total, count))
    with _frames(content) as frames:
        return [frame.to_image() for number, frame in enumerate(islice(frames, total)) if number in wanted]


def evenly(total: int, count: int) -> list[int]:
    """`count` positions out of `total`, the first and the last among them, evenly spaced."""
    if total <= count:
        return list(range(total))
    if count == 1:
        return [0]
    return [round(place * (total - 1) / (count - 1)) for place in range(count)]


@contextmanager
def _frames(content: bytes) -> Iterator[Iterator[Any]]:
    try:
        import av
    except ImportError:
        raise FilmError("a film, which needs PyAV: pip install av, or give its frames as pictures") from None
    try:
        with av.open(io.BytesIO(content), mode="r") as film:
            if not film.streams.video:
                raise FilmError("a film without pictures")
            stream = film.streams.video[0]
            if stream.width * stream.height > MAX_PIXELS:
                raise FilmError(f"film has more than {MAX_PIXELS // 1_000_000} million pixels: make it smaller")
            _check_length(stream.frames, stream.width * stream.height)  # as it says itself
            yield _bounded(film.decode(stream))
    except FilmError:
        raise
    except Exception as error:  # decoders of hostile files raise anything
        raise FilmError(f"damaged film ({type(error).__name__}): convert it to MP4") from None


def _bounded(frames: Iterator[Any]) -> Iterator[Any]:
    for number, frame in enumerate(frames, 1):
        _check_length(number, frame.width * frame.height)
        yield frame


def _check_length(frames: int, pixels: int) -> None:
    if frames * pixels > MAX_FILM_PIXELS:
        raise FilmError(
            f"film has more than {MAX_FILM_PIXELS // pixels:,} frames of its size: cut it or make it smaller"
        )


FORMATS = ("GIF", "WEBP")
MAX_FRAMES = 120
MIN_FRAME_MS = 20
WEBP_QUALITY = 80


def is_animation(example: Example) -> bool:
    """Whether it has several frames, by its header; False for what cannot be read."""
    try:
        content = example.image_bytes()
        check_blocks(content)
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            check_cost(image, content)
            return getattr(image, "n_frames", 1) > 1
    except Exception:  # opening it as a picture says why
        return False


def animated_webp(example: Example, longest_side: int) -> bytes | None:
    """An animation as WebP with its times, its first frames where there are very many; None for anything else."""
    try:
        content = example.image_bytes()
        check_blocks(content)
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            check_cost(image, content)
            if getattr(image, "n_frames", 1) < 2 or image.width * image.height * MAX_FRAMES > 8 * MAX_PIXELS:
                return None
            frames, times = [], []
            for number, frame in enumerate(ImageSequence.Iterator(image)):
                if number == MAX_FRAMES:
                    break
                picture = frame.convert("RGBA")
                picture.thumbnail((longest_side, longest_side), Image.Resampling.LANCZOS)
                frames.append(picture)
                times.append(max(int(frame.info.get("duration", 100)), MIN_FRAME_MS))
    except Exception:  # not of these formats, or damaged: opening it as a still picture says which
        return None
    written = io.BytesIO()
    frames[0].save(
        written, "WEBP", save_all=True, append_images=frames[1:], duration=times, loop=0, quality=WEBP_QUALITY, method=1
    )
    return written.getvalue()
