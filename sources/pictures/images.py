"""Pictures, and films by their first frame: what is accepted, what is wrong with one, how one is opened for looking."""

from __future__ import annotations

import io
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from twothirds.sources.errors import DatasetError
from twothirds.sources.pictures.film import SUFFIXES as FILM_SUFFIXES
from twothirds.sources.pictures.film import FilmError, first_frame, is_film, is_heic
from twothirds.sources.pictures.limits import (
    MAX_PIXELS,
    STORED_BYTES,
    TooCostly,
    check_blocks,
    check_cost,
    decoded_bytes,
    is_risky,
)
from twothirds.sources.pictures.process import DecodingProcess

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from twothirds.sources.dataset import Example

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
SUFFIXES = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff", ".avif")
# Files that people take for pictures: each is read, and reported where its content is in none of FORMATS.
OTHER_SUFFIXES = (".svg", ".svgz", ".heic", ".heif", ".jxl", ".jp2", ".ico", ".psd", ".tga", ".ppm", ".eps")
# Audio is out of scope: it is recognised for the sake of the message, and never read.
AUDIO = "twothirds reads pictures, films and texts, not audio: give a transcript"
AUDIO_SUFFIXES = (
    *(".mp3", ".wav", ".flac", ".ogg", ".oga", ".opus", ".m4a", ".aac", ".wma", ".aif", ".aiff", ".mid", ".midi"),
)
_AUDIO_STARTS = (b"ID3", b"fLaC", b"OggS", b"FORM", b"MThd", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xf1")
LARGE_PIXELS = 16_000_000
NEARLY_WHITE = 240  # of 255: what is nowhere darker would be lost on white
BAND_PIXELS = 4_000_000  # of grey values that are converted at a time

# Process-wide, because warning filters cannot be changed safely while threads decode.
Image.MAX_IMAGE_PIXELS = MAX_PIXELS
warnings.filterwarnings("ignore", module=r"PIL\.")  # oddities of files that decode well
logging.getLogger("PIL").setLevel(logging.CRITICAL)  # problem_of reports what is wrong with a picture
warnings.simplefilter("error", Image.DecompressionBombWarning)

_large_images = threading.Lock()  # one at a time: threads must not multiply the memory of the largest pictures
_decoder = DecodingProcess()


def is_image(name: str) -> bool:
    return name.lower().endswith(SUFFIXES + OTHER_SUFFIXES + FILM_SUFFIXES)


def is_audio(name: str) -> bool:
    return name.lower().endswith(AUDIO_SUFFIXES)


def _is_recording(content: bytes) -> bool:
    """Judged by the first bytes."""
    if content[:4] == b"RIFF":
        return content[8:12] == b"WAVE"
    return content.startswith(_AUDIO_STARTS) or (content[4:8] == b"ftyp" and content[8:11] in (b"M4A", b"M4B"))


def problem_of(content: bytes) -> str | None:
    """Why these bytes are not a usable picture or film, or None. The picture, or the first frame of a film, is really
    decoded; the suffix does not matter."""
    if not content:
        return "empty file"
    try:
        if _is_recording(content):
            return f"audio: {AUDIO}"
        if is_film(content):
            first_frame(content)
            return None
        with opened(content) as image:
            if is_risky(image):
                _decoder.decode(content, 1)
            else:
                image.draft("RGB", (1, 1))  # a JPEG is read to its end all the same, but at an eighth of its size
                with _memory_for(image):
                    image.load()
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return f"image has more than {MAX_PIXELS // 1_000_000} million pixels: make it smaller"
    except (FilmError, TooCostly) as error:
        return str(error)
    except UnidentifiedImageError:
        return "not a PNG, JPEG, WebP, GIF, BMP, TIFF, AVIF or HEIC image, nor a film: convert it"
    except Exception as error:  # decoders of hostile files raise anything from struct.error to SyntaxError
        return f"damaged image ({' '.join(str(error).split())[:100] or type(error).__name__})"
    return None


def open_image(example: Example, *, longest_side: int | None = None) -> Image.Image:
    """The picture as a viewer shows it: upright, RGB, on white where it is transparent (on black where it would be
    lost on white), the first frame of an animation or a film, and no side longer than `longest_side`."""
    content = example.image_bytes()
    try:
        return _scaled(first_frame(content), longest_side) if is_film(content) else _still(content, longest_side)
    except Exception:
        reason = problem_of(content) or "cannot be converted to RGB"
        raise DatasetError(f"image of example {example.id!r}: {reason}") from None


def opened(content: bytes) -> ImageFile.ImageFile:
    """A picture whose pixels are not decoded yet, and cost no more than they may. Raises TooCostly, and whatever Pillow
    raises."""
    check_blocks(content)
    image = Image.open(io.BytesIO(content), formats=_with_heic() if is_heic(content) else FORMATS)
    check_cost(image, content)
    return image


def _with_heic() -> tuple[str, ...]:
    """HEIC is read where its plug-in is installed. Raises TooCostly, which says what to install."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        raise TooCostly("a HEIC image, which needs pillow-heif: pip install pillow-heif, or convert it") from None
    register_heif_opener(thumbnails=False)
    return (*FORMATS, "HEIF")


def still_in_this_process(content: bytes, longest_side: int | None) -> Image.Image:
    with opened(content) as image:
        return _converted(image, longest_side)


def _still(content: bytes, longest_side: int | None) -> Image.Image:
    with opened(content) as image:
        return _decoder.decode(content, longest_side) if is_risky(image) else _converted(image, longest_side)


def _converted(image: Image.Image, longest_side: int | None) -> Image.Image:
    if longest_side is not None:
        image.draft("RGB", (longest_side, longest_side))
    with _memory_for(image):
        image.load()
        return _scaled(_on_white(_eight_bits(_upright(image))), longest_side)


def _scaled(picture: Image.Image, longest_side: int | None) -> Image.Image:
    if longest_side is not None and max(picture.size) > longest_side:
        picture.thumbnail((longest_side, longest_side), Image.Resampling.LANCZOS)
    return picture


def _memory_for(image: Image.Image) -> AbstractContextManager[object]:
    return _large_images if decoded_bytes(image) > LARGE_PIXELS * STORED_BYTES else nullcontext()


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
    extremes = [(values.min(), values.max()) for _, values in _bands(image)]
    low, high = min(lowest for lowest, _ in extremes), max(highest for _, highest in extremes)
    grey = np.empty((image.height, image.width), np.uint8)
    for top, values in _bands(image):
        if image.mode.startswith("I") and low >= 0 and high < 2**16:
            values = values / 257
        elif high > low:
            values = (values - low) * (255 / (high - low))
        grey[top : top + len(values)] = values.round().clip(0, 255)
    return Image.fromarray(grey)


def _bands(image: Image.Image) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """The grey values in bands of rows: those of a large picture, all at once, would take gigabytes."""
    import numpy as np

    rows = max(BAND_PIXELS // image.width, 1)
    for top in range(0, image.height, rows):
        band = image.crop((0, top, image.width, min(top + rows, image.height))) if rows < image.height else image
        yield top, np.nan_to_num(np.asarray(band, dtype=np.float64), posinf=0.0, neginf=0.0)


def _on_white(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image.convert("RGB")
    with_alpha = image.convert("RGBA")
    least, most = with_alpha.getchannel("A").getextrema()
    if least == 255:  # nothing shows through
        return with_alpha.convert("RGB")
    shown = Image.alpha_composite(Image.new("RGBA", image.size, "white"), with_alpha).convert("RGB")
    if most == 0 or shown.convert("L").point(lambda grey: 255 * (grey < NEARLY_WHITE)).getbbox() is not None:
        return shown
    return Image.alpha_composite(Image.new("RGBA", image.size, "black"), with_alpha).convert("RGB")
