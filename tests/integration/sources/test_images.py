"""Opening pictures of all kinds as a viewer would show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from twothirds.sources.dataset import Example, picture_at
from twothirds.sources.errors import DatasetError, Vanished
from twothirds.sources.pictures.images import open_image


def saved(folder: Path, image: Image.Image, name: str, **options: Any) -> Example:
    path = folder / name
    image.save(path, **options)
    return picture_at(path, name)


def test_a_photo_is_turned_upright(tmp_path: Path) -> None:
    image = Image.new("RGB", (40, 20), "blue")
    image.paste("red", (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held sideways: turn a quarter to the right
    opened = open_image(saved(tmp_path, image, "a.jpg", exif=exif))
    assert opened.size == (20, 40)
    red, _, blue = opened.getpixel((10, 5))  # type: ignore[misc]
    assert red > 200 > blue


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA", "P"])
def test_transparent_pixels_become_white(tmp_path: Path, mode: str) -> None:
    clear = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    if mode == "P":
        example = saved(tmp_path, Image.new("P", (8, 8), 0), "a.gif", transparency=0)
    elif mode == "PA":
        example = saved(tmp_path, Image.new("P", (8, 8), 0), "a.png", transparency=b"\0" * 256)
    else:
        example = saved(tmp_path, clear.convert(mode), "a.png")
    opened = open_image(example)
    assert opened.mode == "RGB"
    assert opened.getpixel((4, 4)) == (255, 255, 255)


def test_a_white_drawing_without_a_background_is_shown_on_black(tmp_path: Path) -> None:
    drawing = Image.new("RGBA", (8, 8), (255, 255, 255, 0))
    drawing.paste((255, 255, 255, 255), (0, 0, 4, 8))
    opened = open_image(saved(tmp_path, drawing, "a.png"))
    assert (opened.getpixel((1, 1)), opened.getpixel((6, 1))) == ((255, 255, 255), (0, 0, 0))


def test_grey_values_of_sixteen_bits_keep_their_shades(tmp_path: Path) -> None:
    values = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
    for name in ("a.png", "a.tiff"):
        opened = open_image(saved(tmp_path, Image.fromarray(values), name))
        shades = np.asarray(opened)[:, :, 0].ravel()
        assert (np.diff(shades.astype(int)) == 1).all(), name


def test_floating_point_values_are_spread_over_all_shades(tmp_path: Path) -> None:
    values = np.array([[-1.0, 0.0], [0.5, 1.0]], dtype=np.float32)
    opened = open_image(saved(tmp_path, Image.fromarray(values), "a.tiff"))
    assert np.asarray(opened)[:, :, 0].tolist() == [[0, 128], [191, 255]]


def test_cmyk_is_shown_in_its_colours(tmp_path: Path) -> None:
    opened = open_image(saved(tmp_path, Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "a.jpg"))
    red, green, blue = opened.getpixel((8, 8))  # type: ignore[misc]
    assert red > 200
    assert green < 60
    assert blue < 60


@pytest.mark.parametrize("name", ["a.gif", "a.webp", "a.png", "a.tiff"])
def test_an_animation_is_shown_by_its_first_frame(tmp_path: Path, name: str) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    options = {"lossless": True} if name == "a.webp" else {}
    opened = open_image(saved(tmp_path, frames[0], name, save_all=True, append_images=frames[1:], **options))
    assert opened.getpixel((4, 4)) == (255, 0, 0)


@pytest.mark.parametrize("name", ["a.jpg", "a.png"])
def test_the_longest_side_is_kept_within_the_limit_and_small_pictures_stay(tmp_path: Path, name: str) -> None:
    example = saved(tmp_path, Image.new("RGB", (1000, 500)), name)
    assert open_image(example, longest_side=100).size == (100, 50)
    assert open_image(example, longest_side=2000).size == (1000, 500)
    assert open_image(example).size == (1000, 500)


def test_a_picture_that_vanished_or_broke_is_reported_on_one_line(tmp_path: Path) -> None:
    example = saved(tmp_path, Image.new("RGB", (8, 8)), "a.png")
    (tmp_path / "a.png").write_bytes(b"broken")
    with pytest.raises(Vanished, match=r"a\.png' of example 'a\.png' has changed since the data set"):
        open_image(example)
    with pytest.raises(DatasetError, match=r"^image of example 'a': not a PNG"):
        open_image(picture_at(tmp_path / "a.png"))
    (tmp_path / "a.png").unlink()
    with pytest.raises(DatasetError, match=r"a\.png' of example 'a\.png' cannot be read any more \(missing file\)"):
        open_image(example)


def test_a_damaged_note_about_the_camera_does_not_lose_the_picture(tmp_path: Path) -> None:
    example = saved(tmp_path, Image.new("RGB", (8, 4)), "a.webp", exif=b"Exif\0\0junkjunkjunk")
    assert open_image(example).size == (8, 4)
