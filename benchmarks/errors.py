"""How voters err: not each by a coin of its own, but on the same labels.

A vote is wrong where a normal variable falls below a threshold. Part of it belongs to the label and is the same for all
voters (`shared`), and part of that to the example (`by_example`), so that some examples are hard in all respects. The
share of wrong votes stays `flip` whatever the other parameters are, but for `yes_bias`, which moves errors from yes to
no, and `confused`, which adds errors that no vote can correct."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery.questions import UNKNOWN, Labels
from discovery.simulation.crowds import Matrix
from discovery.twins import correlations

NORMAL = NormalDist()
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class VoteErrors:
    flip: float = 0.0  # share of the votes that are wrong
    shared: float = 0.0  # correlation of what makes two votes on one label wrong: 0 independent, 1 the same
    by_example: float = 0.0  # of that the share that belongs to the example, whatever the feature
    confused: float = 0.0  # share of the labels that everybody gives for the feature's neighbour instead
    yes_bias: float = 0.0  # 1: only what lacks a feature is labelled wrongly; -1: only what has it

    def chance(self, value: int) -> float:
        """That a vote is wrong where this is true."""
        return min(1.0, max(0.0, self.flip * (1 + self.yes_bias if value == 0 else 1 - self.yes_bias)))

    def is_wrong(self, value: int, drawn: float, difficulty: float) -> bool:
        """Of a vote: `drawn` is uniform and its own, `difficulty` normal and common to all votes on the label."""
        chance = self.chance(value)
        if not self.shared or chance in (0.0, 1.0) or drawn in (0.0, 1.0):
            return drawn < chance
        own = sqrt(1 - self.shared) * NORMAL.inv_cdf(drawn)
        return own + sqrt(self.shared) * difficulty < NORMAL.inv_cdf(chance)

    def difficulty(self, of_example: Any, of_label: Any) -> Any:
        """From two normal variables; numbers or arrays."""
        return sqrt(self.by_example) * of_example + sqrt(1 - self.by_example) * of_label

    def votes(self, truth: Matrix, column: int, votes: int, rng: np.random.Generator, of_example: Floats) -> Labels:
        """Of one feature, examples × votes: what is said of examples whose truth is known, UNKNOWN of others."""
        known, values = truth[:, column] != UNKNOWN, truth[:, column]
        if self.confused and (other := neighbours(truth)[column]) is not None:
            swapped = (rng.random(len(truth)) < self.confused) & (truth[:, other] != UNKNOWN)
            values = np.where(swapped, truth[:, other], values)
        hard = self.difficulty(of_example, rng.standard_normal(len(truth)))
        own = rng.standard_normal((len(truth), votes))
        below = np.array([_threshold(self.chance(value)) for value in (0, 1)])[np.maximum(values, 0)]
        wrong = sqrt(1 - self.shared) * own + sqrt(self.shared) * hard[:, None] < below[:, None]
        said: Labels = np.where(known[:, None], values[:, None] ^ wrong, UNKNOWN).astype(np.int8)
        return said


def neighbours(truth: Matrix) -> tuple[int | None, ...]:
    """Of each column the one that it is most easily taken for: the most alike that is not the same."""
    return _neighbours(truth.astype(np.int8).tobytes(), truth.shape[1])


@lru_cache(maxsize=16)
def _neighbours(cells: bytes, width: int) -> tuple[int | None, ...]:
    columns = np.frombuffer(cells, np.int8).reshape(-1, width).T
    related = correlations(columns, columns)
    related[related > SAME] = 0.0
    best = related.argmax(1)
    return tuple(int(best[place]) if related[place, best[place]] > 0 else None for place in range(width))


SAME = 1 - 1e-9  # correlation of a column with itself, and with one that is the same


def spread(chance: float, shared: float) -> tuple[Floats, Floats]:
    """How often votes are wrong on labels of different difficulty, and the share of the labels of each."""
    if shared >= 1:
        return np.array([0.0, 1.0]), np.array([1 - chance, chance])
    if not shared or chance <= 0 or chance >= 1:
        return np.array([chance]), np.ones(1)
    places, weights = np.polynomial.hermite_e.hermegauss(101)
    each = (NORMAL.inv_cdf(chance) - sqrt(shared) * places) / sqrt(1 - shared)
    return np.array([NORMAL.cdf(one) for one in each]), weights / weights.sum()


def majority_error(errors: VoteErrors, votes: int, value: int = 1) -> float:
    """How often the majority of an odd number of votes is wrong where this is true."""
    wrong, weights = spread(errors.chance(value), errors.shared)
    counts = range(votes // 2 + 1, votes + 1)
    return float(sum((comb(votes, k) * wrong**k * (1 - wrong) ** (votes - k) @ weights) for k in counts))


def _threshold(chance: float) -> float:
    return -np.inf if chance <= 0 else np.inf if chance >= 1 else NORMAL.inv_cdf(chance)
