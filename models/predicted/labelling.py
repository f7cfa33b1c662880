"""Labels for a pool of examples, asked where they must be and predicted where that is certified.

1. A random part is asked, classifiers are fitted, and what they are least sure of is asked too: from this they learn.
2. A random sample of the rest is asked: the certificate. It is drawn after the classifiers are fixed.
3. What lies above the certified cut is predicted; the rest is asked, and features without a certificate in full.

Chance comes from the order of the pool alone, which its caller draws: with the same answers everything is the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from discovery.statistics import Audit, Certificate, Promise, shared_cut
from models.predicted.classifier import Classifiers, Floats, fit
from sources import Example

Cells = NDArray[np.bool_]  # examples × features
Table = NDArray[np.int8]  # of labels, the same shape
Ask = Callable[[Cells], Table]  # the oracle's labels of these cells, UNKNOWN where it gave none and elsewhere
FEWEST_LEARNED = 200
UNSURE = 0.25  # of the examples that are learned from
WORTH_IT = 0.5  # of the pool at most may be asked before anything is predicted


@dataclass(frozen=True, eq=False)
class LabelPool:
    """Examples that want labels. `whole_rows`: one request carries all features of an example and is paid for the
    example, so that an example is asked about everything or nothing."""

    vectors: NDArray[np.float32]
    order: NDArray[np.intp]  # a random permutation of the examples
    features: int
    whole_rows: bool
    first: Floats | None = None  # log-odds of a cheaper model, examples × features

    @property
    def size(self) -> int:
        return len(self.order)


@dataclass(frozen=True, eq=False)
class PredictedLabels:
    labels: Table
    chances: Floats  # of yes where a label is predicted, NaN where it was asked
    certificates: list[Certificate | None]  # None: the feature is asked in full
    classifiers: Classifiers | None  # None: the pool is too small
    learned_anew: bool = True

    @property
    def predicted(self) -> Cells:
        return ~np.isnan(self.chances)


def sizes(pool: int, promise: Promise) -> tuple[int, int]:
    """How many examples are learned from, and how many certify."""
    return max(FEWEST_LEARNED, min(pool // 40, 2_000)), promise.sample_size(pool)


def asked_in_full(pool: int, promise: Promise, *, known: int = 0, kept: bool = False) -> int:
    """How many examples `label_pool` asks about everything before it predicts any: all but `known`, if they are few."""
    learned, sampled = sizes(pool, promise)
    if kept and sampled <= WORTH_IT * pool:
        return sampled
    if max(learned, known) + sampled > WORTH_IT * pool:
        return pool - known
    unsure = int(UNSURE * learned)
    return max(0, learned - unsure - known) + unsure + sampled


def random_order(examples: Sequence[Example], seed: int) -> NDArray[np.intp]:
    """Of contents and names, and of nothing else: examples that are added or gone do not shuffle the others."""
    ranks = [hashlib.sha256(f"{seed}\n{one.digest}\n{one.id}".encode("utf-8", "surrogatepass")) for one in examples]
    return np.array(sorted(range(len(examples)), key=lambda row: ranks[row].digest()), np.intp)


def groups_of(cells: Cells, most: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The cells as examples that want the same features, at most about so many cells each."""
    patterns, which = np.unique(cells, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        columns, rows = np.flatnonzero(pattern), np.flatnonzero(which.reshape(-1) == number)
        at_once = max(1, most // max(1, len(columns)))
        for start in range(0, len(rows) if len(columns) else 0, at_once):
            yield rows[start : start + at_once], columns


def label_pool(
    pool: LabelPool, ask: Ask, promise: Promise, kept: Classifiers | None = None, known: Table | None = None
) -> PredictedLabels:
    """`kept` are classifiers of an earlier pool: they are used if a sample of this one certifies as much as they are
    worth, and learned anew if it does not. `known` are labels of the first examples of the pool, which are learned from
    and not asked again; they must not depend on the order."""
    asking = _Asking(pool, ask)
    if known is not None:
        asking.labels[: len(known)], asking.asked[: len(known)] = known, True
    learned, sampled = sizes(pool.size, promise)
    if kept is not None and sampled <= WORTH_IT * pool.size:
        audited = asking.audit(kept, sampled, promise)
        if all(audited.passed):
            return replace(asking.predict(audited), learned_anew=False)
    if max(learned, int(asking.asked.any(axis=1).sum())) + sampled > WORTH_IT * pool.size:
        asking.ask(~asking.asked)
        return asking.predict(None)
    classifiers = asking.learn(learned)
    return asking.predict(asking.audit(classifiers, sampled, promise))


@dataclass(frozen=True, eq=False)
class _Audited:
    classifiers: Classifiers
    chances: Floats
    places: NDArray[np.intp]  # in the ranking of each feature's population, examples × features
    ranked: Cells  # who is ranked at all
    passed: list[list[Certificate]]


class _Asking:
    def __init__(self, pool: LabelPool, ask: Ask) -> None:
        self._pool, self._ask = pool, ask
        shape = (pool.size, pool.features)
        self.labels = np.full(shape, UNKNOWN, np.int8)
        self.asked = np.zeros(shape, np.bool_)

    def ask(self, cells: Cells) -> None:
        if cells.any():
            answers = self._ask(cells)
            self.labels[cells] = answers[cells]
            self.asked |= cells

    def learn(self, count: int) -> Classifiers:
        """From a random part, from what the classifiers of that part are least sure of, and what was asked before."""
        unsure = int(UNSURE * count)
        already = int(self.asked.all(axis=1).sum())
        self.ask(self._next(max(0, count - unsure - already)))
        doubt = 0.5 - np.abs(self._fitted().chances(self._pool.vectors, self._pool.first) - 0.5)
        doubt[self.asked] = -1
        self.ask(self._largest(doubt, unsure))
        return self._fitted()

    def _fitted(self) -> Classifiers:
        return fit(self._pool.vectors, self.labels, self._pool.first)

    def _next(self, count: int) -> Cells:
        """The next examples of the random order that were not asked, of each feature."""
        chosen = np.zeros_like(self.asked)
        for feature in range(self._pool.features):
            left = self._pool.order[~self.asked[self._pool.order, feature]]
            chosen[left[:count], feature] = True
        return chosen

    def _largest(self, doubt: Floats, count: int) -> Cells:
        """By whole examples, or feature by feature. Ties must not go by the random order: by it the sample is drawn
        from who is left."""
        chosen = np.zeros_like(self.asked)
        if self._pool.whole_rows:
            doubt = np.broadcast_to(doubt.sum(axis=1, keepdims=True), doubt.shape)
        for feature in range(self._pool.features):
            chosen[np.argsort(-doubt[:, feature], kind="stable")[:count], feature] = True
        return chosen

    def audit(self, classifiers: Classifiers, count: int, promise: Promise) -> _Audited:
        """Rank what was not asked by how sure the classifiers are, then ask a random sample of it."""
        chances = classifiers.chances(self._pool.vectors, self._pool.first)
        ranked, places = ~self.asked, self._places(chances)
        sample = self._next(count)
        self.ask(sample)
        guess = chances >= 0.5
        passed = []
        for feature in range(self._pool.features):
            rows = np.flatnonzero(sample[:, feature])
            said = self.labels[rows, feature]
            rarer = self._rarer(feature, ranked, guess)
            agreed = said == guess[rows, feature]
            places_of = places[rows, feature]
            population = int(ranked[:, feature].sum())
            passed.append(Audit(population, places_of, agreed, said == rarer, rarer).passed(promise))
        return _Audited(classifiers, chances, places, ranked, passed)

    def _rarer(self, feature: int, ranked: Cells, guess: Cells) -> int:
        """The answer that is rarer in what was asked before the sample; without that, among the predictions."""
        before = self.labels[~ranked[:, feature], feature]
        answers = before[before != UNKNOWN]
        share = answers.mean() if len(answers) else guess[:, feature].mean()
        return int(share < 0.5)

    def _places(self, chances: Floats) -> NDArray[np.intp]:
        """In the ranking of what was not asked, the surest first: of whole examples, or of each feature's. Ties do not
        go by the random order here either."""
        error = np.minimum(chances, 1 - chances)
        if self._pool.whole_rows:
            error = np.broadcast_to(error.sum(axis=1, keepdims=True), error.shape)
        places = np.zeros(error.shape, np.intp)
        for feature in range(self._pool.features):
            left = np.flatnonzero(~self.asked[:, feature])
            ranking = left[np.argsort(error[left, feature], kind="stable")]
            places[ranking, feature] = np.arange(len(ranking))
        return places

    def predict(self, audited: _Audited | None) -> PredictedLabels:
        """Above the certified cut what was not asked is predicted; everything else is asked."""
        chances = np.full(self.labels.shape, np.nan)
        if audited is None:
            return PredictedLabels(self.labels, chances, [None] * self._pool.features, None)
        certificates = self._chosen(audited.passed)
        cuts = np.array([one.covered if one else 0 for one in certificates])
        predicted = audited.ranked & ~self.asked & (audited.places < cuts)
        self.ask(~self.asked & ~predicted)
        self.labels[predicted] = (audited.chances >= 0.5)[predicted]
        chances[predicted] = audited.chances[predicted]
        return PredictedLabels(self.labels, chances, certificates, audited.classifiers)

    def _chosen(self, passed: list[list[Certificate]]) -> list[Certificate | None]:
        """The last that each feature has passed; by whole examples the last that all have."""
        if not self._pool.whole_rows:
            return [certificates[-1] if certificates else None for certificates in passed]
        cut = shared_cut(passed)
        return [next((one for one in certificates if one.covered == cut), None) for certificates in passed]
