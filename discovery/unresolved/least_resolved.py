"""Which comparisons the fewest known features settle: where to go on when every one is settled by some feature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discovery.questions import Labels
from discovery.unresolved.join import Batch
from discovery.unresolved.packed_labels import PackedLabels
from discovery.unresolved.sources import all_triples, codes, settles, try_triples

TRIPLE_SAMPLE = 1 << 17  # random triples of which the best are taken


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


class ScoredTriples:
    """Every triple of `n` examples with the number of features that settle it, worked out when first asked for."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._unscored: list[Labels] = []
        self._triples: Batch | None = None
        self._scores = np.zeros(0, np.int64)

    def add(self, labels: Labels) -> None:
        self._unscored.append(labels)

    def fewest(self, k: int, without: Batch, rng: np.random.Generator) -> Batch:
        """The `k` triples that the fewest features settle, none of those in `without`; ties are broken at random."""
        if self._triples is None:
            self._triples = all_triples(self._n)
            self._scores = np.zeros(self._triples.shape[1], np.int64)
        for labels in self._unscored:
            self._scores += settles(labels, self._triples)
        self._unscored = []
        scores = self._scores.copy()
        scores[_ranks(without, self._n)] = np.iinfo(np.int64).max
        chosen = fewest(scores, min(k, scores.size - without.shape[1]), rng)
        return self._triples[:, chosen]


class SampledTriples:
    """The same from TRIPLE_SAMPLE random triples, for more examples than can be scored in full."""

    def __init__(self, labels: PackedLabels) -> None:
        self._labels = labels

    def add(self, labels: Labels) -> None:
        """Nothing to do: triples are scored when they are sampled."""

    def fewest(self, k: int, without: Batch, rng: np.random.Generator) -> Batch:
        n = self._labels.n
        triples = try_triples(PackedLabels(n), TRIPLE_SAMPLE, rng)
        numbers, first = np.unique(codes(triples, n), return_index=True)
        triples = triples[:, first[~np.isin(numbers, codes(without, n))]]
        return triples[:, fewest(self._labels.triples_settled_by(*triples), k, rng)]


def _ranks(triples: Batch, n: int) -> NDArray[np.int64]:
    """Where these triples are in the lexicographic order of all triples."""
    a, b, c = triples.astype(np.int64)
    before_a = (n * (n - 1) * (n - 2) - (n - a) * (n - a - 1) * (n - a - 2)) // 6
    before_b = ((n - a - 1) * (n - a - 2) - (n - b) * (n - b - 1)) // 2
    ranks: NDArray[np.int64] = before_a + before_b + c - b - 1
    return ranks
