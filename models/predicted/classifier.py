"""One calibrated classifier per feature: ridge regression on an example's vector, and where a cheaper model has
answered first, on its log-odds. Scores become probabilities by a logistic curve through what is said of examples that
were not seen (Platt 1999). Least squares learn more from a few hundred examples than a logistic regression does, the
more so where some labels are wrong; one decomposition serves all features, and tells what a fit without an example
would say of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN, Labels

Floats = NDArray[np.float64]
STRENGTHS = np.geomspace(1e-4, 1.0, 14)  # of the penalty, as parts of what all directions vary
MOST_LEVERAGE = 0.99  # of an example that alone decides what is said of it
CURVE_STRENGTH = 100.0  # inverse, of the penalty on the curve: where sides do not meet it must end somewhere
TRUSTED = 5.0  # a cheaper model's answer is penalised so much less than a number of the vector
FEWEST = 3  # examples with each answer; with fewer the share of yes is all that is known


@dataclass(frozen=True, eq=False)
class Classifiers:
    """`weights` are features × numbers of a vector; `trust` is the weight of a cheaper model's log-odds."""

    weights: Floats
    trust: Floats
    bias: Floats

    def chances(self, vectors: NDArray[np.float32], first: Floats | None = None) -> Floats:
        """Of yes, examples × features. `first` are the cheaper model's log-odds, in the same shape."""
        odds = vectors.astype(np.float64) @ self.weights.T + self.bias
        if first is not None:
            odds += first * self.trust
        return _chances(odds)


def fit(vectors: NDArray[np.float32], labels: Labels, first: Floats | None = None) -> tuple[Classifiers, Floats]:
    """From examples × features of which some are UNKNOWN; also the chances of yes that are given to each example by
    classifiers that have not seen it, NaN where it is UNKNOWN."""
    features, size = labels.shape[1], vectors.shape[1]
    weights, trust, bias = np.zeros((features, size)), np.zeros(features), np.zeros(features)
    unseen = np.full(labels.shape, np.nan)
    known = labels != UNKNOWN
    directions: dict[bytes, _Directions] = {}
    for feature in range(features):
        rows = np.flatnonzero(known[:, feature])
        answers, odds = labels[rows, feature], None if first is None else first[rows, feature]
        yes = int((answers == 1).sum())
        if min(yes, len(rows) - yes) < FEWEST:
            bias[feature] = np.log((yes + 0.5) / (len(rows) - yes + 0.5))
            unseen[rows, feature] = _chances(np.full(len(rows), bias[feature]))
            continue
        key = rows.tobytes() if odds is None else bytes([feature % 256, feature // 256])
        if key not in directions:
            directions[key] = _Directions.of(vectors[rows], odds)
        both, bias[feature], unseen[rows, feature] = directions[key].fit(answers)
        weights[feature] = both[:size]
        trust[feature] = both[size] if odds is not None else 0.0
    return Classifiers(weights, trust, bias), unseen


def _chances(odds: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-np.clip(odds, -40, 40)))
    return chances


@dataclass(frozen=True, eq=False)
class _Directions:
    """In which examples vary: `axes` are examples × directions, each of length 1."""

    middle: Floats
    spread: Floats
    axes: Floats
    sizes: Floats
    back: Floats  # directions × numbers

    @classmethod
    def of(cls, vectors: NDArray[np.float32], odds: Floats | None) -> _Directions:
        inputs, size = vectors.astype(np.float64), vectors.shape[1]
        if odds is not None:
            inputs = np.concatenate([inputs, odds[:, None]], axis=1)
        middle, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
        # One number for all of a vector: directions in which vectors vary little say little.
        spread[:size] = np.sqrt(np.mean(spread[:size] ** 2)) if size else spread[:size]
        spread[size:] /= TRUSTED * max(1.0, np.sqrt(size))
        axes, sizes, back = np.linalg.svd((inputs - middle) / spread, full_matrices=False)
        kept = sizes > 1e-6 * sizes.max(initial=1e-9)
        return cls(middle, spread, axes[:, kept], sizes[kept], back[kept])

    def fit(self, answers: Labels) -> tuple[Floats, float, Floats]:
        """Weights and bias of log-odds, and the chances by fits without each example, with the penalty whose fits
        without an example come nearest to its answer."""
        mean, n = float(answers.mean()), len(answers)
        along = self.axes.T @ (answers - mean)
        best = (np.inf, 0.0, np.full(n, mean))
        for penalty in (STRENGTHS * (self.sizes**2).sum()).tolist():
            shrunk = self.sizes**2 / (self.sizes**2 + penalty)
            leverage = np.minimum(self.axes**2 @ shrunk + 1 / n, MOST_LEVERAGE)
            left = (answers - mean - self.axes @ (shrunk * along)) / (1 - leverage)
            if (error := float((left**2).sum())) < best[0]:
                best = (error, penalty, answers - left)
        _, penalty, unseen = best
        weights = self.back.T @ (self.sizes / (self.sizes**2 + penalty) * along) / self.spread
        slope, height = _curve(unseen, answers)
        bias = slope * (mean - float(weights @ self.middle)) + height
        return slope * weights, bias, _chances(slope * unseen + height)


def _curve(scores: Floats, answers: Labels) -> tuple[float, float]:
    """Slope and height of log-odds over scores."""
    from sklearn.linear_model import LogisticRegression

    spread = float(scores.std()) + 1e-9
    curve = LogisticRegression(C=CURVE_STRENGTH).fit(scores[:, None] / spread, answers)
    slope, height = float(curve.coef_[0, 0]) / spread, float(curve.intercept_[0])
    if slope > 0:
        return slope, height
    # Nothing was learned: a mean without an example lies on the other side of the example.
    yes = int((answers == 1).sum())
    return 0.0, float(np.log((yes + 0.5) / (len(answers) - yes + 0.5)))
