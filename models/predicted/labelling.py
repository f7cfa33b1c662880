"""Labels for a pool of examples, asked where they must be and predicted where that is certified.

1. A random part is asked, classifiers are fitted, and what they are least sure of is asked too: from this they learn.
2. A random sample of the rest is asked: the certificate. It is drawn after the classifiers are fixed.
3. What lies above the certified cut is predicted; the rest is asked, and what cannot be certified in full, or, where
   the caller says so, left.

The certificate is about all features together (together.py) or about each, as the promise says. Chance comes
from the order of the pool alone, which its caller draws: with the same answers everything is the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discovery.statistics import Audit, Certificate, Promise, looks, shared_cut
from models.predicted.classifier import Classifiers, Floats
from models.predicted.pool import UNSURE, Ask, Cells, LabelPool, PoolAsking, PredictedLabels, StoredClassifiers, Table
from models.predicted.together import FeaturesTogether

FEWEST_LEARNED = 200
LEARNED = 0.04  # of a large pool
WORTH_IT = 0.5  # of the pool at most may be asked before anything is predicted


def sizes(pool: int, promise: Promise) -> tuple[int, int]:
    """How many examples are learned from, and how many certify; of all features together, usually."""
    sampled = looks(promise)[1] if promise.together else promise.sample_size(pool)
    return max(FEWEST_LEARNED, min(int(LEARNED * pool), 2_000)), sampled


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
    asking = PoolAsking(pool, ask, known, leave=leave, whole_rows=pool.whole_rows or promise.together)
    learned, sampled = sizes(pool.size, promise)
    confirmable = kept is not None and sampled <= WORTH_IT * pool.size
    if confirmable:
        promise = replace(promise, delta=promise.delta / 2)  # there may be two samples that certify
    labeller = FeaturesTogether(asking, promise) if promise.together else EachFeature(asking, promise, sampled)
    if kept is not None and confirmable and (confirmed := labeller.confirmed(kept)) is not None:
        return confirmed
    if max(learned, int(asking.asked.any(axis=1).sum())) + sampled > WORTH_IT * pool.size:
        return asking.nothing_predicted(None)
    asking.learn(learned)
    return labeller.learned()


HOPEFUL = 3  # times the disagreement that is allowed: a feature expected to disagree more does not rank whole examples


@dataclass(frozen=True, eq=False)
class _Audited:
    classifiers: Classifiers
    chances: Floats
    places: NDArray[np.intp]  # in the ranking of each feature's population, examples × features
    ranked: Cells  # who is ranked at all
    passed: list[list[Certificate]]


class EachFeature:
    def __init__(self, asking: PoolAsking, promise: Promise, sampled: int) -> None:
        self._asking, self._pool = asking, asking.pool
        self._promise, self._sampled = promise, sampled

    def confirmed(self, kept: StoredClassifiers) -> PredictedLabels | None:
        """By kept classifiers, if every feature passes that they had a certificate for."""
        audited = self._audit(kept.classifiers)
        if not all(passed for passed, was in zip(audited.passed, kept.certified, strict=True) if was):
            return None
        return replace(self._predict(audited), learned_anew=False)

    def learned(self) -> PredictedLabels:
        return self._predict(self._audit(self._asking.fitted()[0]))

    def _audit(self, classifiers: Classifiers) -> _Audited:
        """Rank what was not asked by how sure the classifiers are, then ask a random sample of it."""
        asking, chances = self._asking, self._asking.chances(classifiers)
        ranked, places = ~asking.asked, self._places(chances, HOPEFUL * (1 - self._promise.agree))
        sample = asking.next_cells(self._sampled)
        asking.ask(sample)
        guess = chances >= 0.5
        rarer = asking.rarer(~ranked, guess)
        passed = []
        for feature in range(self._pool.features):
            rows = np.flatnonzero(sample[:, feature])
            said = asking.labels[rows, feature]
            agreed, answer = said == guess[rows, feature], int(rarer[feature])
            population = int(ranked[:, feature].sum())
            audit = Audit(population, places[rows, feature], agreed, said == answer, answer)
            passed.append(audit.passed(self._promise))
        return _Audited(classifiers, chances, places, ranked, passed)

    def _places(self, chances: Floats, hopeful: float) -> NDArray[np.intp]:
        """In the ranking of what was not asked, the surest first: of each feature's, or of whole examples by the
        features that may be certified. Ties do not go by the random order here either."""
        error = np.minimum(chances, 1 - chances)
        if self._pool.whole_rows:
            counted = error.mean(axis=0) <= hopeful
            error = np.broadcast_to((error * (counted | ~counted.any())).sum(axis=1, keepdims=True), error.shape)
        places = np.zeros(error.shape, np.intp)
        for feature in range(self._pool.features):
            left = np.flatnonzero(~self._asking.asked[:, feature])
            ranking = left[np.argsort(error[left, feature], kind="stable")]
            places[ranking, feature] = np.arange(len(ranking))
        return places

    def _predict(self, audited: _Audited) -> PredictedLabels:
        """Above the certified cut what was not asked is predicted; everything else is asked, or left."""
        asking = self._asking
        certificates = self._chosen(audited.passed)
        cuts = np.array([certificate.covered if certificate else 0 for certificate in certificates])
        predicted = audited.ranked & ~asking.asked & (audited.places < cuts)
        asking.ask(self._wanted(predicted, cuts > 0))
        return asking.predicted(audited.classifiers, predicted, certificates)

    def _wanted(self, predicted: Cells, certified: NDArray[np.bool_]) -> Cells:
        """What is left to ask."""
        wanted = ~self._asking.asked & ~predicted
        if self._asking.leave:
            for_certified = wanted & certified
            of_rows = np.broadcast_to(for_certified.any(axis=1, keepdims=True), wanted.shape)
            wanted = wanted & of_rows if self._pool.whole_rows else for_certified
        return wanted

    def _chosen(self, passed: list[list[Certificate]]) -> list[Certificate | None]:
        """The last that each feature has passed; by whole examples one cut for all."""
        if not self._pool.whole_rows:
            return [certificates[-1] if certificates else None for certificates in passed]
        cut = shared_cut(passed, every=not self._asking.leave)
        return [
            next((certificate for certificate in certificates if certificate.covered == cut), None)
            for certificates in passed
        ]
