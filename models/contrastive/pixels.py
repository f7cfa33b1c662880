"""Pictures as the numbers that a model's own image processor makes of them, in a fraction of its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

LEVELS = 256  # of a channel of a pixel


class Pixels:
    """What a processor of transformers would return for pictures in RGB, bit by bit. Where it resizes all pictures to
    one shape, Pillow does so here, without the processor's detour by arrays; where it then looks at one pixel at a
    time, a table of its results replaces it."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self._shape = _fixed_shape(processor)
        self._table = _table(processor, self._shape) if self._shape else None

    def __call__(self, pictures: Sequence[Image]) -> Any:
        """By the names of the model's arguments."""
        import torch

        if self._shape is None:
            return self._processor(images=list(pictures), return_tensors="pt")
        shape, resample = self._shape, self._processor.resample
        resized = [picture if picture.size == shape else picture.resize(shape, resample) for picture in pictures]
        if self._table is None:
            return self._processor(images=resized, do_resize=False, return_tensors="pt")
        return {"pixel_values": torch.from_numpy(_looked_up(self._table, resized))}


def _fixed_shape(processor: Any) -> tuple[int, int] | None:
    """Width and height to which it resizes every picture, whatever shape that has; None where it does otherwise."""
    size = processor.size
    by_edge = any(getattr(size, name, None) for name in ("shortest_edge", "longest_edge", "max_height", "max_width"))
    width, height = getattr(size, "width", None), getattr(size, "height", None)
    plain = processor.do_resize and isinstance(processor.resample, int) and not by_edge
    return (width, height) if plain and width and height else None


def _table(processor: Any, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """What the processor makes of each level of each channel. None where that is not all it does to a picture of its
    shape: it crops it, pads it, or looks at several pixels at a time, as noise would show."""
    from PIL import Image

    def processed(pixels: NDArray[np.uint8]) -> dict[str, Any]:
        return dict(processor(images=[Image.fromarray(pixels)], do_resize=False, return_tensors="np"))

    levels = np.arange(LEVELS, dtype=np.uint8).reshape(16, 16, 1)
    found = processed(np.repeat(levels, 3, axis=2)).get("pixel_values")
    if found is None or found.shape != (1, 3, 16, 16) or found.dtype != np.float32:
        return None
    table: NDArray[np.float32] = found.reshape(3, LEVELS)
    noise = np.random.default_rng(0).integers(LEVELS, size=(shape[1], shape[0], 3), dtype=np.uint8)
    expected = processed(noise)
    same = set(expected) == {"pixel_values"} and np.array_equal(
        expected["pixel_values"], _looked_up(table, [Image.fromarray(noise)])
    )
    return table if same else None


def _looked_up(table: NDArray[np.float32], pictures: Sequence[Image]) -> NDArray[np.float32]:
    """Pictures of one size, each as its channels."""
    width, height = pictures[0].size
    values = np.empty((len(pictures), 3, height, width), np.float32)
    for picture, of_picture in zip(pictures, values, strict=True):
        for channel, of_level, into in zip(picture.split(), table, of_picture, strict=True):
            np.take(of_level, np.asarray(channel), out=into, mode="clip")  # the default writes by way of a buffer
    return values
