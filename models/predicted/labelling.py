"""Labels for a pool of examples, asked where they must be and predicted where that is certified.

1. A random part is asked, classifiers are fitted, and what they are least sure of is asked too: from this they learn.
2. A random sample of the rest is asked: the certificate. It is drawn after the classifiers are fixed.
3. What lies above the certified cut is predicted; the rest is asked, and features without a certificate in full, or,
   where the caller says so, left.

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
LEARNED = 0.04  # of a large pool
UNSURE = 0.25  # of the examples that are learned from
WORTH_IT = 0.5  # of the pool at most may be asked before anything is predicted
COMMON = 0.5  # of the examples that want anything: a feature that so many want
SHORT_CHARS = 400  # of a text, which then takes fewer tokens than a request and the features of one
HOPEFUL = 3  # times the disagreement that is allowed: a feature expected to disagree more does not rank whole examples


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
class KeptClassifiers:
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
    def kept(self) -> KeptClassifiers | None:
        """For the next pool; None where there is nothing that it could confirm."""
        certified = np.array([one is not None for one in self.certificates])
        return KeptClassifiers(self.classifiers, certified) if self.classifiers and certified.any() else None


def sizes(pool: int, promise: Promise) -> tuple[int, int]:
    """How many examples are learned from, and how many certify."""
    return max(FEWEST_LEARNED, min(int(LEARNED * pool), 2_000)), promise.sample_size(pool)


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


def groups_of(
    cells: Cells, most: int, examples: Sequence[Example]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The cells as examples that want the same features, at most about so many cells each. Short texts share requests
    if they want the same: what most of them want comes first, and then each feature by itself, since a short text that
    is sent twice costs less than a request of its own."""
    parts = _shared(cells) if _are_short_texts(examples) else [cells]
    for part in parts:
        patterns, which = np.unique(part, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            columns, rows = np.flatnonzero(pattern), np.flatnonzero(which.reshape(-1) == number)
            at_once = max(1, most // max(1, len(columns)))
            for start in range(0, len(rows) if len(columns) else 0, at_once):
                yield rows[start : start + at_once], columns


def _shared(cells: Cells) -> Iterator[Cells]:
    wanting = cells.any(axis=1)
    common = cells[wanting].mean(axis=0) >= COMMON if wanting.any() else cells.any(axis=0)
    whole = np.zeros_like(cells)
    whole[np.ix_(np.flatnonzero(cells[:, common].all(axis=1)), np.flatnonzero(common))] = True
    yield whole
    left = cells & ~whole
    for column in np.flatnonzero(left.any(axis=0)):
        yield left & (np.arange(cells.shape[1]) == column)


def _are_short_texts(examples: Sequence[Example]) -> bool:
    return bool(examples) and all(
        example.image is None and len(example.text or "") <= SHORT_CHARS for example in examples
    )


def label_pool(
    pool: LabelPool,
    ask: Ask,
    promise: Promise,
    kept: KeptClassifiers | None = None,
    known: Table | None = None,
    *,
    leave: bool = False,
) -> PredictedLabels:
    """`kept` classifiers are used if a sample of this pool certifies the features again that they had a certificate
    for, and learned anew if it does not. `known` are labels of the first examples of the pool, which are learned from
    and not asked again; they must not depend on the order. With `leave`, features that cannot be certified are not
    asked in full: their labels are known where examples were asked anyway."""
    asking = _Asking(pool, ask, leave)
    if known is not None:
        asking.labels[: len(known)], asking.asked[: len(known)] = known, True
    learned, sampled = sizes(pool.size, promise)
    if kept is not None and sampled <= WORTH_IT * pool.size:
        promise = replace(promise, delta=promise.delta / 2)  # there may be two samples that certify
        audited = asking.audit(kept.classifiers, sampled, promise)
        if all(passed for passed, was in zip(audited.passed, kept.certified, strict=True) if was):
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
    def __init__(self, pool: LabelPool, ask: Ask, leave: bool) -> None:
        self._pool, self._ask, self._leave = pool, ask, leave
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
        ranked, places = ~self.asked, self._places(chances, HOPEFUL * (1 - promise.agree))
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

    def _places(self, chances: Floats, hopeful: float) -> NDArray[np.intp]:
        """In the ranking of what was not asked, the surest first: of each feature's, or of whole examples by the
        features that may be certified. Ties do not go by the random order here either."""
        error = np.minimum(chances, 1 - chances)
        if self._pool.whole_rows:
            counted = error.mean(axis=0) <= hopeful
            error = np.broadcast_to((error * (counted | ~counted.any())).sum(axis=1, keepdims=True), error.shape)
        places = np.zeros(error.shape, np.intp)
        for feature in range(self._pool.features):
            left = np.flatnonzero(~self.asked[:, feature])
            ranking = left[np.argsort(error[left, feature], kind="stable")]
            places[ranking, feature] = np.arange(len(ranking))
        return places

    def predict(self, audited: _Audited | None) -> PredictedLabels:
        """Above the certified cut what was not asked is predicted; everything else is asked, or left."""
        chances = np.full(self.labels.shape, np.nan)
        if audited is None:
            return PredictedLabels(self.labels, chances, [None] * self._pool.features, None, self.asked)
        certificates = self._chosen(audited.passed)
        cuts = np.array([one.covered if one else 0 for one in certificates])
        predicted = audited.ranked & ~self.asked & (audited.places < cuts)
        self.ask(self._wanted(predicted, cuts > 0))
        self.labels[predicted] = (audited.chances >= 0.5)[predicted]
        chances[predicted] = audited.chances[predicted]
        return PredictedLabels(self.labels, chances, certificates, audited.classifiers, self.asked)

    def _wanted(self, predicted: Cells, certified: NDArray[np.bool_]) -> Cells:
        """What is left to ask."""
        wanted = ~self.asked & ~predicted
        if self._leave:
            for_certified = wanted & certified
            whole = np.broadcast_to(for_certified.any(axis=1, keepdims=True), wanted.shape)
            wanted = wanted & whole if self._pool.whole_rows else for_certified
        return wanted

    def _chosen(self, passed: list[list[Certificate]]) -> list[Certificate | None]:
        """The last that each feature has passed; by whole examples one cut for all."""
        if not self._pool.whole_rows:
            return [certificates[-1] if certificates else None for certificates in passed]
        cut = shared_cut(passed, every=not self._leave)
        return [next((one for one in certificates if one.covered == cut), None) for certificates in passed]
