"""How well labels fit a family: every example has one class (a value, a level or none), and labels are wrong at a rate
that all features of the family share. A latent class model, fitted by expectation maximisation and compared with
features that know nothing of each other.

Answers to "which value does it have?" enter the same model with an error rate of their own, so that what is decided in
the end weighs all that was asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.int8]  # one row per example: 1, 0 or UNKNOWN for each feature
Classes = NDArray[np.int8]  # one row per class: which features it has
Choices = NDArray[np.int64]  # one row per example, one column per vote: a class, or NOT_ASKED
Chances = NDArray[np.float64]

NOT_ASKED = -1
MOST_WRONG = 0.10  # of the labels: a family that needs more does not exclude
MOST_MISCHOSEN = 0.30
USUALLY_MISCHOSEN = 0.05
LEAST_WRONG = 0.002
STEPS = 60
SETTLED = 0.97  # probability from which labels leave nothing open
LIKELY = 0.5  # probability from which a value is said


@dataclass(frozen=True)
class FamilyFit:
    evidence: float  # log-likelihood beyond that of features that are independent
    error: float  # share of wrong labels
    weights: Chances  # of the classes
    posterior: Chances  # one row per example, one column per class


def exclusive(members: int, new: int = 0) -> Classes:
    """The classes of values that exclude one another: a feature each, `new` ones without a feature, and none."""
    return np.vstack([np.eye(members, dtype=np.int8), np.zeros((new + 1, members), np.int8)])


def levels(members: int) -> Classes:
    """The classes of a scale whose features include one another, the widest first; the last class is none."""
    return np.vstack([np.tri(members, dtype=np.int8), np.zeros((1, members), np.int8)])


def fit(labels: Matrix, classes: Classes, choices: Choices | None = None) -> FamilyFit:
    known = labels >= 0
    same = np.stack([(known & (labels == expected)).sum(axis=1) for expected in classes], axis=1)
    wrong = known.sum(axis=1)[:, None] - same
    chosen, other = _votes(choices, len(labels), len(classes))
    weights = np.full(len(classes), 1 / len(classes))
    error = mischosen = USUALLY_MISCHOSEN
    for _ in range(STEPS):
        posterior, _ = _posterior(same, wrong, chosen, other, weights, error, mischosen)
        weights = (posterior.sum(axis=0) + 0.1) / (len(labels) + 0.1 * len(classes))
        error = _rate((posterior * wrong).sum(), known.sum(), MOST_WRONG)
        mischosen = _rate((posterior * other).sum(), (posterior * (chosen + other)).sum(), MOST_MISCHOSEN)
    posterior, _ = _posterior(same, wrong, chosen, other, weights, error, mischosen)
    _, likely = _posterior(same, wrong, np.zeros_like(chosen), np.zeros_like(other), weights, error, mischosen)
    return FamilyFit(likely - _independent(labels), error, weights, posterior)


def posterior_of(
    labels: Matrix, classes: Classes, weights: Chances, error: float, choices: Choices | None = None
) -> Chances:
    """The chances of the classes of other examples, by what was learned of some."""
    known = labels >= 0
    same = np.stack([(known & (labels == expected)).sum(axis=1) for expected in classes], axis=1)
    chosen, other = _votes(choices, len(labels), len(classes))
    error = min(max(error, LEAST_WRONG), MOST_WRONG)
    wrong = known.sum(axis=1)[:, None] - same
    return _posterior(same, wrong, chosen, other, weights, error, USUALLY_MISCHOSEN)[0]


def _votes(choices: Choices | None, rows: int, classes: int) -> tuple[Chances, Chances]:
    """For each example and class, the votes for it and for others."""
    if choices is None or not choices.size:
        return np.zeros((rows, classes)), np.zeros((rows, classes))
    chosen = np.stack([(choices == place).sum(axis=1) for place in range(classes)], axis=1).astype(np.float64)
    return chosen, chosen.sum(axis=1, keepdims=True) - chosen


def _posterior(
    same: NDArray[np.int64],
    wrong: NDArray[np.int64],
    chosen: Chances,
    other: Chances,
    weights: Chances,
    error: float,
    mischosen: float,
) -> tuple[Chances, float]:
    logs = same * np.log(1 - error) + wrong * np.log(error) + np.log(weights)
    logs = logs + chosen * np.log(1 - mischosen) + other * np.log(mischosen / max(len(weights) - 1, 1))
    top = logs.max(axis=1, keepdims=True)
    chances = np.exp(logs - top)
    total = chances.sum(axis=1, keepdims=True)
    return chances / total, float((top[:, 0] + np.log(total[:, 0])).sum())


def _rate(count: float, of: float, most: float) -> float:
    return float(min(max((count + 0.5) / (of + 1), LEAST_WRONG), most))


def _independent(labels: Matrix) -> float:
    """The log-likelihood of features that know nothing of each other."""
    total = 0.0
    for column in labels.T:
        counts = np.array([(column == 0).sum(), (column == 1).sum()], np.float64)
        counts = counts[counts > 0]
        total += float((counts * np.log(counts / counts.sum())).sum()) if counts.size else 0.0
    return total


def open_rows(posterior: Chances) -> NDArray[np.bool_]:
    """Examples whose class the answers so far leave open."""
    left: NDArray[np.bool_] = posterior.max(axis=1) < SETTLED
    return left


def values_of(posterior: Chances) -> NDArray[np.int64]:
    """The class of each example, the last one for none; NOT_ASKED where it is unknown."""
    return np.where(posterior.max(axis=1) >= LIKELY, posterior.argmax(axis=1), NOT_ASKED)
