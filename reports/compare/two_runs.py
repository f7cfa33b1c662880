"""Two finished runs side by side: features matched by what they select, else by their words; what only one has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twothirds.discovery import UNKNOWN, Labels, correlations, same_name
from twothirds.discovery.statistics import best_matches
from twothirds.reports.run import Findings, FoundFeature


@dataclass(frozen=True, eq=False)
class PairedFeature:
    """What both runs have, and how far their labels of the same examples agree."""

    a: FoundFeature
    b: FoundFeature
    examples: int  # labelled by both
    agreeing: int  # of these; where one is the complement of the other, those that differ
    complement: bool
    by_labels: bool  # else by their words alone

    @property
    def agreement(self) -> float | None:
        return self.agreeing / self.examples if self.examples else None


@dataclass(frozen=True, eq=False)
class SideBySide:
    shared_examples: int
    pairs: list[PairedFeature]
    only_a: list[FoundFeature]
    only_b: list[FoundFeature]


def side_by_side(a: Findings, keys_a: Sequence[str], b: Findings, keys_b: Sequence[str]) -> SideBySide:
    """The keys say which examples are the same ones, whatever they are called; an empty key is no example's."""
    rows_b = {key: row for row, key in enumerate(keys_b) if key}
    first_a = {key: row for row, key in reversed(list(enumerate(keys_a))) if key in rows_b}
    of_a, of_b = list(first_a.values()), [rows_b[key] for key in first_a]
    labels_a, labels_b = a.matrix[:, of_a], b.matrix[:, of_b]
    matches = best_matches(correlations(labels_a, labels_b)) if of_a else []
    pairs = [
        _paired(a.found[match.a], b.found[match.b], labels_a[match.a], labels_b[match.b], match.correlation)
        for match in matches
    ]
    left_a = [place for place in range(len(a.found)) if place not in {match.a for match in matches}]
    left_b = [place for place in range(len(b.found)) if place not in {match.b for match in matches}]
    for place in [*left_a]:
        other = next((at for at in left_b if same_name(a.found[place].name, b.found[at].name)), None)
        if other is not None:
            pairs.append(_paired(a.found[place], b.found[other], labels_a[place], labels_b[other], None))
            left_a.remove(place)
            left_b.remove(other)
    order = {id(feature): place for place, feature in enumerate(a.found)}
    return SideBySide(
        len(of_a),
        sorted(pairs, key=lambda pair: order[id(pair.a)]),
        [a.found[place] for place in left_a],
        [b.found[place] for place in left_b],
    )


def _paired(
    a: FoundFeature, b: FoundFeature, labels_a: Labels, labels_b: Labels, correlation: float | None
) -> PairedFeature:
    known = (labels_a != UNKNOWN) & (labels_b != UNKNOWN)
    same, complement = int((labels_a == labels_b)[known].sum()), correlation is not None and correlation < 0
    total = int(np.count_nonzero(known))
    return PairedFeature(
        a,
        b,
        examples=total,
        agreeing=total - same if complement else same,
        complement=complement,
        by_labels=correlation is not None,
    )
