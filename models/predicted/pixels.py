"""A plain description of a picture, for when no model is named: its colours and edges on a grid.

Edges are histograms of the gradient's direction in cells (Dalal and Triggs 2005). Good for pictures that are alike in
their layout; a vision model is better for photographs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.contrastive import Vectors

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE, CELLS, DIRECTIONS = 64, 8, 8
SIZE = CELLS * CELLS * (3 + DIRECTIONS)
PIXELS = ("pixels-1", SIZE)  # name with version, and numbers in a vector


def picture_vectors(pictures: Iterable[Image]) -> Vectors:
    rows = [_vector(np.asarray(picture.convert("RGB").resize((SIDE, SIDE)), np.float64) / 255) for picture in pictures]
    return np.stack(rows) if rows else np.empty((0, SIZE), np.float32)


def _vector(pixels: NDArray[np.float64]) -> NDArray[np.float32]:
    step = SIDE // CELLS
    colours = pixels.reshape(CELLS, step, CELLS, step, 3).mean(axis=(1, 3)) - 0.5
    down, right = np.gradient(pixels.mean(axis=2))
    strength, angle = np.hypot(down, right), np.arctan2(down, right) % np.pi
    direction = np.minimum((angle / np.pi * DIRECTIONS).astype(int), DIRECTIONS - 1)
    edges = np.zeros((CELLS, CELLS, DIRECTIONS), np.float32)
    rows, columns = np.indices(strength.shape) // step
    np.add.at(edges, (rows, columns, direction), strength)
    edges = np.sqrt(edges / (edges.sum() + 1e-6))
    whole = np.concatenate([colours.ravel() / (np.linalg.norm(colours) + 1e-6), edges.ravel()])
    vector: NDArray[np.float32] = (whole / (np.linalg.norm(whole) + 1e-9)).astype(np.float32)
    if not np.isclose(np.linalg.norm(vector), 1, atol=1e-4):  # a picture of one middling grey
        vector = np.full(SIZE, 1 / np.sqrt(SIZE), np.float32)
    return vector
