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
    inputs: dict[bytes, list[int]] = {}  # features that are learned from the same numbers
    for feature, known in enumerate((labels != UNKNOWN).T):
        yes, no = int((labels[:, feature] == 1).sum()), int((labels[:, feature] == 0).sum())
        if min(yes, no) < FEWEST:
            bias[feature] = np.log((yes + 0.5) / (no + 0.5))
            unseen[known, feature] = _chances(bias[[feature]])
        else:
            inputs.setdefault(known.tobytes() if first is None else str(feature).encode(), []).append(feature)
    for columns in inputs.values():
        rows = np.flatnonzero(labels[:, columns[0]] != UNKNOWN)
        cells, odds = (
            np.ix_(rows, np.array(columns)),
            np.empty((len(rows), 0)) if first is None else first[rows][:, columns],
        )
        slopes, heights, unseen[cells] = _fitted(vectors[rows].astype(np.float64), odds, labels[cells])
        weights[columns], bias[columns] = slopes[:, :size], heights
        trust[columns] = slopes[:, size] if first is not None else 0.0
    return Classifiers(weights, trust, bias), unseen


def _chances(odds: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-np.clip(odds, -40, 40)))
    return chances


def _fitted(vectors: Floats, odds: Floats, answers: Labels) -> tuple[Floats, Floats, Floats]:
    """Weights and biases of log-odds, and the chances by fits without each example, with the penalty of each feature
    whose fits without an example come nearest to its answer."""
    from sklearn.linear_model import RidgeCV

    inputs, size = np.concatenate([vectors, odds], axis=1), vectors.shape[1]
    spread = inputs.std(axis=0) + 1e-9
    # One number for all of a vector: directions in which vectors vary little say little.
    spread[:size] = np.sqrt(np.mean(spread[:size] ** 2)) if size else spread[:size]
    spread[size:] /= TRUSTED * max(1.0, np.sqrt(size))
    scaled = (inputs - inputs.mean(axis=0)) / spread
    penalties = STRENGTHS * max(float((scaled**2).sum()), 1e-9)
    ridge = RidgeCV(penalties, scoring="neg_mean_squared_error", store_cv_results=True, alpha_per_target=True)
    ridge.fit(scaled, answers)
    weights, means = ridge.coef_ / spread, answers.mean(axis=0)
    unseen = ridge.cv_results_[:, np.arange(answers.shape[1]), np.searchsorted(penalties, ridge.alpha_)]
    slopes, heights = np.array([_curve(unseen[:, place], answers[:, place]) for place in range(answers.shape[1])]).T
    biases = slopes * (means - weights @ inputs.mean(axis=0)) + heights
    return slopes[:, None] * weights, biases, _chances(slopes * unseen + heights)


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
