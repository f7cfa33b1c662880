"""Pictures become the very numbers that the processors of transformers make of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from PIL import Image

from twothirds.models.contrastive import SHIPPED
from twothirds.models.contrastive.embeddings import Pixels

transformers: Any = import_module("transformers")
SHAPES = ((24, 16), (16, 24), (7, 50), (200, 90))
SIZE = {"height": 16, "width": 24}
OWN_COLOURS = {"image_mean": [0.48, 0.46, 0.41], "image_std": [0.27, 0.26, 0.28]}


@pytest.fixture
def pictures() -> list[Image.Image]:
    rng = np.random.default_rng(5)
    return [Image.fromarray(rng.integers(256, size=(high, wide, 3), dtype=np.uint8)) for wide, high in SHAPES]


@pytest.mark.parametrize(
    ("kind", "options", "by_table"),
    [
        ("SiglipImageProcessorPil", {"size": SIZE}, True),
        ("SiglipImageProcessorPil", {"size": SIZE, "do_normalize": False}, True),
        ("ViTImageProcessorPil", {"size": SIZE, **OWN_COLOURS}, True),
        ("CLIPImageProcessorPil", {"size": SIZE, "crop_size": {"height": 12, "width": 12}}, False),
        ("CLIPImageProcessorPil", {"size": SIZE, "do_center_crop": False}, True),
        ("CLIPImageProcessorPil", {"size": {"shortest_edge": 16}, "crop_size": {"height": 16, "width": 16}}, False),
    ],
)
def test_they_are_those_of_the_models_own_processor(
    pictures: list[Image.Image], kind: str, options: dict[str, Any], by_table: bool
) -> None:
    processor = getattr(transformers, kind)(**options)
    pixels = Pixels(processor)
    expected = processor(images=pictures, return_tensors="pt")["pixel_values"]
    found = pixels(pictures)["pixel_values"]
    assert found.dtype == expected.dtype
    assert (found == expected).all()
    assert (pixels._table is not None) is by_table


def test_those_of_the_shipped_model_come_by_its_table(pictures: list[Image.Image]) -> None:
    processor = transformers.AutoImageProcessor.from_pretrained(SHIPPED, backend="pil")
    pixels = Pixels(processor)
    assert pixels._table is not None
    assert (pixels(pictures)["pixel_values"] == processor(images=pictures, return_tensors="pt")["pixel_values"]).all()


def test_a_processor_that_looks_at_neighbours_is_asked_itself(pictures: list[Image.Image]) -> None:
    class Blurring(transformers.SiglipImageProcessorPil):  # type: ignore[misc]
        def normalize(self, image: Any, *_: Any, **__: Any) -> Any:
            return (image + np.roll(image, 1, axis=2)) / 2

    processor = Blurring(size=SIZE)
    expected = processor(images=pictures, return_tensors="pt")["pixel_values"]
    assert (Pixels(processor)(pictures)["pixel_values"] == expected).all()
