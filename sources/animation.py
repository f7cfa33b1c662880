"""Moving pictures, made anew for a browser: every frame is decoded, so nothing but pixels and times gets through."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from PIL import Image, ImageSequence

from sources.film import MAX_PIXELS

if TYPE_CHECKING:
    from sources.example import Example

FORMATS = ("GIF", "WEBP")
MOST_FRAMES = 120
SHORTEST_MS = 20
QUALITY = 80


def animated_webp(example: Example, longest_side: int) -> bytes | None:
    """An animation as WebP with its times, its first frames where there are very many; None for anything else."""
    try:
        with Image.open(io.BytesIO(example.image_bytes()), formats=FORMATS) as image:
            if getattr(image, "n_frames", 1) < 2 or image.width * image.height * MOST_FRAMES > 8 * MAX_PIXELS:
                return None
            frames, times = [], []
            for number, frame in enumerate(ImageSequence.Iterator(image)):
                if number == MOST_FRAMES:
                    break
                picture = frame.convert("RGBA")
                picture.thumbnail((longest_side, longest_side), Image.Resampling.LANCZOS)
                frames.append(picture)
                times.append(max(int(frame.info.get("duration", 100)), SHORTEST_MS))
    except Exception:  # not of these formats, or damaged: opening it as a still picture says which
        return None
    written = io.BytesIO()
    frames[0].save(
        written, "WEBP", save_all=True, append_images=frames[1:], duration=times, loop=0, quality=QUALITY, method=1
    )
    return written.getvalue()
