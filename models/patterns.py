"""Which of the shown examples may have a feature, for each kind of comparison, and the phrase that fits one best."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discovery.questions import Kind
from models.oracle import Compare

Patterns = NDArray[np.bool_]  # one row per way to answer: which examples have the feature, then those of `without`


@dataclass(frozen=True, slots=True)
class Fit:
    phrase: int
    probability: float  # that the phrase holds for exactly the examples in `shown`
    shown: tuple[int, ...]


def patterns_of(question: Compare) -> Patterns:
    shown, without = len(question.examples), len(question.without)
    if question.kind is Kind.LEFT_RIGHT:
        return np.array([[True] * shown + [False] * without])
    having = {Kind.TWO_OF_THREE: 2, Kind.PAIR: 1, Kind.ONE_OF_THREE: 1, Kind.TAG: shown}[question.kind]
    return np.array([[place in chosen for place in range(shown)] for chosen in combinations(range(shown), having)])


def best_fit(logits: NDArray[np.float64], patterns: Patterns, allowed: NDArray[np.bool_]) -> Fit | None:
    """`logits` has a row per example and a column per phrase. None where no phrase is allowed."""
    if not allowed.any():
        return None
    log_yes, log_no = -np.logaddexp(0.0, -logits), -np.logaddexp(0.0, logits)
    scores = patterns @ log_yes + ~patterns @ log_no
    scores[:, ~allowed] = -np.inf
    row, phrase = np.unravel_index(int(np.argmax(scores)), scores.shape)
    shown = tuple(int(place) for place in np.flatnonzero(patterns[row]))
    return Fit(int(phrase), float(np.exp(scores[row, phrase])), shown)
