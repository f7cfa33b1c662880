"""A picture that fits is sent as it is, and all that is not the picture stays here."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from twothirds.models.prompting.pictures import ORIENTATION, stripped_url

SECRET = b"where it was taken"


def photo(side: int = 64) -> Image.Image:
    noise = np.random.default_rng(0).normal(0, 8, (side, side, 3))
    ramp = np.linspace(40, 200, side)[:, None, None]
    return Image.fromarray(np.clip(ramp + noise, 0, 255).astype(np.uint8))


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def sent(content: bytes, size: int = 64) -> bytes | None:
    url = stripped_url(content, size)
    return base64.b64decode(url.partition(",")[2]) if url else None


def pixels(content: bytes) -> bytes:
    with Image.open(io.BytesIO(content)) as image:
        return image.tobytes()


def noted() -> Image.Exif:
    exif = Image.Exif()
    exif[0x010E] = SECRET.decode()
    return exif


@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_that_fits_keeps_its_pixels_and_loses_its_metadata(progressive: bool) -> None:
    plain = saved(photo(), "JPEG", progressive=progressive)
    assert sent(plain) == plain
    told = saved(photo(), "JPEG", progressive=progressive, exif=noted(), comment=SECRET, xmp=SECRET) + SECRET
    stripped = sent(told)
    assert stripped == plain
    assert SECRET in told


def test_a_flat_png_loses_its_texts_and_what_follows_it() -> None:
    drawn = Image.new("RGB", (64, 40), "red")
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Comment", SECRET.decode())
    told = saved(drawn, "PNG", pnginfo=texts, exif=noted()) + SECRET
    stripped = sent(told)
    assert stripped is not None
    assert SECRET in told
    assert SECRET not in stripped
    assert pixels(stripped) == pixels(told)


def test_what_must_be_changed_is_encoded_again() -> None:
    turned = noted()
    turned[ORIENTATION] = 6
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "blue")]
    for content in (
        saved(photo(65), "JPEG"),
        saved(photo(), "JPEG", exif=turned),
        saved(photo().convert("CMYK"), "JPEG"),
        saved(photo(), "PNG"),  # a photograph is much smaller as JPEG
        saved(Image.new("RGBA", (20, 20)), "PNG"),
        saved(Image.new("P", (20, 20)), "PNG"),
        saved(frames[0], "PNG", save_all=True, append_images=frames[1:]),
        saved(photo(), "WEBP"),
        saved(frames[0], "GIF"),
    ):
        assert sent(content) is None


def test_a_damaged_picture_is_not_sent() -> None:
    for whole in (saved(photo(), "JPEG"), saved(Image.new("RGB", (64, 64), "red"), "PNG")):
        for cut in range(0, len(whole) - 1, 7):
            stripped = sent(whole[:cut])
            assert stripped is None or pixels(stripped)
        assert sent(whole[: len(whole) // 2]) is None


def test_pictures_that_ship_are_sent_with_the_same_pixels() -> None:
    flags = sorted((Path(__file__).parents[4] / "datasets" / "flags" / "images").glob("*.png"))[:20]
    contents = [flag.read_bytes() for flag in flags]
    fitting = [(content, stripped) for content in contents if (stripped := sent(content, 512))]
    assert fitting
    assert all(pixels(content) == pixels(stripped) for content, stripped in fitting)
