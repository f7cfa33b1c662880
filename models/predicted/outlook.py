"""What can be expected of predictions before they are certified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from discovery.statistics import Promise, Shares
from models.predicted.classifier import Classifiers, Floats
from models.predicted.pool import PoolAsking

CAUTION = 8.0  # disagreements: a feature of which fewer are expected is judged like all others
FEWEST_RARER = 5  # rarer answers, by which it can be judged how many of them are lost
TWICE = 2.0  # as often as all together may a feature disagree
STEEPNESS_SPREAD = 0.5  # of how much faster than the doubts of an example its disagreements grow, before it is seen
FEWEST_ALIKE, ALIKE = 60, 0.95  # examples to judge by, and the part of the others that is at most as unsure
Z = 1.645  # standard deviations that make a loss clear
STEPS = 25  # of Newton's method


@dataclass(frozen=True, eq=False)
class PredictionOutlook:
    """What can be expected of predictions, by those of examples that the classifiers had not seen. `answers` to
    `known_doubt` are of the examples that were asked and are as sure as those that were not: what was asked because it
    is unsure tells little about the others."""

    classifiers: Classifiers
    doubt: Floats  # how likely each prediction is wrong, examples × features
    hopeless: NDArray[np.bool_]  # features of which nothing can be said
    rarer: NDArray[np.int8]  # the answer, by feature
    answers: NDArray[np.int8]
    guess: NDArray[np.bool_]  # what was expected, by classifiers that had not seen the example
    known_doubt: Floats

    @classmethod
    def of(cls, asking: PoolAsking) -> PredictionOutlook:
        classifiers, unseen = asking.fitted()
        rows = _alike(asking, np.minimum(unseen, 1 - unseen), asking.doubt(classifiers))
        answers, chances = asking.labels[rows], np.where(np.isnan(unseen[rows]), 0.5, unseen[rows])
        guess, answered = chances >= 0.5, answers != UNKNOWN
        wrong, doubt = answered & (guess != (answers == 1)), np.minimum(chances, 1 - chances)
        expected = np.where(answered, doubt, 0.0).sum(axis=0)
        overall = (wrong.sum() + CAUTION) / (expected.sum() + CAUTION)
        ratio = overall * (wrong.sum(axis=0) + CAUTION) / (overall * expected + CAUTION)
        rarer = asking.rarer(asking.chances(classifiers) >= 0.5)
        hopeless = (answers == rarer).sum(axis=0) < FEWEST_RARER
        of_all = np.minimum(asking.doubt(classifiers) * ratio, 0.5)
        return cls(classifiers, of_all, hopeless, rarer, answers, guess, np.minimum(doubt * ratio, 0.5))

    @classmethod
    def by_kept(cls, asking: PoolAsking, classifiers: Classifiers, certified: NDArray[np.bool_]) -> PredictionOutlook:
        """Of classifiers that learned from other examples, as sure as they are themselves."""
        nothing = np.zeros((0, asking.pool.features))
        rarer = asking.rarer(asking.chances(classifiers) >= 0.5)
        return cls(
            classifiers=classifiers,
            doubt=asking.doubt(classifiers),
            hopeless=~certified,
            rarer=rarer,
            answers=nothing.astype(np.int8),
            guess=nothing.astype(np.bool_),
            known_doubt=nothing,
        )

    def shares(self, features: NDArray[np.bool_]) -> Shares:
        """Of the examples that were asked."""
        return Shares.of(self.answers[:, features], self.guess[:, features], self.rarer[features])

    def curve(self, features: NDArray[np.bool_]) -> RowCurve:
        return RowCurve.through(self.known_doubt[:, features].mean(axis=1), self.shares(features).wrong)

    def breaks(self, doubt: Floats, known: NDArray[np.bool_], promise: Promise) -> NDArray[np.bool_]:
        """Features that should not be predicted where these doubts are all that is predicted, and of the known examples
        these: expected to disagree more than twice as often as allowed, or clearly losing too many of their rarer
        answers."""
        often = doubt.mean(axis=0) > TWICE * (1 - promise.agree)
        rare = self.answers == self.rarer
        lost, seen = (rare & (self.guess != (self.answers == 1)) & known[:, None]).sum(axis=0), rare.sum(axis=0)
        may_lose = 1 - promise.found
        breaks: NDArray[np.bool_] = often | (lost > may_lose * seen + Z * np.sqrt(may_lose * promise.found * seen))
        return breaks


def _alike(asking: PoolAsking, unseen: Floats, doubt: Floats) -> NDArray[np.intp]:
    """Those that were asked and are as sure as most of the others; at least the surest."""
    asked, others = np.flatnonzero(asking.asked_rows), ~asking.asked_rows
    level = np.where(np.isnan(unseen[asked]), 0.5, unseen[asked]).mean(axis=1)
    most = float(np.quantile(doubt[others].mean(axis=1), ALIKE)) if others.any() else 1.0
    order = np.argsort(level, kind="stable")
    return asked[order[: max(FEWEST_ALIKE, int((level <= most).sum()))]]


@dataclass(frozen=True)
class RowCurve:
    """The share of an example's labels that will disagree, over the mean of their doubts: disagreements come together
    in some examples, more than the doubts of each label say."""

    height: float = 0.0
    steepness: float = 1.0

    @classmethod
    def through(cls, doubts: Floats, wrong: Floats) -> RowCurve:
        """A power of the doubts, by Poisson regression with as much variance as is there."""
        if not len(wrong) or wrong.sum() == 0:
            return cls()
        x = np.log(np.maximum(doubts, 1e-6))
        weight = wrong.mean() / max(float(wrong.var()), 1e-9)
        height, steepness = float(np.log(wrong.mean()) - x.mean()), 1.0
        for _ in range(STEPS):
            expected = np.exp(np.clip(height + steepness * x, -30, 2))
            slope = np.array([(wrong - expected).sum(), ((wrong - expected) * x).sum()]) * weight
            slope[1] -= (steepness - 1) / STEEPNESS_SPREAD**2
            bend = weight * np.array(
                [[expected.sum(), (expected * x).sum()], [(expected * x).sum(), (expected * x * x).sum()]]
            )
            bend[1, 1] += 1 / STEEPNESS_SPREAD**2
            step = np.clip(np.linalg.solve(bend + 1e-9 * np.eye(2), slope), -1, 1)
            height, steepness = height + float(step[0]), steepness + float(step[1])
        return cls(height, max(steepness, 0.0))

    def __call__(self, doubts: Floats) -> Floats:
        expected: Floats = np.exp(self.height + self.steepness * np.log(np.maximum(doubts, 1e-6)))
        return np.minimum(expected, 0.5)
