"""Discovered features against the attributes that are known to be true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery.metrics import matches_with_truth
from sources.dataset import Truth

ENOUGH = 0.9  # balanced accuracy from which an attribute counts as found


@dataclass(frozen=True)
class Matched:
    attribute: str
    complement: bool  # the feature is the attribute's negation
    precision: float | None  # None where it is not defined
    recall: float | None
    balanced_accuracy: float

    @property
    def enough(self) -> bool:
        return self.balanced_accuracy >= ENOUGH


@dataclass(frozen=True)
class Missed:
    attribute: str
    positives: int
    best: float  # balanced accuracy of the feature that comes closest

    @property
    def why(self) -> str:
        if self.positives == 0:
            return "true of no example"
        return "true of one example only: no two can share it" if self.positives == 1 else ""


@dataclass(frozen=True)
class AgainstTruth:
    matches: list[Matched | None]  # one per feature; None where nothing can be compared
    missed: list[Missed]
    attributes: int

    @property
    def found(self) -> int:
        return self.attributes - len(self.missed)


def against_truth(matrix: NDArray[np.int8], truth: Truth) -> AgainstTruth:
    """`matrix` is features × examples, in the order of the truth's rows."""
    known = truth.matrix.T
    best = matches_with_truth(matrix, known, ENOUGH)
    matches = [
        _match(labels, known[column], truth.columns[column], bool(complement), float(score)) if column >= 0 else None
        for labels, column, complement, score in zip(
            matrix, best.best, best.complement, best.balanced_accuracy, strict=True
        )
    ]
    found = {match.attribute for match in matches if match and match.enough}
    missed = [
        Missed(name, int((known[column] == 1).sum()), _closest(matrix, known[column]))
        for column, name in enumerate(truth.columns)
        if name not in found
    ]
    missed.sort(key=lambda missing: -missing.positives)
    return AgainstTruth(matches, missed, len(truth.columns))


def _match(
    labels: NDArray[np.int8], column: NDArray[np.int8], name: str, complement: bool, balanced_accuracy: float
) -> Matched:
    wanted = 0 if complement else 1
    comparable = (labels >= 0) & (column >= 0)
    said = (labels == 1) & comparable
    true = (column == wanted) & comparable
    both = int((said & true).sum())
    return Matched(name, complement, _ratio(both, said), _ratio(both, true), balanced_accuracy)


def _ratio(part: int, whole: NDArray[np.bool_]) -> float | None:
    return part / int(whole.sum()) if whole.any() else None


def _closest(matrix: NDArray[np.int8], column: NDArray[np.int8]) -> float:
    scores = [float(matches_with_truth(labels[None], column[None]).balanced_accuracy[0]) for labels in matrix]
    return max(scores, default=0.5)
