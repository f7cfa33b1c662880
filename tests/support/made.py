"""Small things that several tests make: examples without files, and crowds that know their truth."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.models.people.simulated import Behaviour, SimulatedOracle
from twothirds.sources.dataset import Example

FACES = Path(__file__).parents[2] / "datasets" / "faces"


def texts(n: int) -> tuple[Example, ...]:
    return tuple(Example(f"e{i}", hashlib.sha256(f"text {i}".encode()).hexdigest(), text=f"text {i}") for i in range(n))


def few_faces(folder: Path, n: int) -> Path:
    """The first `n` of the shipped faces, with their truth, as a data set of its own."""
    import pandas as pd

    (folder / "images").mkdir(parents=True)
    for name in ("metadata.csv", "truth.csv"):
        pd.read_csv(FACES / name).head(n).to_csv(folder / name, index=False)
    for file in pd.read_csv(folder / "metadata.csv").file_name:
        shutil.copy(FACES / file, folder / file)
    return folder


def random_truth(n: int, m: int, seed: int = 0, share: float = 0.4) -> NDArray[np.int8]:
    return (np.random.default_rng(seed).random((n, m)) < share).astype(np.int8)


def crowd_of(truth: NDArray[np.int8], crowd: str = "salience", seed: int = 0, **behaviour: Any) -> SimulatedOracle:
    columns = [f"feature {letters(column)}" for column in range(truth.shape[1])]
    return SimulatedOracle(texts(len(truth)), truth, columns, crowd=crowd, seed=seed, behaviour=Behaviour(**behaviour))


def letters(number: int) -> str:
    """A word per number, so that no two names look like plurals or numbers of each other."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def write_film(path: Path, colours: Sequence[str]) -> Path:
    """A film of 64 × 48 pixels with one frame per colour."""
    import av
    from PIL import Image

    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for colour in colours:
            picture = np.asarray(Image.new("RGB", (64, 48), colour))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        container.mux(stream.encode())
    return path
