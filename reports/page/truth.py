"""Discovered features against the attributes that are known to be true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import LabelMatrix, Labels, matches_with_truth, mean_match_by_chance
from twothirds.sources import Truth

FOUND_FROM = 0.9  # balanced accuracy from which an attribute counts as found


@dataclass(frozen=True)
class MatchedAttribute:
    attribute: str
    complement: bool  # the feature is the attribute's negation
    precision: float | None  # None where it is not defined
    recall: float | None
    balanced_accuracy: float

    @property
    def enough(self) -> bool:
        return self.balanced_accuracy >= FOUND_FROM


@dataclass(frozen=True)
class Missed:
    attribute: str
    positives: int

    @property
    def why(self) -> str:
        if self.positives == 0:
            return "true of no example"
        return "true of one example only: no two can share it" if self.positives == 1 else ""


@dataclass(frozen=True)
class AgainstTruth:
    matches: list[MatchedAttribute | None]  # one per feature; None where nothing can be compared
    missed: list[Missed]
    attributes: int
    accuracy: float  # mean balanced accuracy of the features' best attributes
    by_chance: float  # the same of labels that are shuffled among the examples

    @property
    def found(self) -> int:
        return self.attributes - len(self.missed)


def against_truth(names: Sequence[str], matrix: LabelMatrix, truth: Truth) -> AgainstTruth:
    """A feature's best match is the attribute, or its negation, with which it correlates most; of equals the one with
    its name. `matrix` is features × examples, in the order of the truth's rows."""
    known = truth.matrix.T
    matches = [_best_match(name, labels, truth.columns, known) for name, labels in zip(names, matrix, strict=True)]
    found = {match.attribute for match in matches if match and match.enough}
    missed = [
        Missed(name, int((known[column] == 1).sum())) for column, name in enumerate(truth.columns) if name not in found
    ]
    missed.sort(key=lambda missing: -missing.positives)
    accuracy = matches_with_truth(matrix, known).mean_balanced_accuracy
    return AgainstTruth(matches, missed, len(truth.columns), accuracy, mean_match_by_chance(matrix, known, seed=0))


def _best_match(name: str, labels: Labels, columns: Sequence[str], known: LabelMatrix) -> MatchedAttribute | None:
    comparable = (known >= 0) & (labels >= 0)
    having, true = (labels == 1) & comparable, (known == 1) & comparable
    common = (having & true).sum(axis=1)
    said_sum, true_sum, rows = having.sum(axis=1), true.sum(axis=1), comparable.sum(axis=1)
    spread = np.sqrt(said_sum * (rows - said_sum) * true_sum * (rows - true_sum))
    phi = np.divide(rows * common - said_sum * true_sum, spread, out=np.zeros(len(known)), where=spread > 0)
    if not (spread > 0).any():
        return None
    of_that_name = np.array([column.casefold() == name.casefold() for column in columns])
    best = int(np.lexsort((of_that_name, np.abs(phi).round(9)))[-1])
    complement = bool(phi[best] < 0)
    wanted = true[best] != comparable[best] if complement else true[best]
    hits = int((having[best] & wanted).sum())
    accuracy = float(matches_with_truth(labels[None], known[best][None]).balanced_accuracy[0])
    return MatchedAttribute(columns[best], complement, _ratio(hits, having[best]), _ratio(hits, wanted), accuracy)


def _ratio(hits: int, rows: NDArray[np.bool_]) -> float | None:
    return hits / int(rows.sum()) if rows.any() else None
