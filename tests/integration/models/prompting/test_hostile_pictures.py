"""A corpus of broken and hostile pictures, made here: each is handled as its entry says, by loading, by what models are
sent, by the review page and by the report, or it is set aside in one line; and nothing else is lost."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo

from tests.support.tiny_models import save_tiny_llava
from twothirds.models.prompting.pictures import ImageUrls, most_frames
from twothirds.reports.page.browser_data import thumbnails
from twothirds.sources.dataset import Dataset, Example, picture_at
from twothirds.sources.load import load_dataset
from twothirds.sources.pictures.images import open_image
from twothirds.sources.printable import printable
from twothirds.studio.review.media import BrowserPictures

SCRIPT = b"<script>alert('marked')</script>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert("marked")</script></svg>'
RED, BLUE = (200, 0, 0), (0, 0, 200)


def saved(image: Image.Image, format: str, **options: object) -> bytes:
    written = io.BytesIO()
    image.save(written, format, **options)
    return written.getvalue()


def plain(size: tuple[int, int] = (40, 20), colour: tuple[int, int, int] = RED) -> Image.Image:
    return Image.new("RGB", size, colour)


def noise(size: tuple[int, int] = (60, 60)) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (*size, 3), np.uint8))


def turned(format: str) -> bytes:
    """Lies on its side: 40×20 with blue at the left, which a viewer shows 20×40 with blue on top."""
    picture = plain()
    picture.paste(BLUE, (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(picture, format, exif=exif, **({"quality": 95} if format == "JPEG" else {"lossless": True}))


def animation(format: str) -> bytes:
    frames = [plain(colour=RED), plain(colour=BLUE)]
    return saved(frames[0], format, save_all=True, append_images=frames[1:], duration=100, lossless=True)


def png_of_size(width: int, height: int) -> bytes:
    """A header that promises much, and nearly nothing behind it."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
    packed = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def noted() -> bytes:
    """A small picture with 20 MB of zeros packed into a note."""
    note = PngInfo()
    note.add_text("Comment", "\0" * 20_000_000, zip=True)
    return saved(plain(), "PNG", pnginfo=note)


def see_through() -> bytes:
    picture = Image.new("P", (40, 20), 0)
    picture.putpalette([*RED, *BLUE])
    return saved(picture, "PNG", transparency=0)


def profile() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def large_gif() -> bytes:
    frame = b"," + struct.pack("<HHHH", 0, 0, 65_535, 65_535) + b"\0"
    return b"GIF89a" + struct.pack("<HH", 65_535, 65_535) + b"\0\0\0" + frame + b"\x02\x02\x44\x01\0;"


def many_scans() -> bytes:
    """7 kB that take a third of a second for every hundred scans."""
    whole = saved(plain((1000, 1000)), "JPEG", progressive=True)
    return whole[:-2] + whole[whole.rfind(b"\xff\xda") : -2] * 20_000 + whole[-2:]


def many_frames(size: tuple[int, int] = (4000, 4000), frames: int = 20_000) -> bytes:
    """Each frame is one pixel, and the whole canvas is drawn for it."""
    frame = b"," + struct.pack("<HHHH", 0, 0, 1, 1) + b"\0" + b"\x02\x02\x44\x01\0"
    return b"GIF89a" + struct.pack("<HH", *size) + b"\x80\0\0" + bytes(6) + frame * frames + b";"


def huge_tile() -> bytes:
    """A picture of one pixel, in a tile of 30,000 × 30,000."""
    tile = zlib.compress(bytes(3_000_000))
    tags = ((256, 1), (257, 1), (258, 8), (259, 8), (262, 1), (277, 1), (322, 30_000), (323, 30_000))
    entries = [struct.pack("<HHII", tag, 4, 1, value) for tag, value in (*tags, (324, 8), (325, len(tile)))]
    directory = struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4)
    return b"II*\0" + struct.pack("<I", 8 + len(tile)) + tile + directory


@dataclass(frozen=True)
class Case:
    make: Callable[[], bytes]
    reason: str = ""  # why it is set aside
    size: tuple[int, int] = (40, 20)  # as it is shown
    colour: tuple[int, int, int] | None = RED  # of the pixel at the top left
    frames: int = 1  # that a model is sent

    @property
    def good(self) -> bool:
        return not self.reason


CASES = {
    "cut.png": Case(lambda: saved(noise(), "PNG")[:-4000], "damaged image"),
    "cut.jpg": Case(lambda: saved(noise(), "JPEG")[:-1000], "damaged image"),
    "cut.gif": Case(lambda: saved(noise(), "GIF")[:-1500], "damaged image"),
    "cut.webp": Case(lambda: saved(noise(), "WEBP")[:-500], "damaged image"),
    "empty.png": Case(lambda: b"", "empty file"),
    "words.png": Case(lambda: b"not a picture at all", "convert it"),
    "page.jpg": Case(lambda: b"<html>" + SCRIPT, "convert it"),
    "script.svg": Case(lambda: SVG, "convert it"),
    "script.png": Case(lambda: SVG, "convert it"),
    "bomb.png": Case(lambda: png_of_size(60_000, 60_000), "million pixels: make it smaller"),
    "bomb-by-half.png": Case(lambda: png_of_size(9_000, 8_000), "million pixels: make it smaller"),
    "short-of-data.png": Case(lambda: png_of_size(2_000, 2_000), "damaged image"),
    "bomb.gif": Case(large_gif, "million pixels: make it smaller"),
    "bomb-in-a-note.png": Case(noted, "damaged image"),
    "many-scans.jpg": Case(many_scans, "JPEG has more than 100 scans of 1000 × 1000 pixels: save it again"),
    "many-frames.gif": Case(many_frames, "animation has more than 128 frames of 4000 × 4000 pixels: make it shorter"),
    "huge-tile.tif": Case(huge_tile, "TIFF takes more than 512 MB to decode: save it again"),
    "ten-scans.jpg": Case(lambda: saved(plain(), "JPEG", quality=95, progressive=True)),
    "deflated.tif": Case(lambda: saved(plain(), "TIFF", compression="tiff_adobe_deflate")),
    "jpeg-inside.tif": Case(lambda: saved(plain(), "TIFF", compression="jpeg", quality=95)),
    "png-called.jpg": Case(lambda: saved(plain(), "PNG")),
    "gif-called.png": Case(lambda: animation("GIF"), frames=1),
    "turned.jpg": Case(lambda: turned("JPEG"), size=(20, 40), colour=BLUE),
    "turned.webp": Case(lambda: turned("WEBP"), size=(20, 40), colour=BLUE),
    "turned.png": Case(lambda: turned("PNG"), size=(20, 40), colour=BLUE),
    "cmyk.jpg": Case(lambda: saved(plain().convert("CMYK"), "JPEG", quality=95)),
    "grey-16.png": Case(
        lambda: saved(Image.fromarray(np.full((20, 40), 200 * 257, np.uint16)), "PNG"), colour=(200, 200, 200)
    ),
    "moving.gif": Case(lambda: animation("GIF"), frames=2),
    "moving.webp": Case(lambda: animation("WEBP"), frames=2),
    "moving.png": Case(lambda: animation("PNG")),  # by its first frame
    "dot.png": Case(lambda: saved(plain((1, 1)), "PNG"), size=(1, 1)),
    "line.png": Case(lambda: saved(plain((1, 30_000)), "PNG"), size=(1, 30_000)),
    "lying-line.png": Case(lambda: saved(plain((30_000, 1)), "PNG"), size=(30_000, 1)),
    "three-high.png": Case(lambda: saved(plain((50, 3)), "PNG"), size=(50, 3)),
    "see-through.png": Case(see_through, colour=(255, 255, 255)),
    "polyglot.png": Case(lambda: saved(plain(), "PNG") + b"<html>" + SCRIPT + b"PK\x03\x04"),
    "polyglot.gif": Case(lambda: saved(plain(), "GIF") + b"/*" + SCRIPT),
    "polyglot.jpg": Case(lambda: saved(plain(), "JPEG", quality=95, comment=SCRIPT)),
    "profiled.jpg": Case(lambda: saved(plain(), "JPEG", quality=95, icc_profile=profile())),
    "grey.bmp": Case(lambda: saved(plain().convert("L"), "BMP"), colour=None),
    "one-bit.tif": Case(lambda: saved(Image.new("1", (40, 20), 1), "TIFF"), colour=(255, 255, 255)),
}
GOOD = [name for name, case in CASES.items() if case.good]


@cache
def folder_of(place: Path) -> Dataset:
    for name, case in CASES.items():
        (place / name).write_bytes(case.make())
    return load_dataset(str(place))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return folder_of(tmp_path_factory.mktemp("corpus"))


def example_of(corpus: Dataset, name: str) -> Example:
    return next(example for example in corpus.examples if example.id == name)


def close_to(seen: object, wanted: tuple[int, int, int]) -> bool:
    assert isinstance(seen, tuple)
    return all(abs(a - b) < 24 for a, b in zip(seen, wanted, strict=True))


def test_what_is_good_is_loaded_and_the_rest_is_set_aside_with_its_reason(corpus: Dataset) -> None:
    assert {example.id for example in corpus.examples} == set(GOOD)
    reasons = {skipped.id: skipped.reason for skipped in corpus.quarantined}
    assert set(reasons) == set(CASES) - set(GOOD)
    for name, reason in reasons.items():
        assert CASES[name].reason in reason
        assert printable(reason) == reason


@pytest.mark.parametrize("name", GOOD)
def test_a_picture_is_seen_as_a_viewer_shows_it(corpus: Dataset, name: str) -> None:
    case, picture = CASES[name], open_image(example_of(corpus, name))
    assert (picture.mode, picture.size) == ("RGB", case.size)
    assert case.colour is None or close_to(picture.getpixel((0, 0)), case.colour)


@pytest.mark.parametrize("name", GOOD)
def test_a_server_is_sent_small_upright_pixels_and_nothing_else(corpus: Dataset, name: str) -> None:
    case, example = CASES[name], example_of(corpus, name)
    urls = ImageUrls(size=64, frames=4).urls(example)
    assert len(urls) == case.frames <= most_frames(example, 4)  # prices are reckoned by the latter
    for number, url in enumerate(urls):
        content = base64.b64decode(url.partition(",")[2])
        assert b"marked" not in content
        with Image.open(io.BytesIO(content)) as sent:
            assert sent.format in ("PNG", "JPEG")
            assert max(sent.size) <= 64
            assert sent.getexif() == {}
            assert (sent.width > sent.height) == (case.size[0] > case.size[1])
            if number == 0 and case.colour is not None:
                assert close_to(sent.convert("RGB").getpixel((0, 0)), case.colour)


@pytest.mark.parametrize("name", GOOD)
def test_a_browser_is_sent_pixels_and_nothing_else(corpus: Dataset, name: str) -> None:
    case, example = CASES[name], example_of(corpus, name)
    media = BrowserPictures().get(example.digest, {"id": example.id, "image": example.image}, "small")
    assert media is not None
    assert media.kind == "image/webp"
    [thumbnail] = thumbnails([example])
    for content in (media.content, base64.b64decode(thumbnail)):
        assert b"marked" not in content
        with Image.open(io.BytesIO(content)) as shown:
            assert shown.format == "WEBP"
            assert (shown.width > shown.height) == (case.size[0] > case.size[1])
            if case.colour is not None and name not in ("see-through.png", "line.png", "lying-line.png"):
                assert close_to(shown.convert("RGB").getpixel((0, 0)), case.colour)


def test_what_is_no_picture_any_more_is_shown_as_none(tmp_path: Path) -> None:
    for name, case in CASES.items():
        if not case.good:
            (tmp_path / name).write_bytes(case.make())
            example = picture_at(tmp_path / name, name)
            assert BrowserPictures().get(example.digest, {"id": name, "image": example.image}, "small") is None
            assert thumbnails([example]) == [""]


def test_a_local_model_is_given_pixels_of_every_good_picture(corpus: Dataset, tmp_path: Path) -> None:
    from twothirds.models.local.chat_model import ChatModel
    from twothirds.models.local.files import find_model
    from twothirds.models.oracle import Feature, Label
    from twothirds.models.prompting.labels import label_form

    save_tiny_llava(tmp_path)
    model = ChatModel(find_model(str(tmp_path), None), device="cpu", dtype="float32", longest_side=64)
    for example in corpus.examples:
        pixels = model.encode([model.prompt(label_form([Label(Feature("a"), example)]).messages)], "right")[
            "pixel_values"
        ]
        assert tuple(pixels.shape) == (1, 3, 32, 32), example.id
        if CASES[example.id].colour == RED:
            red, green, blue = pixels[0].mean(dim=(1, 2)).tolist()
            assert red > green, example.id
            assert red > blue, example.id
