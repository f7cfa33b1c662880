"""One calibrated classifier per feature: logistic regression on an example's vector, and where a cheaper model has
answered first, on its log-odds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN, Labels

Floats = NDArray[np.float64]
STRENGTHS = (0.03, 0.3, 3.0)  # inverse strengths of the penalty that cross-validation chooses among
FOLDS = 3
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
        chances: Floats = 1 / (1 + np.exp(-np.clip(odds, -40, 40)))
        return chances


def fit(vectors: NDArray[np.float32], labels: Labels, first: Floats | None = None) -> Classifiers:
    """From examples × features of which some are UNKNOWN."""
    fits = [
        _fit_one(vectors, labels[:, feature], None if first is None else first[:, feature])
        for feature in range(labels.shape[1])
    ]
    return Classifiers(
        np.stack([weights for weights, _, _ in fits]),
        np.array([trust for _, trust, _ in fits]),
        np.array([bias for _, _, bias in fits]),
    )


def _fit_one(vectors: NDArray[np.float32], labels: Labels, first: Floats | None) -> tuple[Floats, float, float]:
    known = labels != UNKNOWN
    answers = labels[known]
    yes, size = int((answers == 1).sum()), vectors.shape[1]
    if min(yes, len(answers) - yes) < FEWEST:
        return np.zeros(size), 0.0, float(np.log((yes + 0.5) / (len(answers) - yes + 0.5)))
    columns = [vectors[known].astype(np.float64)]
    if first is not None:
        columns.append(first[known][:, None])
    inputs = np.concatenate(columns, axis=1)
    middle, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    # One number for all of a vector: directions in which vectors vary little say little.
    spread[:size] = np.sqrt(np.mean(spread[:size] ** 2)) if size else spread[:size]
    spread[size:] /= TRUSTED
    weights, bias = _regression((inputs - middle) / spread, answers)
    weights = weights / spread
    bias -= float(weights @ middle)
    return (weights[:size], float(weights[size]) if first is not None else 0.0, bias)


def _regression(inputs: Floats, answers: Sequence[int] | Labels) -> tuple[Floats, float]:
    from sklearn.linear_model import LogisticRegressionCV

    model = LogisticRegressionCV(
        Cs=STRENGTHS, cv=FOLDS, scoring="neg_log_loss", max_iter=500, l1_ratios=(0.0,), use_legacy_attributes=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may stop before the last digit is settled
        model.fit(inputs, answers)
    return model.coef_[0], float(model.intercept_[0])
