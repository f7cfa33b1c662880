"""Many faces as arrays: pictures as the model sees them, truth as a matrix, phrases as texts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.progress import track

from models.faces.draw import pixels
from models.faces.face import Face
from models.faces.truth import visible

DRAWN_SIZE = 160  # as in datasets/faces, so that the model is trained on what it will be shown
SEEN_SIZE = 96


def seen_pixels(face: Face) -> NDArray[np.uint8]:
    """The picture after the image processor has made it smaller."""
    drawn = Image.fromarray(pixels(face, DRAWN_SIZE))
    return np.array(drawn.resize((SEEN_SIZE, SEEN_SIZE), Image.Resampling.BICUBIC))


def render(faces: Sequence[Face], what: str) -> NDArray[np.uint8]:
    """Faces, height, width, colours; drawn by as many processes as there are processors."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        drawn = pool.map(seen_pixels, faces, chunksize=64)
        return np.stack(list(track(drawn, description=f"drawing {what}", total=len(faces), transient=True)))


def truth_matrix(faces: Sequence[Face]) -> NDArray[np.bool_]:
    """Faces by attributes, in the order of `models.faces.truth.ATTRIBUTES`."""
    return np.array([list(visible(face).values()) for face in faces])
