"""A pool of examples that want labels, and what became of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery.statistics import Certificate
from models.predicted.classifier import Classifiers, Floats
from sources import Example

Cells = NDArray[np.bool_]  # examples × features
Table = NDArray[np.int8]  # of labels, the same shape
Ask = Callable[[Cells], Table]  # the oracle's labels of these cells, UNKNOWN where it gave none and elsewhere


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


def random_order(examples: Sequence[Example], seed: int) -> NDArray[np.intp]:
    """Of contents and names, and of nothing else: examples that are added or gone do not shuffle the others."""
    ranks = [hashlib.sha256(f"{seed}\n{one.digest}\n{one.id}".encode("utf-8", "surrogatepass")) for one in examples]
    return np.array(sorted(range(len(examples)), key=lambda row: ranks[row].digest()), np.intp)
