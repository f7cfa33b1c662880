"""Ridge regression whose strength is chosen by its leave-one-out error, from one singular value decomposition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STRENGTHS = np.logspace(-1, 3, 9)
MAX_LEVERAGE = 0.999  # of a row that alone decides its own prediction


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """`left_out` is what is left unexplained of each row by a fit without that row."""

    mean: Floats
    scale: Floats
    weights: Floats  # columns × outputs, of columns scaled to unit variance
    intercept: Floats
    left_out: Floats

    def predict(self, x: Floats) -> Floats:
        predicted: Floats = _scaled(x, self.mean, self.scale) @ self.weights + self.intercept
        return predicted


def fit_ridge(x: Floats, outputs: Floats) -> RidgeFit:
    """Columns are scaled to unit variance; NaN counts as the column's mean. `outputs` has a column for each output."""
    n, known = len(outputs), ~np.isnan(x)
    mean = np.where(known, x, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    scale = np.maximum(np.where(known, x - mean, 0.0).std(axis=0), 1e-9)
    intercept = outputs.mean(axis=0)
    centred = outputs - intercept
    if not x.size:
        return RidgeFit(mean, scale, np.zeros((0, outputs.shape[1])), intercept, centred * n / max(n - 1, 1))
    u, s, vt = np.linalg.svd(_scaled(x, mean, scale), full_matrices=False)
    projected = u.T @ centred
    smallest, kept, weights = np.inf, centred, np.zeros((x.shape[1], outputs.shape[1]))
    for strength in STRENGTHS:
        shrunk = s**2 / (s**2 + strength)
        leverage = np.minimum(u**2 @ shrunk + 1 / n, MAX_LEVERAGE)
        left_out = (centred - u @ (shrunk[:, None] * projected)) / (1 - leverage)[:, None]
        error = float((left_out**2).sum())
        if error < smallest:
            smallest, kept, weights = error, left_out, vt.T @ ((s / (s**2 + strength))[:, None] * projected)
    return RidgeFit(mean, scale, weights, intercept, kept)


def _scaled(x: Floats, mean: Floats, scale: Floats) -> Floats:
    return np.asarray(np.where(np.isnan(x), 0.0, x - mean) / scale, np.float64)
