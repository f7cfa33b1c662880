"""Cross-validated prediction of a target by regularised linear models of scikit-learn, with bootstrap intervals.

Columns are scaled to unit variance; an unknown cell counts as the column's mean; the strength of the ridge is chosen by
leave-one-out; every class counts the same, however many examples it has."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.statistics import Interval

Matrix = NDArray[np.float64]

STRENGTHS = np.logspace(-2, 4, 13)
FOLDS = 5
RESAMPLES = 2_000


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be predicted: numbers, or classes given by their positions in `classes`."""

    values: NDArray[np.float64] | NDArray[np.intp]
    classes: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        return not self.classes

    def shuffled(self, rng: np.random.Generator) -> Target:
        return Target(rng.permutation(self.values), self.classes)

    def at(self, rows: NDArray[np.intp]) -> Target:
        return Target(self.values[rows], self.classes)


@dataclass(frozen=True, eq=False)
class LinearFit:
    weights: Matrix  # columns × outputs: one, or one per class
    strength: float


def fit_linear(x: Matrix, target: Target, strength: float | None = None) -> LinearFit:
    """Of all examples. Without a `strength`, the one with the smallest leave-one-out error. Needs every class."""
    ridge = _model(target, strength).fit(x, target.values)[-1]
    weights = np.atleast_2d(ridge.coef_).T
    if len(target.classes) == 2:  # scikit-learn keeps the weights of the second class only
        weights = np.hstack([-weights, weights])
    return LinearFit(weights, float(ridge.alpha_ if strength is None else strength))


def out_of_fold(x: Matrix, target: Target, seed: int) -> Matrix:
    """How the model did on each example it had not seen: squared error, or 1 where it was right and 0 elsewhere."""
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict

    folds = (KFold if target.is_number else StratifiedKFold)(FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        predicted = cross_val_predict(_model(target), x, target.values, cv=folds)
    hits: Matrix = (predicted - target.values) ** 2 if target.is_number else (predicted == target.values) * 1.0
    return hits


def ranking_score(decided: Matrix, target: Target) -> float:
    """R² of numbers; of classes the area under the ROC curve of each against the others, averaged over the classes
    that occur together with others: 0.5 is chance."""
    return ranking_scores(decided, [target])[0]


def ranking_scores(decided: Matrix, targets: Iterable[Target]) -> list[float]:
    """Of the same decisions against each target, all numbers or all classes; the ranks are made once."""
    from scipy.stats import rankdata

    ranks = rankdata(decided, axis=0)
    return [_r_squared(decided, target) if target.is_number else _mean_area(ranks, target) for target in targets]


def _r_squared(decided: Matrix, target: Target) -> float:
    spread = float(((target.values - target.values.mean()) ** 2).sum())
    return 1 - float(((target.values - decided[:, 0]) ** 2).sum()) / spread if spread else 0.0


def _mean_area(ranks: Matrix, target: Target) -> float:
    areas = []
    for place in range(len(target.classes)):
        inside = target.values == place
        if 0 < (size := int(inside.sum())) < len(inside):
            below = ranks[inside, place].sum() - size * (size + 1) / 2
            areas.append(below / (size * (len(inside) - size)))
    return float(np.mean(areas)) if areas else 0.5


def _model(target: Target, strength: float | None = None) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    ridge: Any
    if target.is_number:
        ridge = RidgeCV(STRENGTHS) if strength is None else Ridge(strength)
    elif strength is None:
        ridge = RidgeClassifierCV(STRENGTHS, class_weight="balanced")
    else:
        ridge = RidgeClassifier(strength, class_weight="balanced")
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), ridge)


def score_of(outcome: Matrix, target: Target) -> float:
    """R² against the mean, or balanced accuracy: the average over the classes of the share that was right."""
    return float(_scores(outcome, target, np.ones((1, len(outcome))))[0])


def interval_of(outcome: Matrix, target: Target, seed: int) -> Interval:
    """The score with its 95 % bootstrap interval over the examples."""
    n = len(outcome)
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)
    low, high = np.nanquantile(_scores(outcome, target, weights), [0.025, 0.975])
    return Interval(score_of(outcome, target), float(low), float(high))


def _scores(outcome: Matrix, target: Target, weights: Matrix) -> Matrix:
    """One score per row of `weights`, which say how often each example counts."""
    if target.is_number:
        y, total = target.values.astype(np.float64), weights.sum(axis=1)
        mean = weights @ y / total
        spread = weights @ (y**2) / total - mean**2
        explained: Matrix = 1 - (weights @ outcome / total) / spread
        return explained
    inside = (target.values[:, None] == np.arange(len(target.classes))).astype(np.float64)
    counts, right = weights @ inside, weights @ (inside * outcome[:, None])
    shares = np.divide(right, counts, out=np.full(counts.shape, np.nan), where=counts > 0)
    averaged: Matrix = shares.mean(axis=1)
    return averaged
