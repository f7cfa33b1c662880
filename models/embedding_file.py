"""Vectors kept between runs: one file per model, from the digest of an example to its vector."""

from __future__ import annotations

import contextlib
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


class EmbeddingFile:
    """It only saves time: a file that cannot be read counts as empty, one that cannot be written is left out."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Vector]:
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
                digests, vectors = kept["digests"], kept["vectors"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return {}
        if vectors.ndim != 2 or len(digests) != len(vectors):
            return {}
        return dict(zip(digests.tolist(), vectors.astype(np.float32), strict=True))

    def add(self, new: Mapping[str, Vector]) -> None:
        """Another process may add at the same time: the file is always whole, and at worst lacks some vectors."""
        every = self.read() | dict(new)
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.path.parent) as folder:
                whole = Path(folder) / self.path.name
                np.savez(whole, digests=np.array(list(every)), vectors=np.stack(list(every.values())))
                whole.replace(self.path)
