"""What a model was made for: pictures whose vectors lie within a Mahalanobis distance of the mean of such pictures.

Two files beside the weights: `domain.npz` with the mean and the inverse covariance; `domain.json` with the distance,
how it was calibrated, and the weights that it is true of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FIGURES, ABOUT = "domain.npz", "domain.json"


@dataclass(frozen=True)
class Domain:
    description: str  # the pictures that the model knows, in words
    mean: NDArray[np.float64]
    precision: NDArray[np.float64]
    threshold: float

    @classmethod
    def fitted(cls, description: str, vectors: NDArray[np.float32], ridge: float = 1e-4) -> Domain:
        """To vectors of pictures that the model knows; nothing is outside until there is a threshold."""
        values = vectors.astype(np.float64)
        covariance = np.cov(values.T)
        size = len(covariance)
        regular = covariance + ridge * np.trace(covariance) / size * np.eye(size)
        return cls(description, values.mean(axis=0), np.linalg.inv(regular), np.inf)

    @classmethod
    def read(cls, folder: Path, weights: str) -> Domain | None:
        """None where the model comes without, or with one of other weights."""
        try:
            stated = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            with np.load(folder / FIGURES, allow_pickle=False) as figures:
                mean, precision = (figures[name].astype(np.float64) for name in ("mean", "precision"))
        except (OSError, ValueError, KeyError):
            return None
        return cls(stated["what"], mean, precision, stated["threshold"]) if stated["weights"] == weights else None

    def write(self, folder: Path, provenance: dict[str, object]) -> None:
        np.savez(folder / FIGURES, mean=self.mean.astype(np.float32), precision=self.precision.astype(np.float32))
        described = {"what": self.description, "threshold": round(self.threshold, 3)} | provenance
        (folder / ABOUT).write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")

    def distances(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        from_mean = vectors.astype(np.float64) - self.mean
        squared = np.einsum("ij,jk,ik->i", from_mean, self.precision, from_mean)
        far: NDArray[np.float64] = np.sqrt(np.maximum(squared, 0.0))
        return far

    def outside(self, vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
        beyond: NDArray[np.bool_] = self.distances(vectors) > self.threshold
        return beyond
