"""Uniform draws of unresolved triples: from a list of them all, or by trying random triples until one is unresolved.

A batch of triples is an array of three rows and one column per triple, the example numbers of a column ascending."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discovery.packed import PackedLabels
from discovery.questions import UNKNOWN, Labels

Batch = NDArray[np.int32]
NOTHING: Batch = np.zeros((3, 0), np.int32)


def all_triples(n: int) -> Batch:
    """Every triple of `n` examples, in lexicographic order."""
    a, b = (ends.astype(np.int32) for ends in np.triu_indices(n, 1))
    thirds = n - 1 - b
    c = np.arange(thirds.sum(), dtype=np.int32) - np.repeat(np.cumsum(thirds) - thirds - b - 1, thirds)
    return np.stack([np.repeat(a, thirds), np.repeat(b, thirds), c.astype(np.int32)])


def settles(labels: Labels, triples: Batch) -> NDArray[np.bool_]:
    """Which of the triples one feature resolves."""
    ones = np.where(labels == UNKNOWN, 4, labels).astype(np.uint8)  # a sum of 2 then needs three known labels
    found: NDArray[np.bool_] = ones[triples[0]] + ones[triples[1]] + ones[triples[2]] == 2
    return found


class ListedTriples:
    """All unresolved triples, one by one: 12 bytes each."""

    def __init__(self, triples: Batch) -> None:
        self.triples = triples

    def add(self, labels: Labels) -> None:
        self.triples = self.triples[:, ~settles(labels, self.triples)]

    def draw(self, rng: np.random.Generator) -> Batch:
        """One triple; nothing when the list is empty."""
        size = self.triples.shape[1]
        if not size:
            return NOTHING
        place = int(rng.integers(size))
        return self.triples[:, place : place + 1]


def try_triples(labels: PackedLabels, tries: int, rng: np.random.Generator) -> Batch:
    """The unresolved ones among `tries` uniformly random triples, in the order of the tries."""
    a, b, c = rng.integers(labels.n, size=(3, tries), dtype=np.int32)
    different = (a != b) & (a != c) & (b != c)
    a, b, c = a[different], b[different], c[different]
    left = labels.unresolved_triples(a, b, c)
    return np.sort(np.stack([a[left], b[left], c[left]]), axis=0)
