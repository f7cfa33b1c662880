"""Thumbnails that travel inside the page."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from sources.errors import DatasetError
from sources.example import Example
from sources.images import open_image

MIME = "image/webp"
SIDES = ((300, 224), (1000, 128))  # up to so many pictures, so many pixels on the longer side
SMALLEST = 96
QUALITY = 75


def side_for(count: int) -> int:
    """Large where there are few, so that the page stays small where there are many."""
    return next((side for limit, side in SIDES if count <= limit), SMALLEST)


def thumbnails(examples: Sequence[Example | None]) -> list[str]:
    """One WebP picture each, in base64; empty where there is none or it cannot be read any more."""
    side = side_for(len(examples))
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda example: _thumbnail(example, side), examples))


def _thumbnail(example: Example | None, side: int) -> str:
    if example is None or example.image is None:
        return ""
    try:
        picture = open_image(example, longest_side=side)
    except DatasetError:
        return ""
    written = io.BytesIO()
    picture.save(written, "WEBP", quality=QUALITY, method=2)
    return base64.b64encode(written.getvalue()).decode("ascii")
