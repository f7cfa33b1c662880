"""Ridge regression whose strength is chosen by its leave-one-out error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STRENGTHS = np.logspace(-1, 3, 9)


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
    from sklearn.linear_model import RidgeCV

    n, known, intercept = len(outputs), ~np.isnan(x), outputs.mean(axis=0)
    mean = np.where(known, x, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    scale = np.maximum(np.where(known, x - mean, 0.0).std(axis=0), 1e-9)
    if not x.size:
        left_out = (outputs - intercept) * n / max(n - 1, 1)
        return RidgeFit(mean, scale, np.zeros((0, outputs.shape[1])), intercept, left_out)
    ridge = RidgeCV(STRENGTHS, scoring="neg_mean_squared_error", store_cv_results=True)
    ridge.fit(_scaled(x, mean, scale), outputs)
    unseen = ridge.cv_results_.reshape(*outputs.shape, len(STRENGTHS))[:, :, np.searchsorted(STRENGTHS, ridge.alpha_)]
    return RidgeFit(mean, scale, ridge.coef_.reshape(outputs.shape[1], -1).T, ridge.intercept_, outputs - unseen)


def _scaled(x: Floats, mean: Floats, scale: Floats) -> Floats:
    return np.asarray(np.where(np.isnan(x), 0.0, x - mean) / scale, np.float64)
