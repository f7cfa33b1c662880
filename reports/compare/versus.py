"""A model against people: may it replace one of them, and what do people's labels correct?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discovery import UNKNOWN
from discovery.statistics import EPSILON, AltTest, Corrected, Estimate, alt_test, corrected_share, share
from reports.compare.study import LabelMatrix, Rater, Study

COMPLETE_SHARE = 0.95  # of the examples labelled by people: a part of their labels is then held back
USED_ONE_IN = 5  # one in so many is used


@dataclass(frozen=True, eq=False)
class Versus:
    model: str
    people: str
    test: AltTest  # all labels together, each feature of an example counting as an instance
    test_each: list[AltTest]
    shares: list[Corrected]  # per feature
    held_back: bool  # people labelled everything: only a part was used, and the rest tells how good the estimate is
    known: list[Estimate]  # what people's labels on everything say, where some were held back

    @property
    def may_replace(self) -> int:
        """Of how many features the test says so."""
        return sum(test.passes is True for test in self.test_each)

    @property
    def tested(self) -> int:
        return sum(test.passes is not None for test in self.test_each)

    @property
    def saved(self) -> Estimate:
        """People's labels that the model was worth, over all features."""
        known = [corrected.saved.value for corrected in self.shares if corrected.saved.value is not None]
        if not known:
            return Estimate.undefined(self.shares[0].saved.reason if self.shares else "there is no feature")
        return Estimate(float(sum(known)))

    @property
    def sampled(self) -> int:
        return sum(corrected.sampled for corrected in self.shares)

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "people": self.people,
            "alt_test": self.test.to_json(),
            "alt_test_features": [test.to_json() for test in self.test_each],
            "shares": [corrected.to_json() for corrected in self.shares],
            "held_back": self.held_back,
            "known": [estimate.to_json() for estimate in self.known],
            "labels_saved": self.saved.to_json(),
        }


def versus(study: Study) -> list[Versus]:
    people = study.people
    return [_versus(study, model, people) for model in study.models] if people else []


def _versus(study: Study, model: Rater, people: Rater) -> Versus:
    epsilon = EPSILON[study.annotators]
    tables = [people.sheet.by_worker(feature) for feature in range(len(study.features))]
    labels = model.sheet.labels
    tests = [alt_test(labels[place], table, people.sheet.workers, epsilon) for place, table in enumerate(tables)]
    if tables:
        together = alt_test(labels.ravel(), np.concatenate(tables), people.sheet.workers, epsilon)
    else:
        together = AltTest(epsilon, (), 0, "there is no feature")
    judged, held_back = _judged(study, people.sheet.labels)
    known = [share(int((row == 1).sum()), int((row != UNKNOWN).sum())) for row in people.sheet.labels]
    return Versus(
        model=model.name,
        people=people.name,
        test=together,
        test_each=tests,
        shares=[corrected_share(row, labelled) for row, labelled in zip(judged, labels, strict=True)],
        held_back=held_back,
        known=known if held_back else [],
    )


def _judged(study: Study, labels: LabelMatrix) -> tuple[LabelMatrix, bool]:
    """People's labels that the estimates may use, and whether some were held back."""
    n = labels.shape[1]
    if not labels.size or (labels != UNKNOWN).any(0).mean() < COMPLETE_SHARE:
        return labels, False
    used = study.rng(7).permutation(n)[: max(n // USED_ONE_IN, min(n, 30))]
    judged = np.full_like(labels, UNKNOWN)
    judged[:, used] = labels[:, used]
    return judged, len(used) < n
