"""Pictures, and films by their first frame: what is accepted, what is wrong with one, how one is opened for looking."""

from __future__ import annotations

import io
import logging
import threading
import warnings
from typing import TYPE_CHECKING

from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from sources.errors import DatasetError
from sources.film import MAX_PIXELS, FilmError, first_frame, is_film
from sources.film import SUFFIXES as FILM_SUFFIXES

if TYPE_CHECKING:
    from sources.dataset import Example

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
SUFFIXES = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff")
# Files that people take for pictures: each is read, and reported where its content is in none of FORMATS.
OTHER_SUFFIXES = (".svg", ".svgz", ".heic", ".heif", ".avif", ".jxl", ".jp2", ".ico", ".psd", ".tga", ".ppm", ".eps")
LARGE_PIXELS = 16_000_000

# Process-wide, because warning filters cannot be changed safely while threads decode.
Image.MAX_IMAGE_PIXELS = MAX_PIXELS
warnings.filterwarnings("ignore", module=r"PIL\.")  # oddities of files that decode well
logging.getLogger("PIL").setLevel(logging.CRITICAL)  # problem_of reports what is wrong with a picture
warnings.simplefilter("error", Image.DecompressionBombWarning)

_large_images = threading.Lock()  # one at a time: threads must not multiply the memory of the largest pictures


class _TooLarge(Exception):
    pass


def is_image(name: str) -> bool:
    return name.lower().endswith(SUFFIXES + OTHER_SUFFIXES + FILM_SUFFIXES)


def problem_of(content: bytes) -> str | None:
    """Why these bytes are not a usable picture or film, or None. The picture, or the first frame of a film, is really
    decoded; the suffix does not matter."""
    if not content:
        return "empty file"
    try:
        if is_film(content):
            first_frame(content)
            return None
        with _opened(content) as image:
            image.draft("RGB", (1, 1))  # a JPEG is read to its end all the same, but at an eighth of its size
            _decode(image)
    except (_TooLarge, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return f"image has more than {MAX_PIXELS // 1_000_000} million pixels: make it smaller"
    except FilmError as error:
        return str(error)
    except UnidentifiedImageError:
        return "not a PNG, JPEG, WebP, GIF, BMP or TIFF image, nor a film: convert it"
    except Exception as error:  # decoders of hostile files raise anything from struct.error to SyntaxError
        return f"damaged image ({' '.join(str(error).split())[:100] or type(error).__name__})"
    return None


def open_image(example: Example, *, longest_side: int | None = None) -> Image.Image:
    """The picture as a viewer shows it: upright, RGB, on white where it is transparent, the first frame of an
    animation or a film, and no side longer than `longest_side`."""
    content = example.image_bytes()
    try:
        picture = first_frame(content) if is_film(content) else _still(content, longest_side)
    except Exception:
        reason = problem_of(content) or "cannot be converted to RGB"
        raise DatasetError(f"image of example {example.id!r}: {reason}") from None
    if longest_side is not None and max(picture.size) > longest_side:
        picture.thumbnail((longest_side, longest_side), Image.Resampling.LANCZOS)
    return picture


def _still(content: bytes, longest_side: int | None) -> Image.Image:
    with _opened(content) as image:
        if longest_side is not None:
            image.draft("RGB", (longest_side, longest_side))
        _decode(image)
        return _on_white(_eight_bits(_upright(image)))


def _opened(content: bytes) -> ImageFile.ImageFile:
    image = Image.open(io.BytesIO(content), formats=FORMATS)
    if image.width * image.height > MAX_PIXELS:
        raise _TooLarge
    return image


def _decode(image: Image.Image) -> None:
    if image.width * image.height > LARGE_PIXELS:
        with _large_images:
            image.load()
    else:
        image.load()


def _upright(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # damaged EXIF data must not lose the picture
        return image


def _eight_bits(image: Image.Image) -> Image.Image:
    """Grey values of 16 bits, 32 bits or floating point as 8 bits; Pillow would cut them off at 255."""
    import numpy as np

    if not (image.mode.startswith("I") or image.mode == "F"):
        return image
    values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0.0, neginf=0.0)
    if image.mode.startswith("I") and values.min() >= 0 and values.max() < 2**16:
        values = values / 257
    elif values.max() > values.min():
        values = (values - values.min()) * (255 / (values.max() - values.min()))
    return Image.fromarray(values.round().clip(0, 255).astype(np.uint8))


def _on_white(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image.convert("RGB")
    with_alpha = image.convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, with_alpha).convert("RGB")
