"""Labels of which each feature's own are certified."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discovery.statistics import Audit, Certificate, Promise, shared_cut
from models.predicted.asking import PoolAsking
from models.predicted.classifier import Classifiers, Floats
from models.predicted.pool import Cells, KeptClassifiers, PredictedLabels

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

    def confirmed(self, kept: KeptClassifiers) -> PredictedLabels | None:
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
        cuts = np.array([one.covered if one else 0 for one in certificates])
        predicted = audited.ranked & ~asking.asked & (audited.places < cuts)
        asking.ask(self._wanted(predicted, cuts > 0))
        return asking.predicted(audited.classifiers, predicted, certificates)

    def _wanted(self, predicted: Cells, certified: NDArray[np.bool_]) -> Cells:
        """What is left to ask."""
        wanted = ~self._asking.asked & ~predicted
        if self._asking.leave:
            for_certified = wanted & certified
            whole = np.broadcast_to(for_certified.any(axis=1, keepdims=True), wanted.shape)
            wanted = wanted & whole if self._pool.whole_rows else for_certified
        return wanted

    def _chosen(self, passed: list[list[Certificate]]) -> list[Certificate | None]:
        """The last that each feature has passed; by whole examples one cut for all."""
        if not self._pool.whole_rows:
            return [certificates[-1] if certificates else None for certificates in passed]
        cut = shared_cut(passed, every=not self._asking.leave)
        return [next((one for one in certificates if one.covered == cut), None) for certificates in passed]
