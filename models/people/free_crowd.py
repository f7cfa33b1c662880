"""A simulated crowd that costs neither money nor time: `enrich` computes its labels and keeps none of its answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN, Labels
from models.oracle import ComputedVotes, Feature, Label, Verdict
from models.people.simulated import SimulatedOracle
from sources import Example

CODES = {Verdict.YES: 1, Verdict.NO: 0}


class FreeCrowd(SimulatedOracle):
    """Of examples with the same content the first one is looked up in the truth: a content is asked about only once."""

    def computed_votes(
        self, features: Sequence[Feature], examples: Sequence[Example], voter: int, wanted: NDArray[np.bool_]
    ) -> ComputedVotes:
        first: dict[str, Example] = {}
        looked_up = [first.setdefault(example.digest, example) for example in examples]
        if self._reliable:
            return ComputedVotes(self._true_labels(features, looked_up), np.zeros(wanted.shape, np.bool_))
        labels, refused = np.full(wanted.shape, UNKNOWN, np.int8), np.zeros(wanted.shape, np.bool_)
        for row, column in np.argwhere(wanted).tolist():
            verdict = self._verdict(Label(features[column], looked_up[row], voter))
            labels[row, column] = CODES.get(verdict, UNKNOWN)
            refused[row, column] = verdict is Verdict.REFUSED
        return ComputedVotes(labels, refused)

    def _true_labels(self, features: Sequence[Feature], examples: Sequence[Example]) -> Labels:
        labels = np.full((len(examples), len(features)), UNKNOWN, np.int8)
        known = [place for place, feature in enumerate(features) if feature.name in self._column_of]
        if known:
            rows = [self._row(example) for example in examples]
            labels[:, known] = self._truth[np.ix_(rows, [self._column_of[features[place].name] for place in known])]
        return labels

    def why_not(self, feature: Feature) -> str:  # noqa: ARG002 (it gives no reasons)
        return ""
