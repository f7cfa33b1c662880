"""Labels for a pool of examples, asked where they must be and predicted where that is certified.

1. A random part is asked, classifiers are fitted, and what they are least sure of is asked too: from this they learn.
2. What cannot be expected to be predicted well enough has to be asked anyway. It is asked now, in a few rounds, the
   least sure first, since classifiers learn from it.
3. The rest is asked in random order until its certificate is decided, which is about all features together. The order
   is drawn after the classifiers are fixed.
4. What is certified is predicted; the rest is asked, or, where the caller says so, left.

A feature is predicted only if it promises well by itself: one that is expected to disagree more than twice as often as
allowed, or to lose more of its rarer answers than may be, is asked in full (or left). So is a feature that costs more
in examples than it is worth, but for pictures, which are paid as a whole. Chance comes from the order of the pool
alone, which its caller draws: with the same answers everything is the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discovery.statistics import LEVELS, Certificate, CutPlan, Promise, Shares, TableAudit, plan_cut, sample_sizes
from models.predicted.outlook import PredictionOutlook
from models.predicted.pool import UNSURE, Ask, LabelPool, PoolAsking, PredictedLabels, StoredClassifiers, Table

FEWEST_LEARNED = 200
LEARNED = 0.04  # of a large pool
WORTH_IT = 0.5  # of the pool at most may be asked before anything is predicted

ROUNDS = 8  # in which is asked early what must be asked anyway
EARLY = 0.35  # of it in a round, and of what is known already
FEWEST_EARLY = 16  # examples that are worth a round
SHARED = 0.1  # of the price of an example is paid again where a part of its features is asked
TRIES = 4  # at a plan, each without features that should not be predicted in the one before
ASKED_FEATURES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # how many of the hopeful features may be asked in full


def sizes(pool: int, promise: Promise) -> tuple[int, int]:
    """How many examples are learned from, and how many certify, usually."""
    return max(FEWEST_LEARNED, min(int(LEARNED * pool), 2_000)), sample_sizes(promise)[1]


def asked_in_full(pool: int, promise: Promise, *, known: int = 0, kept: bool = False) -> int:
    """How many examples `label_pool` asks about everything before it predicts any: all but `known`, if they are few."""
    learned, sampled = sizes(pool, promise)
    if kept and sampled <= WORTH_IT * pool:
        return sampled
    if max(learned, known) + sampled > WORTH_IT * pool:
        return pool - known
    unsure = int(UNSURE * learned)
    return max(0, learned - unsure - known) + unsure + sampled


def may_predict(pool: int, promise: Promise, *, known: int = 0, kept: bool = False) -> bool:
    """Whether there are so many examples that `label_pool` may predict any."""
    return asked_in_full(pool, promise, known=known, kept=kept) < pool - known


def label_pool(
    pool: LabelPool,
    ask: Ask,
    promise: Promise,
    kept: StoredClassifiers | None = None,
    known: Table | None = None,
    *,
    leave: bool = False,
) -> PredictedLabels:
    """`kept` classifiers are used if a sample of this pool certifies the features again that they had a certificate
    for, and learned anew if it does not. `known` are labels of the first examples of the pool, which are learned from
    and not asked again; they must not depend on the order. With `leave`, features that cannot be certified are not
    asked in full: their labels are known where examples were asked anyway."""
    asking = PoolAsking(pool, ask, known, leave=leave)
    learned, sampled = sizes(pool.size, promise)
    confirmable = kept is not None and sampled <= WORTH_IT * pool.size
    if confirmable:
        promise = replace(promise, delta=promise.delta / 2)  # there may be two samples that certify
    labeller = _PoolLabeller(asking, promise)
    if kept is not None and confirmable and (confirmed := labeller.confirmed(kept)) is not None:
        return confirmed
    if max(learned, int(asking.asked_rows.sum())) + sampled > WORTH_IT * pool.size:
        return asking.nothing_predicted(None)
    asking.learn(learned)
    return labeller.learned()


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


class _PoolLabeller:
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
        """Ask what lies below the cut that is planned, learn from it, and plan again."""
        for rounds_left in range(ROUNDS, -1, -1):
            outlook = PredictionOutlook.of(self._asking)
            plan = min((self._planned(outlook, asked) for asked in self._counts(outlook)), key=lambda plan: plan.cost)
            below = plan.ranking[plan.cut.cut :]
            if not rounds_left or len(below) < FEWEST_EARLY or (self._asking.leave and not plan.is_hopeful):
                break
            known = int(self._asking.asked_rows.sum())
            self._asking.ask_rows(below[::-1][: int(np.ceil(EARLY * min(len(below), known)))])
        return plan

    def _counts(self, outlook: PredictionOutlook) -> Iterator[int]:
        """How many of the features that are not hopeless may be asked in full."""
        hopeful = int((~outlook.hopeless).sum())
        yield from (count for count in ASKED_FEATURES if count < max(hopeful, 1))

    def _planned(self, outlook: PredictionOutlook, asked: int) -> _Plan:
        """With so many of the hopeful features asked in full, those that are expected to disagree most."""
        rows = np.flatnonzero(~self._asking.asked_rows)
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
        return int((~self._asking.asked_rows).sum())

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
        asked = asking.labels[asking.asked_rows][:, features]
        kept_rarer = float((asked == rarer).mean(axis=1).sum()) if len(asked) else 0.0
        drawn = self._drawn(plan, number)
        for size in sample_sizes(self._promise):
            rows = drawn[:size]
            self._asking.ask_rows(rows)
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
