"""Two ways to draw an unresolved triple uniformly: from a list of all, and by trying random triples.

Each source has `draw(rng)`, one attempt that gives a triple or None, and `add(labels)`, to be called when a feature was
learned. Whatever a source gives is uniform over the triples that are neither resolved nor retired at that moment."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discovery.questions import UNKNOWN, Labels
from discovery.unresolved.join import Batch
from discovery.unresolved.packed_labels import PackedLabels

Triple = tuple[int, ...]
TRIES_PER_ROUND = (1 << 8, 1 << 15)  # random triples tried at once: so many at first, so many at most
RECENT_HITS = 16  # from which the number of unresolved triples is estimated


class Source(Protocol):
    def add(self, labels: Labels) -> None: ...
    def draw(self, rng: np.random.Generator) -> Triple | None: ...


def all_triples(n: int) -> Batch:
    """Every triple of `n` examples, in lexicographic order."""
    a, b = np.triu_indices(n, 1)
    thirds = n - 1 - b
    starts = np.cumsum(thirds) - thirds
    c = np.arange(thirds.sum()) - np.repeat(starts - b - 1, thirds)
    return np.stack([np.repeat(a, thirds), np.repeat(b, thirds), c]).astype(np.int32)


def settles(labels: Labels, triples: Batch) -> NDArray[np.bool_]:
    """Which of the triples one feature resolves."""
    ones = np.where(labels == UNKNOWN, 4, labels).astype(np.uint8)  # a sum of 2 then needs three known labels
    settled: NDArray[np.bool_] = ones[triples[0]] + ones[triples[1]] + ones[triples[2]] == 2
    return settled


def try_triples(labels: PackedLabels, tries: int, rng: np.random.Generator) -> Batch:
    """The unresolved ones among `tries` uniformly random triples, in the order of the tries."""
    a, b, c = rng.integers(labels.n, size=(3, tries), dtype=np.int32)
    different = (a != b) & (a != c) & (b != c)
    a, b, c = a[different], b[different], c[different]
    left = labels.unresolved_triples(a, b, c)
    return np.sort(np.stack([a[left], b[left], c[left]]), axis=0)


class ListedTriples:
    """All unresolved triples, one by one: 12 bytes each. None from `draw` means that there are none."""

    def __init__(self, triples: Batch, retired: AbstractSet[Triple]) -> None:
        self._triples = triples
        self._retired = retired
        self.removed = set() if triples.size else set(retired)  # retired triples that are not in the list, or no longer

    def __len__(self) -> int:
        return int(self._triples.shape[1])

    def add(self, labels: Labels) -> None:
        self._triples = self._triples[:, ~settles(labels, self._triples)]

    def draw(self, rng: np.random.Generator) -> Triple | None:
        while len(self):
            place = int(rng.integers(len(self)))
            triple = tuple(self._triples[:, place].tolist())
            if triple not in self._retired:
                return triple
            self._triples[:, place] = self._triples[:, -1]
            self._triples = self._triples[:, :-1]
            self.removed.add(triple)
        return None


class TriedTriples:
    """Random triples are tried until one is unresolved. None from `draw` means that a round of tries found nothing.

    What a round finds beyond the triple drawn serves later draws, as far as it is still unresolved then."""

    def __init__(self, labels: PackedLabels, retired: AbstractSet[Triple]) -> None:
        self.spent = 0  # tries so far
        self.laborious = False  # even large rounds have found nothing
        self._labels = labels
        self._retired = retired
        self._tries = TRIES_PER_ROUND[0]
        self._found: list[Triple] = []  # the next one last
        self._recent = [0, 0]  # tries and what they found, of late

    def add(self, labels: Labels) -> None:
        found = as_batch(self._found)
        self._found = [tuple(triple) for triple in found[:, ~settles(labels, found)].T.tolist()]

    def draw(self, rng: np.random.Generator) -> Triple | None:
        while self._found:
            triple = self._found.pop()
            if triple not in self._retired:
                return triple
        found = try_triples(self._labels, self._tries, rng).T[::-1].tolist()
        self._count(len(found))
        self._found = [triple for triple in map(tuple, found) if triple not in self._retired]
        if self._found:
            return self._found.pop()
        self.laborious = self._tries == TRIES_PER_ROUND[1]
        self._tries = min(4 * self._tries, TRIES_PER_ROUND[1])
        return None

    def unresolved(self) -> float:
        """About how many triples are unresolved; more than there are rather than fewer, as the tries may be old."""
        return self._labels.n**3 / 6 * (self._recent[1] + 1) / max(self._recent[0], 1)

    def _count(self, found: int) -> None:
        self.spent += self._tries
        self._recent = [self._recent[0] + self._tries, self._recent[1] + found]
        if self._recent[1] > RECENT_HITS:
            self._recent = [number // 2 for number in self._recent]


def codes(triples: Batch, n: int) -> NDArray[np.int64]:
    """One number for each triple."""
    a, b, c = triples.astype(np.int64)
    numbers: NDArray[np.int64] = (a * n + b) * n + c
    return numbers


def as_batch(triples: Iterable[Triple]) -> Batch:
    return np.array(list(triples), np.int32).reshape(-1, 3).T
