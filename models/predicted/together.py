"""Labels that are certified together: whole examples are predicted, about the same features each.

What cannot be expected to be predicted well enough has to be asked anyway. It is asked before the certificate, in a few
rounds, the least sure first, since classifiers learn from it; then the rest is sampled until the certificate is
decided. A feature is predicted only if it promises well by itself: one that is expected to disagree more than twice as
often as allowed, or to lose more of its rarer answers than may be, is asked in full (or left). So is a feature that
costs more in examples than it is worth, but for pictures, which are paid as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from discovery.statistics import LEVELS, Certificate, CutPlan, Promise, Shares, TableAudit, looks, plan_cut
from models.predicted.classifier import Classifiers, Floats
from models.predicted.pool import PoolAsking, PredictedLabels, StoredClassifiers

ROUNDS = 8  # in which is asked early what must be asked anyway
EARLY = 0.35  # of it in a round, and of what is known already
FEWEST_EARLY = 16  # examples that are worth a round
SHARED = 0.1  # of the price of an example is paid again where a part of its features is asked
TRIES = 4  # at a plan, each without features that should not be predicted in the one before
ASKED_FEATURES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # how many of the hopeful features may be asked in full


@dataclass(frozen=True, eq=False)
class _Plan:
    outlook: PredictionOutlook
    features: NDArray[np.bool_]  # that are predicted
    ranking: NDArray[np.intp]  # of the examples that were not asked, the surest first
    cut: CutPlan
    cost: float  # in examples

    @property
    def is_hopeful(self) -> bool:
        return self.cut.cut > 0


class FeaturesTogether:
    def __init__(self, asking: PoolAsking, promise: Promise) -> None:
        self._asking, self._pool, self._promise = asking, asking.pool, promise
        self._population = 0  # examples that were neither known nor learned from at first

    def confirmed(self, kept: StoredClassifiers) -> PredictedLabels | None:
        """By kept classifiers, if those of their features that had a certificate pass together."""
        self._population = self._not_asked()
        plan = self._planned(PredictionOutlook.by_kept(self._asking, kept.classifiers, kept.certified), 0)
        made = self._certified(plan, self._promise.delta, 0)
        return None if made is None else replace(made, learned_anew=False)

    def learned(self) -> PredictedLabels:
        """A choice of examples that fails is followed by another, which has learned from the sample."""
        self._population = self._not_asked()
        for number, part in enumerate(LEVELS, 1):
            plan = self._escalated()
            if (made := self._certified(plan, part * self._promise.delta, number)) is not None:
                return made
        return self._asking.nothing_predicted(plan.outlook.classifiers)

    def _escalated(self) -> _Plan:
        """Ask what lies below the cut that is planned, learn from it, and plan anew."""
        for rounds_left in range(ROUNDS, -1, -1):
            outlook = PredictionOutlook.of(self._asking)
            plan = min((self._planned(outlook, asked) for asked in self._counts(outlook)), key=lambda one: one.cost)
            below = plan.ranking[plan.cut.cut :]
            if not rounds_left or len(below) < FEWEST_EARLY or (self._asking.leave and not plan.is_hopeful):
                break
            known = int(self._asking.asked.any(axis=1).sum())
            self._ask_rows(below[::-1][: int(np.ceil(EARLY * min(len(below), known)))])
        return plan

    def _counts(self, outlook: PredictionOutlook) -> Iterator[int]:
        """How many of the features that are not hopeless may be asked in full."""
        hopeful = int((~outlook.hopeless).sum())
        yield from (count for count in ASKED_FEATURES if count < max(hopeful, 1))

    def _planned(self, outlook: PredictionOutlook, asked: int) -> _Plan:
        """With so many of the hopeful features asked in full, those that are expected to disagree most."""
        rows = np.flatnonzero(~self._asking.asked.any(axis=1))
        worst = np.argsort(-(outlook.doubt.mean(axis=0) + outlook.hopeless), kind="stable")
        features = np.ones(self._pool.features, np.bool_)
        features[worst[: int(outlook.hopeless.sum()) + asked]] = False
        for _ in range(TRIES):
            plan, breaks = self._with(outlook, features, rows)
            if not breaks.any():
                return plan
            features = features & ~breaks
        return replace(plan, cut=CutPlan(0, float(len(rows)), 0.0), cost=float(len(rows)))

    def _with(
        self, outlook: PredictionOutlook, features: NDArray[np.bool_], rows: NDArray[np.intp]
    ) -> tuple[_Plan, NDArray[np.bool_]]:
        """The best cut if these features are predicted, and those of them that should not be then."""
        doubt = outlook.doubt[rows][:, features]
        # Ties do not go by the random order: by it the sample is drawn.
        order = np.argsort(doubt.sum(axis=1), kind="stable")
        plan = _Plan(outlook, features, rows[order], CutPlan(0, float(len(rows)), 0.0), float(len(rows)))
        none, asked = np.zeros_like(features), int((~features).sum())
        if not features.any() or (asked and self._pool.whole_rows and not self._asking.leave):
            return plan, none
        curve = outlook.curve(features)
        expected, known = curve(doubt[order].mean(axis=1)), curve(outlook.known_doubt[:, features].mean(axis=1))
        cut = plan_cut(expected, known, outlook.shares(features).wrong, self._promise)
        if not cut.cut:
            return plan, none
        ahead = rows[order[: cut.cut]]
        alike = known <= expected[cut.cut - 1]
        breaks = features & outlook.breaks(outlook.doubt[ahead], alike, self._promise)
        again = cut.cut * (asked / self._pool.features + SHARED * bool(asked))
        return replace(plan, cut=cut, cost=cut.cost + again), breaks

    def _not_asked(self) -> int:
        return int((~self._asking.asked.any(axis=1)).sum())

    def _ask_rows(self, rows: NDArray[np.intp]) -> None:
        cells = np.zeros_like(self._asking.asked)
        cells[rows] = True
        self._asking.ask(cells & ~self._asking.asked)

    def _drawn(self, plan: _Plan, number: int) -> NDArray[np.intp]:
        """The chosen examples in a random order of their own: in the pool's, those that an earlier choice has not
        sampled come late."""
        seed = hashlib.sha256(np.ascontiguousarray(self._pool.order, np.int64).tobytes()).digest()
        dice = np.random.default_rng([number, *np.frombuffer(seed, np.uint32).tolist()])
        drawn: NDArray[np.intp] = dice.permutation(np.sort(plan.ranking[: plan.cut.cut]))
        return drawn

    def _certified(self, plan: _Plan, level: float, number: int) -> PredictedLabels | None:
        """If the sample certifies what was planned it is predicted, and everything else asked or left; None if not."""
        if not plan.is_hopeful:
            return None
        asking, features, rarer = self._asking, plan.features, plan.outlook.rarer[plan.features]
        guess = asking.chances(plan.outlook.classifiers) >= 0.5
        asked = asking.labels[asking.asked.any(axis=1)][:, features]
        kept_rarer = float((asked == rarer).mean(axis=1).sum()) if len(asked) else 0.0
        drawn = self._drawn(plan, number)
        for size in looks(self._promise):
            rows = drawn[:size]
            self._ask_rows(rows)
            cells = np.ix_(rows, np.flatnonzero(features))
            shares = Shares.of(asking.labels[cells], guess[cells], rarer)
            audit = TableAudit(plan.cut.cut, shares, self._promise, level, kept_rarer)
            if audit.passes:
                return self._predicted(plan, rows, guess)
            if len(rows) == plan.cut.cut or not audit.goes_on(plan.cut.gap):
                break
        return None

    def _predicted(self, plan: _Plan, sampled: NDArray[np.intp], guess: NDArray[np.bool_]) -> PredictedLabels:
        asking = self._asking
        certificates = self._certificates(plan, sampled, guess)
        chosen = np.zeros((self._pool.size, 1), np.bool_)
        chosen[plan.ranking[: plan.cut.cut]] = True
        cells = ~asking.asked & chosen & plan.features
        wanted = ~asking.asked & ~cells
        if asking.leave:
            wanted &= ~chosen if self._pool.whole_rows else plan.features
        asking.ask(wanted)
        return asking.predicted(plan.outlook.classifiers, cells, certificates)

    def _certificates(
        self, plan: _Plan, sampled: NDArray[np.intp], guess: NDArray[np.bool_]
    ) -> list[Certificate | None]:
        """One for each feature that is predicted, with its own counts and those of all."""
        promise, rarer = self._promise, plan.outlook.rarer
        labels = self._asking.labels[sampled]
        wrong, is_rarer = labels != guess[sampled], labels == rarer
        all_wrong, together = int(wrong[:, plan.features].sum()), int(plan.features.sum())
        return [
            Certificate(
                agree=promise.agree,
                confidence=1 - promise.delta,
                found=promise.found,
                population=self._population,
                covered=plan.cut.cut,
                sampled=len(sampled),
                disagreed=int(wrong[:, feature].sum()),
                rarer=int(rarer[feature]),
                rarer_sampled=int(is_rarer[:, feature].sum()),
                rarer_lost=int((wrong & is_rarer)[:, feature].sum()),
                together=together,
                labels_disagreed=all_wrong,
            )
            if plan.features[feature]
            else None
            for feature in range(self._pool.features)
        ]


CAUTION = 8.0  # disagreements: a feature of which fewer are expected is judged like all others
FEWEST_RARER = 5  # rarer answers, by which it can be judged how many of them are lost
TWICE = 2.0  # as often as all together may a feature disagree
STEEPNESS_SPREAD = 0.5  # of how much faster than the doubts of an example its disagreements grow, before it is seen
FEWEST_ALIKE, ALIKE = 60, 0.95  # examples to judge by, and the part of the others that is at most as unsure
Z = 1.645  # standard deviations that make a loss clear
STEPS = 25  # of Newton's method


@dataclass(frozen=True, eq=False)
class PredictionOutlook:
    """What can be expected of predictions, by those of examples that the classifiers had not seen. `said` to
    `known_doubt` are of the examples that were asked and are as sure as those that were not: what was asked because it
    is unsure tells little about the others."""

    classifiers: Classifiers
    doubt: Floats  # how likely each prediction is wrong, examples × features
    hopeless: NDArray[np.bool_]  # features of which nothing can be said
    rarer: NDArray[np.int8]  # the answer, by feature
    said: NDArray[np.int8]
    guess: NDArray[np.bool_]  # what was expected, by classifiers that had not seen the example
    known_doubt: Floats

    @classmethod
    def of(cls, asking: PoolAsking) -> PredictionOutlook:
        classifiers, unseen = asking.fitted()
        rows = _alike(asking, np.minimum(unseen, 1 - unseen), asking.doubt(classifiers))
        said, chances = asking.labels[rows], np.where(np.isnan(unseen[rows]), 0.5, unseen[rows])
        guess, answered = chances >= 0.5, said != UNKNOWN
        wrong, doubt = answered & (guess != (said == 1)), np.minimum(chances, 1 - chances)
        expected = np.where(answered, doubt, 0.0).sum(axis=0)
        overall = (wrong.sum() + CAUTION) / (expected.sum() + CAUTION)
        ratio = overall * (wrong.sum(axis=0) + CAUTION) / (overall * expected + CAUTION)
        rarer = asking.rarer(asking.asked, asking.chances(classifiers) >= 0.5)
        hopeless = (said == rarer).sum(axis=0) < FEWEST_RARER
        of_all = np.minimum(asking.doubt(classifiers) * ratio, 0.5)
        return cls(classifiers, of_all, hopeless, rarer, said, guess, np.minimum(doubt * ratio, 0.5))

    @classmethod
    def by_kept(cls, asking: PoolAsking, classifiers: Classifiers, certified: NDArray[np.bool_]) -> PredictionOutlook:
        """Of classifiers that learned from other examples, as sure as they are themselves."""
        nothing = np.zeros((0, asking.pool.features))
        rarer = asking.rarer(asking.asked, asking.chances(classifiers) >= 0.5)
        return cls(
            classifiers=classifiers,
            doubt=asking.doubt(classifiers),
            hopeless=~certified,
            rarer=rarer,
            said=nothing.astype(np.int8),
            guess=nothing.astype(np.bool_),
            known_doubt=nothing,
        )

    def shares(self, features: NDArray[np.bool_]) -> Shares:
        """Of the examples that were asked."""
        return Shares.of(self.said[:, features], self.guess[:, features], self.rarer[features])

    def curve(self, features: NDArray[np.bool_]) -> RowCurve:
        return RowCurve.through(self.known_doubt[:, features].mean(axis=1), self.shares(features).wrong)

    def breaks(self, doubt: Floats, known: NDArray[np.bool_], promise: Promise) -> NDArray[np.bool_]:
        """Features that should not be predicted where these doubts are all that is predicted, and of the known examples
        these: expected to disagree more than twice as often as allowed, or clearly losing too many of their rarer
        answers."""
        often = doubt.mean(axis=0) > TWICE * (1 - promise.agree)
        rare = self.said == self.rarer
        lost, seen = (rare & (self.guess != (self.said == 1)) & known[:, None]).sum(axis=0), rare.sum(axis=0)
        may_lose = 1 - promise.found
        breaks: NDArray[np.bool_] = often | (lost > may_lose * seen + Z * np.sqrt(may_lose * promise.found * seen))
        return breaks


def _alike(asking: PoolAsking, unseen: Floats, doubt: Floats) -> NDArray[np.intp]:
    """Those that were asked and are as sure as most of the others; at least the surest."""
    asked, others = np.flatnonzero(asking.asked.any(axis=1)), ~asking.asked.any(axis=1)
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
