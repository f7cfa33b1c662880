"""Simulated crowds: each knows the true features and names one that answers the question (paper, Sections 4 and 5).

A crowd differs from another only in which of the valid features it names: the most general or the least, the first in
an order that all share, any one at random, or at random with salient ones more often."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.questions import Comparison, valid_columns

Matrix = NDArray[np.int8]  # one row per example, one column per feature: 1, 0 or UNKNOWN


class Crowd(ABC):
    @abstractmethod
    def answers(
        self, question: Comparison, rng: np.random.Generator, known: Collection[int] = (), most: int = 1
    ) -> tuple[int, ...]:
        """The columns that are named, up to `most`, best first; none if none fits. Not one of `known` where the
        question asks for another."""

    def answer(self, question: Comparison, rng: np.random.Generator, known: Collection[int] = ()) -> int | None:
        """The column that is named where one is asked for."""
        return next(iter(self.answers(question, rng, known)), None)


def _candidates(truth: Matrix, question: Comparison, known: Collection[int]) -> NDArray[np.intp]:
    valid = valid_columns(truth, question)
    if question.other_than_known and known:
        valid[list(known)] = False
    return np.flatnonzero(valid)


@dataclass(frozen=True)
class RankedCrowd(Crowd):
    """Always names the valid feature of the lowest rank."""

    truth: Matrix
    rank: NDArray[np.intp]

    def answers(
        self,
        question: Comparison,
        rng: np.random.Generator,  # noqa: ARG002 (nothing is left to chance here)
        known: Collection[int] = (),
        most: int = 1,
    ) -> tuple[int, ...]:
        candidates = _candidates(self.truth, question, known)
        return tuple(candidates[np.argsort(self.rank[candidates], kind="stable")[:most]].tolist())


@dataclass(frozen=True)
class WeightedCrowd(Crowd):
    """Names valid features at random, each time one in proportion to its weight."""

    truth: Matrix
    weight: NDArray[np.float64]

    def answers(
        self, question: Comparison, rng: np.random.Generator, known: Collection[int] = (), most: int = 1
    ) -> tuple[int, ...]:
        candidates = _candidates(self.truth, question, known)
        named: list[int] = []
        while len(candidates) and len(named) < most:
            cumulated = self.weight[candidates].cumsum()
            chosen = int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right"))
            named.append(int(candidates[min(chosen, len(candidates) - 1)]))
            candidates = candidates[candidates != named[-1]]
        return tuple(named)


CROWDS = ("generalist", "specifist", "homogeneous", "heterogeneous", "salience")


def make_crowd(kind: str, truth: Matrix, seed: int) -> Crowd:
    """The crowd of that kind. The seed decides what its members agree on: ties, the order of preference, salience."""
    columns = truth.shape[1]
    order = np.random.default_rng(seed).permutation(columns)
    place = np.empty(columns, dtype=np.intp)  # of each column in the order
    place[order] = np.arange(columns)
    size = (truth == 1).sum(axis=0)
    if kind == "generalist":
        return RankedCrowd(truth, -size * columns + place)
    if kind == "specifist":
        return RankedCrowd(truth, size * columns + place)
    if kind == "homogeneous":
        return RankedCrowd(truth, place)
    if kind == "heterogeneous":
        return WeightedCrowd(truth, np.ones(columns, dtype=np.float64))
    if kind == "salience":
        return WeightedCrowd(truth, 1.0 / (1.0 + place.astype(np.float64)))
    raise ValueError(f"unknown crowd {kind!r}: choose one of {', '.join(CROWDS)}")
