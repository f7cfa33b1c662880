"""Ridge regression whose strength is chosen by leave-one-out, in closed form: a fit takes less than a millisecond.

Out-of-fold predictions of a target by a regularised linear model, and how sure their score is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

STRENGTHS = np.logspace(-2, 4, 13)


@dataclass(frozen=True, eq=False)
class Ridge:
    """Weights belong to columns scaled to unit variance; an unknown cell counts as the column's mean."""

    mean: Matrix
    scale: Matrix
    weights: Matrix  # columns × outputs
    intercept: Matrix
    strength: float

    def predict(self, x: Matrix) -> Matrix:
        prediction: Matrix = _scaled(x, self.mean, self.scale) @ self.weights + self.intercept
        return prediction


def fit_ridge(x: Matrix, y: Matrix, importance: Matrix | None = None, strength: float | None = None) -> Ridge:
    """`y` has one column per output. Without a `strength`, the one with the smallest leave-one-out error."""
    known = ~np.isnan(x)
    mean = np.where(known, x, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, x, mean)
    scale = filled.std(axis=0)
    scale[scale == 0] = 1.0
    z = (filled - mean) / scale
    share = np.full(len(y), 1.0) if importance is None else importance
    z_mean, y_mean = share @ z / share.sum(), share @ y / share.sum()
    root = np.sqrt(share)[:, None]
    a, b = (z - z_mean) * root, (y - y_mean) * root
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    projected = u.T @ b
    if strength is None:
        strength = _best_strength(u, s, projected, b, share)
    weights = vt.T @ (projected * (s / (s**2 + strength))[:, None])
    return Ridge(mean, scale, weights, y_mean - z_mean @ weights, strength)


def fit_classes(x: Matrix, labels: NDArray[np.intp], classes: int, strength: float | None = None) -> Ridge:
    """One output per class, 1 inside and -1 outside; every class counts the same, however many examples it has."""
    y = np.where(labels[:, None] == np.arange(classes), 1.0, -1.0)
    counts = np.bincount(labels, minlength=classes)
    importance = (len(labels) / (classes * np.maximum(counts, 1)))[labels]
    return fit_ridge(x, y, importance, strength)


def _best_strength(u: Matrix, s: Matrix, projected: Matrix, b: Matrix, share: Matrix) -> float:
    """An example's error when it is left out is its residual over 1 - leverage; nothing need be fitted again."""
    errors = []
    for strength in STRENGTHS:
        kept = s**2 / (s**2 + strength)
        residual = b - u @ (projected * kept[:, None])
        leverage = (u**2) @ kept + share / share.sum()
        errors.append(float(((residual / np.maximum(1 - leverage, 1e-9)[:, None]) ** 2).mean()))
    return float(STRENGTHS[int(np.argmin(errors))])


def _scaled(x: Matrix, mean: Matrix, scale: Matrix) -> Matrix:
    scaled: Matrix = (np.where(np.isnan(x), mean, x) - mean) / scale
    return scaled


FOLDS = 5
RESAMPLES = 2_000


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be predicted: numbers, or classes given by their places in `classes`."""

    values: NDArray[np.float64] | NDArray[np.intp]
    classes: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        return not self.classes

    def shuffled(self, rng: np.random.Generator) -> Target:
        return Target(rng.permutation(self.values), self.classes)


def out_of_fold(x: Matrix, target: Target, seed: int) -> Matrix:
    """How the model did on each example it had not seen: squared error, or 1 where it was right and 0 elsewhere."""
    y = target.values
    folds = _folds(target, np.random.default_rng(seed))
    result = np.empty(len(y))
    for fold in range(FOLDS):
        train, test = folds != fold, folds == fold
        if target.is_number:
            predicted = fit_ridge(x[train], y[train, None].astype(np.float64)).predict(x[test])[:, 0]
            result[test] = (predicted - y[test]) ** 2
        else:
            fitted = fit_classes(x[train], y[train].astype(np.intp), len(target.classes))
            result[test] = fitted.predict(x[test]).argmax(axis=1) == y[test]
    return result


def score_of(outcome: Matrix, target: Target) -> float:
    """R² against the mean, or balanced accuracy: the average over the classes of the share that was right."""
    return float(_scores(outcome, target, np.ones((1, len(outcome))))[0])


def interval_of(outcome: Matrix, target: Target, seed: int) -> Estimate:
    """The score with its 95 % bootstrap interval over the examples."""
    n = len(outcome)
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)
    low, high = np.nanquantile(_scores(outcome, target, weights), [0.025, 0.975])
    return Estimate(score_of(outcome, target), float(low), float(high))


def _folds(target: Target, rng: np.random.Generator) -> NDArray[np.intp]:
    """The fold of each example, at random; every class is spread evenly."""
    kinds = np.zeros(len(target.values)) if target.is_number else target.values
    folds = np.empty(len(kinds), np.intp)
    start = 0
    for kind in np.unique(kinds):
        rows = rng.permutation(np.flatnonzero(kinds == kind))
        folds[rows] = (np.arange(len(rows)) + start) % FOLDS
        start += len(rows)
    return folds


def _scores(outcome: Matrix, target: Target, weights: Matrix) -> Matrix:
    """One score per row of `weights`, which say how often each example counts."""
    if target.is_number:
        y, total = target.values.astype(np.float64), weights.sum(axis=1)
        mean = weights @ y / total
        spread = weights @ (y**2) / total - mean**2
        explained: Matrix = 1 - (weights @ outcome / total) / spread
        return explained
    shares = []
    for place in range(len(target.classes)):
        inside = (target.values == place).astype(np.float64)
        counts, right = weights @ inside, weights @ (inside * outcome)
        shares.append(np.divide(right, counts, out=np.full(len(weights), np.nan), where=counts > 0))
    averaged: Matrix = np.mean(shares, axis=0)
    return averaged
