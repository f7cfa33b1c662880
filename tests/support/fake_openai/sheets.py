"""Reads a sheet of numbered pictures as it was sent, from its pixels alone: where the bars are, which digit each bears,
and what is framed below it. Nothing is known of the sheet but that it looks like one."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Pixels = NDArray[np.bool_]
DARK, LIGHT = 96, 160  # grey values, with room for what JPEG does to a line
NARROWEST, LOWEST, HIGHEST = 30, 16, 64  # pixels of a bar
GLYPH = (12, 18)


@lru_cache(maxsize=16)
def pictures_of(url: str) -> dict[int, str]:
    """The pictures on a sheet by their numbers, each as a data URL."""
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as opened:
        page = opened.convert("RGB")
    dark = np.asarray(page.convert("L")) < DARK
    return {number: _data_url(page.crop(box)) for number, box in _numbered(page, dark)}


def _numbered(page: Image.Image, dark: Pixels) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
    """Each number with the inside of the frame below its bar."""
    taken = np.zeros_like(dark)
    for top in range(dark.shape[0]):
        for left, right in _runs(dark[top] & ~taken[top]):
            height = _bar_height(dark[top : top + HIGHEST, left:right])
            number = _digit(page.crop((left, top, right, top + height))) if height >= LOWEST else None
            if number is not None:
                bottom = top + _length(dark[top:, left])
                end = left + _length(dark[bottom - 1, left:])
                taken[top:bottom, left : max(right, end)] = True
                yield number, (left + 1, top + height + 1, end - 1, bottom - 1)


def _runs(row: Pixels) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], row, [False]))))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2) if end - start >= NARROWEST]


def _length(line: Pixels) -> int:
    """Of the dark beginning of a line."""
    return len(line) if line.all() else int(line.argmin())


def _bar_height(below: Pixels) -> int:
    """As much is dark under a digit as over it; 0 where nothing light stands within dark."""
    whole = np.asarray(below.all(axis=1))
    over = _length(whole)
    digit = _length(~whole[over:])
    height = 2 * over + digit
    return height if over and digit and height < len(whole) and below[:height, 0].all() else 0


@cache
def _templates() -> dict[int, NDArray[np.float64]]:
    return {number: _shape(_written(number)) for number in range(1, 10)}


def _written(number: int) -> Image.Image:
    image = Image.new("L", (60, 60))
    ImageDraw.Draw(image).text((30, 30), str(number), "white", ImageFont.load_default(40), anchor="mm")
    return image


def _shape(image: Image.Image) -> NDArray[np.float64]:
    """A light digit on dark, cut out and scaled, with its proportions as one more number."""
    light = np.asarray(image) > LIGHT
    rows, columns = np.flatnonzero(light.any(axis=1)), np.flatnonzero(light.any(axis=0))
    box = (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
    cut = image.crop(box).resize(GLYPH, Image.Resampling.BILINEAR)
    ratio = (box[2] - box[0]) / (box[3] - box[1])
    return np.append(np.asarray(cut, np.float64).ravel() / 255, 10 * ratio)


def _digit(bar: Image.Image) -> int | None:
    """The one that the light shape in a bar is most like; none where it is like none."""
    grey = bar.convert("L")
    if (np.asarray(grey) > LIGHT).sum() < 10:
        return None
    shape = _shape(grey)
    distances = {number: float(np.abs(shape - known).mean()) for number, known in _templates().items()}
    nearest = min(distances, key=distances.__getitem__)
    return nearest if distances[nearest] < 0.25 else None


def _data_url(picture: Image.Image) -> str:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
