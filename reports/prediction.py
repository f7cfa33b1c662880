"""Out-of-fold predictions of a target by a regularised linear model, and how sure their score is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.ridge import Matrix, fit_classes, fit_ridge

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
