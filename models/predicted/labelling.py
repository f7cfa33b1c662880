"""Labels for a pool of examples, asked where they must be and predicted where that is certified.

1. A random part is asked, and one classifier per feature learns from it.
2. As long as asking more is expected to leave more labels to predict, what is least sure is asked and learned from,
   about a third of what is known at a time.
3. The rest is put to the oracle in random order, until its certificate, which is about all features together, holds:
   then what is left is predicted. If it does not, what was sampled is learned from and 2 and 3 are tried again, at
   most twice; after that, everything is asked or, where the caller says so, left.

A feature is predicted only if it promises well by itself; the others are asked in full or left. An example with a
picture is paid as a whole, so there examples are asked until every feature promises well. Chance comes from the order
of the pool alone, which its caller draws: with the same answers everything is the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.discovery.statistics import LEVELS, Certificate, Promise, Shares, passes, sample_sizes
from twothirds.models.predicted.classifier import Classifiers, Floats, fit

Cells = NDArray[np.bool_]  # examples × features
Table = NDArray[np.int8]  # of labels, the same shape
Rows = NDArray[np.intp]
Ask = Callable[[Cells], Table]  # the oracle's labels of these cells, UNKNOWN where it gave none and elsewhere

FEWEST_LEARNED, MOST_LEARNED = 200, 2_000
LEARNED = 0.04  # of a large pool
ROUND, FEWEST_IN_ROUND = 0.35, 16  # of what is known, how much is asked at a time
MOST_ASKED = 1 / 2  # of a pool, before anything is predicted
WORTH, MOST_SAMPLED = 1 / 3, 1 / 2  # of the rest: as many are expected to be sampled, and are sampled, at most
LOOKS = 2.5  # times the logarithm of 1/delta: what a sample takes, in squares of the gap to what is allowed
ALIKE = 0.1  # of an example's labels that disagree: as much as if so many of them went together
FEWEST_RARER, LOST_TOO = 5, 0.2  # rarer answers that tell how many are lost; beyond what may be, as most were unsure


@dataclass(frozen=True, eq=False)
class LabelPool:
    """Examples that want labels. `whole_rows`: one request carries all features of an example and is paid for the
    example, so that an example is asked about everything or nothing."""

    vectors: NDArray[np.float32]
    order: Rows  # a random permutation of the examples
    features: int
    whole_rows: bool

    @property
    def size(self) -> int:
        return len(self.order)


@dataclass(frozen=True, eq=False)
class StoredClassifiers:
    """Of an earlier pool, and which features they had a certificate for."""

    classifiers: Classifiers
    certified: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PredictedLabels:
    labels: Table
    chances: Floats  # of yes where a label is predicted, NaN elsewhere
    certificates: list[Certificate | None]  # None: nothing is predicted of the feature
    classifiers: Classifiers | None  # None: the pool is too small
    asked: Cells
    learned_anew: bool = True

    @property
    def predicted(self) -> Cells:
        return ~np.isnan(self.chances)

    @property
    def left(self) -> Cells:
        """Neither asked nor predicted."""
        return ~self.asked & ~self.predicted

    @property
    def to_store(self) -> StoredClassifiers | None:
        """For the next pool; None where there is nothing that it could confirm."""
        certified = np.array([certificate is not None for certificate in self.certificates])
        return StoredClassifiers(self.classifiers, certified) if self.classifiers and certified.any() else None


def asked_in_full(pool: int, promise: Promise, *, known: int = 0, stored: bool = False) -> int:
    """How many examples `label_pool` asks about everything, usually, beside those that are not sure enough: all but
    `known`, if they are few."""
    to_learn, sampled = 0 if stored else max(known, _learned(pool)), sample_sizes(promise)[1]
    few = to_learn + sampled > MOST_ASKED * pool
    return pool - known if few else max(0, to_learn - known) + sampled


def may_predict(pool: int, promise: Promise, *, known: int = 0, stored: bool = False) -> bool:
    """Whether there are so many examples that `label_pool` may predict any."""
    return asked_in_full(pool, promise, known=known, stored=stored) < pool - known


def _learned(pool: int) -> int:
    return max(FEWEST_LEARNED, min(int(LEARNED * pool), MOST_LEARNED))


def label_pool(
    pool: LabelPool,
    ask: Ask,
    promise: Promise,
    stored: StoredClassifiers | None = None,
    known: Table | None = None,
    *,
    leave: bool = False,
) -> PredictedLabels:
    """`stored` classifiers are used if a sample of this pool certifies the features again that they had a certificate
    for, and learned anew if it does not. `known` are labels of the first examples of the pool, which are learned from
    and not asked again; they must not depend on the order. With `leave`, features that cannot be certified are not
    asked in full: their labels are known where examples were asked anyway."""
    labeller = _PoolLabeller(pool, ask, promise, known, leave=leave)
    if stored is not None:
        labeller.promise = promise = replace(promise, delta=promise.delta / 2)  # there may be two samples that certify
        sure = labeller.by_stored(stored)
        if sure is not None and (made := labeller.certified(sure, promise.delta, 0)) is not None:
            return replace(made, learned_anew=False)
    asked = int(labeller.asked_rows.sum())
    if not may_predict(pool.size, promise, known=asked):
        return labeller.nothing_predicted(None)
    labeller.ask_at_random(_learned(pool.size) - asked)
    labeller.population = pool.size - int(labeller.asked_rows.sum())
    for attempt, part in enumerate(LEVELS, start=1):
        guesses = labeller.learned()
        if (made := labeller.certified(guesses, part * promise.delta, attempt)) is not None:
            return made
    return labeller.nothing_predicted(guesses.classifiers)


@dataclass(frozen=True, eq=False)
class _Guesses:
    """What classifiers say of all examples, and how well that can be expected to be."""

    classifiers: Classifiers
    chances: Floats
    rarer: NDArray[np.int8]  # the answer, by feature
    features: NDArray[np.bool_]  # that are predicted
    expected: Floats  # of each example, which share of the labels of these features will disagree
    sure: Rows  # examples that were not asked: as many as are sure enough together, the surest first
    unsure: Rows  # the others, likewise


class _PoolLabeller:
    """What is asked so far, and the labels that were given."""

    def __init__(self, pool: LabelPool, ask: Ask, promise: Promise, known: Table | None, *, leave: bool) -> None:
        self._pool, self._ask, self.promise, self._leave = pool, ask, promise, leave
        self._labels = np.full((pool.size, pool.features), UNKNOWN, np.int8)
        self._asked = np.zeros(self._labels.shape, np.bool_)
        if known is not None:
            self._labels[: len(known)], self._asked[: len(known)] = known, True
        self._drawn = self.asked_rows.copy()  # asked at random, not because they were unsure
        self.population = int((~self.asked_rows).sum())
        self._fewest = int(sample_sizes(promise)[0] / WORTH)  # of which a sample can be drawn

    @property
    def asked_rows(self) -> NDArray[np.bool_]:
        """Examples that were asked about any feature."""
        rows: NDArray[np.bool_] = np.asarray(self._asked.any(axis=1))
        return rows

    def ask(self, cells: Cells) -> None:
        if cells.any():
            answers = self._ask(cells)
            self._labels[cells] = answers[cells]
            self._asked |= cells

    def ask_rows(self, rows: Rows) -> None:
        """About all features of which they were not asked."""
        cells = np.zeros_like(self._asked)
        cells[rows] = True
        self.ask(cells & ~self._asked)

    def ask_at_random(self, size: int) -> None:
        drawn = self._pool.order[~self.asked_rows[self._pool.order]][: max(0, size)]
        self._drawn[drawn] = True
        self.ask_rows(drawn)

    def learned(self) -> _Guesses:
        """Ask what is least sure, and learn from it, until the rest is sure enough."""
        while True:
            guesses = self._guesses()
            left = len(guesses.sure) + len(guesses.unsure)
            if left < self._fewest or (self._leave and not len(guesses.sure)):
                return guesses
            if len(guesses.unsure) < FEWEST_IN_ROUND:
                return self._with_unsure_asked(guesses)
            self.ask_rows(guesses.unsure[::-1][: max(FEWEST_IN_ROUND, int(ROUND * self.asked_rows.sum()))])

    def by_stored(self, stored: StoredClassifiers) -> _Guesses | None:
        """By classifiers that have learned from other examples, as sure as they are themselves; None where they are
        sure of too little."""
        chances = stored.classifiers.chances(self._pool.vectors)
        rarer = (chances.mean(axis=0) < 0.5).astype(np.int8)
        guesses = self._chosen(stored.classifiers, chances, rarer, stored.certified, np.minimum(chances, 1 - chances))
        few = len(guesses.sure) < max(len(guesses.unsure), self._fewest)
        return None if few else self._with_unsure_asked(guesses)

    def _with_unsure_asked(self, guesses: _Guesses) -> _Guesses:
        self.ask_rows(guesses.unsure)
        return replace(guesses, unsure=guesses.unsure[:0])

    def _guesses(self) -> _Guesses:
        """By classifiers that learn from all that is known. How often they will disagree is judged by what they say of
        examples that they have not seen and that were asked at random."""
        from sklearn.isotonic import IsotonicRegression

        classifiers, unseen = fit(self._pool.vectors, self._labels)
        chances, known = classifiers.chances(self._pool.vectors), ~np.isnan(unseen)
        wrong = known & ((unseen >= 0.5) != (self._labels == 1))
        doubt = np.where(known, np.minimum(unseen, 1 - unseen), np.minimum(chances, 1 - chances))
        judged = known & self._drawn[:, None]
        judged = judged if judged.any() else known
        curve = IsotonicRegression(out_of_bounds="clip").fit(doubt[judged], wrong[judged])
        expected = curve.predict(doubt.ravel()).reshape(doubt.shape)
        seen, foreseen = (np.where(judged, cells, 0.0).sum(axis=0) for cells in (wrong, expected))
        expected *= np.divide(seen, foreseen, out=np.ones_like(seen), where=foreseen > 0)
        rarer = (2 * (self._labels == 1).sum(axis=0) < known.sum(axis=0)).astype(np.int8)
        is_rarer = self._labels == rarer
        told, lost = is_rarer.sum(axis=0), (is_rarer & wrong).sum(axis=0)
        useful = (told >= FEWEST_RARER) & (lost <= (1 - self.promise.found + LOST_TOO) * told)
        return self._chosen(classifiers, chances, rarer, useful, expected)

    def _chosen(
        self,
        classifiers: Classifiers,
        chances: Floats,
        rarer: NDArray[np.int8],
        useful: NDArray[np.bool_],
        doubt: Floats,
    ) -> _Guesses:
        """As many of the useful features, and of the examples that are surest about them, that the most labels are
        predicted. `doubt` is how likely each prediction is wrong."""
        rows, whole = np.flatnonzero(~self.asked_rows), self._pool.whole_rows and not self._leave
        hopeful = bool(useful.all() if whole else useful.any()) and len(rows) > 0
        order = np.argsort(doubt[rows].sum(axis=0) + ~useful * (1 + len(rows)), kind="stable")
        choices: list[tuple[float, _Guesses]] = []
        for count in range(int(useful.sum()), 0, -1) if hopeful and not whole else [len(useful)]:
            features = np.zeros_like(useful)
            features[order[:count]] = True
            expected = doubt[:, features].mean(axis=1)
            # Ties do not go by the random order: by it the sample is drawn.
            surest = rows[np.argsort(expected[rows], kind="stable")]
            gains = self._predictable(expected[surest], count) if hopeful else np.zeros(1)
            cut = int(gains.argmax()) + 1 if gains.max() > 0 else 0
            guesses = _Guesses(classifiers, chances, rarer, features, expected, surest[:cut], surest[cut:])
            choices.append((float(gains.max()) * count, guesses))
        return max(choices, key=lambda choice: choice[0])[1]

    def _predictable(self, expected: Floats, features: int) -> Floats:
        """How many examples are left to predict if so many of them, the surest first, are put to the certificate."""
        sizes = np.arange(1, len(expected) + 1)
        means = np.cumsum(expected) / sizes
        variance = means * (ALIKE + 1 / features)
        drawn = int(self._drawn.sum())
        error = np.sqrt(variance / drawn) if drawn else 0.0  # stored classifiers are taken at their word
        gaps = np.maximum(1 - self.promise.agree - means - error, 1e-9)
        sampled = LOOKS * log(1 / self.promise.delta) * (variance / gaps**2 + 1)
        return np.where(sampled < WORTH * sizes, sizes - sampled, 0.0)

    def certified(self, guesses: _Guesses, level: float, attempt: int) -> PredictedLabels | None:
        """All that is not asked is predicted if a sample of it certifies it; None if not."""
        if len(guesses.unsure) or not len(guesses.sure):
            return None
        features, guess, rest = guesses.features, guesses.chances >= 0.5, np.sort(guesses.sure)
        asked = self._labels[self.asked_rows][:, features]
        kept_rarer = float((asked == guesses.rarer[features]).mean(axis=1).sum()) if len(asked) else 0.0
        # In the pool's order, those that an earlier attempt has not sampled come late: each has an order of its own.
        seed = hashlib.sha256(np.ascontiguousarray(self._pool.order, np.int64).tobytes()).digest()
        drawn = np.random.default_rng([attempt, *np.frombuffer(seed, np.uint32).tolist()]).permutation(rest)
        for size in sample_sizes(self.promise):
            if size > MOST_SAMPLED * len(rest):
                return None
            sampled = drawn[:size]
            self._drawn[sampled] = True
            self.ask_rows(sampled)
            cells = np.ix_(sampled, np.flatnonzero(features))
            shares = Shares.of(self._labels[cells], guess[cells], guesses.rarer[features])
            if passes(shares, len(rest), kept_rarer, self.promise, level):
                return self._predicted(guesses, sampled, len(rest))
            if attempt == 0 and shares.wrong.mean() > 1 - self.promise.agree:
                return None  # stored classifiers that fail are not worth more: others are learned
        return None

    def _predicted(self, guesses: _Guesses, sampled: Rows, covered: int) -> PredictedLabels:
        certificates = self._certificates(guesses, sampled, covered)
        cells = ~self._asked & guesses.features
        if not self._leave:
            self.ask(~self._asked & ~cells)
        chances = np.where(cells, guesses.chances, np.nan)
        self._labels[cells] = chances[cells] >= 0.5
        return PredictedLabels(self._labels, chances, certificates, guesses.classifiers, self._asked)

    def nothing_predicted(self, classifiers: Classifiers | None) -> PredictedLabels:
        """Everything else is asked, or left."""
        if not self._leave or classifiers is None:
            self.ask(~self._asked)
        nothing = np.full(self._labels.shape, np.nan)
        return PredictedLabels(self._labels, nothing, [None] * self._pool.features, classifiers, self._asked)

    def _certificates(self, guesses: _Guesses, sampled: Rows, covered: int) -> list[Certificate | None]:
        """One for each feature that is predicted, with its own counts and those of all."""
        labels = self._labels[sampled]
        wrong, is_rarer = labels != (guesses.chances[sampled] >= 0.5), labels == guesses.rarer
        return [
            Certificate(
                agree=self.promise.agree,
                confidence=1 - self.promise.delta,
                found=self.promise.found,
                population=self.population,
                covered=covered,
                sampled=len(sampled),
                disagreed=int(wrong[:, feature].sum()),
                rarer=int(guesses.rarer[feature]),
                rarer_sampled=int(is_rarer[:, feature].sum()),
                rarer_lost=int((wrong & is_rarer)[:, feature].sum()),
                together=int(guesses.features.sum()),
                labels_disagreed=int(wrong[:, guesses.features].sum()),
            )
            if guesses.features[feature]
            else None
            for feature in range(self._pool.features)
        ]
