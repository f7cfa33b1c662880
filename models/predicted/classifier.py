"""One calibrated classifier per feature: ridge regression on an example's vector. Scores become probabilities by a
logistic curve through what is said of examples that were not seen (Platt 1999). Least squares learn more from a few
hundred examples than a logistic regression does, the more so where some labels are wrong; one decomposition serves all
features, and tells what a fit without an example would say of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Labels

Floats = NDArray[np.float64]
STRENGTHS = np.geomspace(1e-6, 1.0, 16)  # of the penalty, as parts of what all directions vary
CURVE_STRENGTH = 100.0  # inverse, of the penalty on the curve: where sides do not meet it must end somewhere
FEWEST = 3  # examples with each answer; with fewer the share of yes is all that is known


@dataclass(frozen=True, eq=False)
class Classifiers:
    weights: Floats  # features × numbers of a vector
    bias: Floats

    def chances(self, vectors: NDArray[np.float32]) -> Floats:
        """Of yes, examples × features."""
        return _chances(vectors.astype(np.float64) @ self.weights.T + self.bias)


def fit(vectors: NDArray[np.float32], labels: Labels) -> tuple[Classifiers, Floats]:
    """From examples × features of which some are UNKNOWN; also the chances of yes that are given to each example by
    classifiers that have not seen it, NaN where it is UNKNOWN."""
    weights, bias = np.zeros((labels.shape[1], vectors.shape[1])), np.zeros(labels.shape[1])
    unseen = np.full(labels.shape, np.nan)
    learned_from_the_same: dict[bytes, list[int]] = {}
    for feature, known in enumerate((labels != UNKNOWN).T):
        yes, no = int((labels[:, feature] == 1).sum()), int((labels[:, feature] == 0).sum())
        if min(yes, no) < FEWEST:
            bias[feature] = np.log((yes + 0.5) / (no + 0.5))
            unseen[known, feature] = _chances(bias[[feature]])
        else:
            learned_from_the_same.setdefault(known.tobytes(), []).append(feature)
    for columns in learned_from_the_same.values():
        rows = np.flatnonzero(labels[:, columns[0]] != UNKNOWN)
        cells = np.ix_(rows, np.array(columns))
        weights[columns], bias[columns], unseen[cells] = _fitted(vectors[rows].astype(np.float64), labels[cells])
    return Classifiers(weights, bias), unseen


def _chances(odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -40, 40))))


def _fitted(vectors: Floats, answers: Labels) -> tuple[Floats, Floats, Floats]:
    """Weights and biases of log-odds, and the chances by fits without each example, with the penalty of each feature
    whose fits without an example come nearest to its answer."""
    from sklearn.linear_model import RidgeCV

    penalties = STRENGTHS * max(float(((vectors - vectors.mean(axis=0)) ** 2).sum()), 1e-9)
    ridge = RidgeCV(penalties, scoring="neg_mean_squared_error", store_cv_results=True, alpha_per_target=True)
    ridge.fit(vectors, answers)
    places = range(answers.shape[1])
    unseen = ridge.cv_results_[:, places, np.searchsorted(penalties, ridge.alpha_)]
    slopes, heights = np.array([_curve(unseen[:, place], answers[:, place]) for place in places]).T
    return slopes[:, None] * ridge.coef_, slopes * ridge.intercept_ + heights, _chances(slopes * unseen + heights)


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
