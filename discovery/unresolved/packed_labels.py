"""Known labels as bits, 64 features to a word: to test a triple or a pair against all of them is quick."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discovery.questions import UNKNOWN, Labels

Bits = NDArray[np.uint64]
Rows = NDArray[np.intp] | NDArray[np.int32] | NDArray[np.uint32]
WORD = 64


class PackedLabels:
    """For every example the features it is known to have (`has`) and those whose label is known at all (`known`).

    Both are lists of words; a word holds 64 features of all examples."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.features = 0
        self.complete = True  # no label is missing: `known` need not be looked at
        self.has: list[Bits] = []
        self.known: list[Bits] = []

    def add(self, labels: Labels) -> None:
        check_labels(labels, self.n)
        bit = np.uint64(self.features % WORD)
        if bit == 0:
            self.has.append(np.zeros(self.n, np.uint64))
            self.known.append(np.zeros(self.n, np.uint64))
        self.has[-1] |= (labels == 1).astype(np.uint64) << bit
        self.known[-1] |= (labels != UNKNOWN).astype(np.uint64) << bit
        self.complete = self.complete and not bool((labels == UNKNOWN).any())
        self.features += 1

    def take(self, examples: NDArray[np.intp]) -> PackedLabels:
        """The labels of these examples, in this order."""
        taken = PackedLabels(examples.size)
        taken.features, taken.complete = self.features, self.complete
        taken.has = [has[examples] for has in self.has]
        taken.known = [known[examples] for known in self.known]
        return taken

    def two_of_three(self, word: int, a: Rows | int, b: Rows | int, c: Rows) -> Bits:
        """Features of this word that are known on all three and true of exactly two of them."""
        has = self.has[word]
        x, y, z = has[a], has[b], has[c]
        two: Bits = ((x & y) | ((x | y) & z)) & ~(x & y & z)
        if not self.complete:
            known = self.known[word]
            two &= known[a] & known[b] & known[c]
        return two

    def one_of_two(self, word: int, a: Rows, b: Rows) -> Bits:
        """Features of this word that are known on both and true of exactly one of them."""
        differing: Bits = self.has[word][a] ^ self.has[word][b]
        if not self.complete:
            differing &= self.known[word][a] & self.known[word][b]
        return differing

    def unresolved_triples(self, a: Rows, b: Rows, c: Rows) -> NDArray[np.intp]:
        """Positions of the triples (a[i], b[i], c[i]) that no known feature resolves, ascending."""
        left = np.arange(len(a))
        for word in range(len(self.has)):
            left = left[self.two_of_three(word, a[left], b[left], c[left]) == 0]
        return left

    def patterns(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Examples with the same known labels share a pattern: first example of each, pattern of each example, size."""
        words = np.stack([*self.has, *self.known], axis=1) if self.has else np.zeros((self.n, 1), np.uint64)
        _, first, pattern, size = np.unique(words, axis=0, return_index=True, return_inverse=True, return_counts=True)
        return first, pattern.reshape(-1), size

    def triples_settled_by(self, a: Rows, b: Rows, c: Rows) -> NDArray[np.int64]:
        """How many known features resolve each triple."""
        return self._total((self.two_of_three(word, a, b, c) for word in range(len(self.has))), len(a))

    def pairs_settled_by(self, a: Rows, b: Rows) -> NDArray[np.int64]:
        """How many known features tell each pair apart."""
        return self._total((self.one_of_two(word, a, b) for word in range(len(self.has))), len(a))

    @staticmethod
    def _total(words: Iterator[Bits], size: int) -> NDArray[np.int64]:
        total = np.zeros(size, np.int64)
        for bits in words:
            total += np.bitwise_count(bits)
        return total


def check_labels(labels: Labels, n: int) -> None:
    if labels.shape != (n,):
        raise ValueError(f"a feature has {labels.size} labels for {n} examples: give one label per example")
    if not bool(np.isin(labels, (UNKNOWN, 0, 1)).all()):
        raise ValueError(f"a label is neither 1, 0 nor {UNKNOWN} (unknown)")


def fewest(scores: NDArray[np.int64], k: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Positions of the `k` lowest scores, lowest first, ties in random order."""
    k = min(k, scores.size)
    if k == 0:
        return np.zeros(0, np.intp)
    limit = np.partition(scores, k - 1)[k - 1]
    below = rng.permutation(np.flatnonzero(scores < limit))
    level = np.flatnonzero(scores == limit)
    below = below[np.argsort(scores[below], kind="stable")]
    return np.concatenate([below, rng.choice(level, k - below.size, replace=False)])
