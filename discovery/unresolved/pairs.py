"""Which pairs of examples no known feature tells apart, and a uniform draw from them.

A pair is resolved when some feature is known on both and true of exactly one. Examples with the same known labels form
a pattern; complete patterns are only ever confused within themselves, so that counting takes no comparison of all pairs
unless labels are missing, and then only of the incomplete patterns with the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discovery.questions import Labels
from discovery.unresolved.packed_labels import PackedLabels, fewest

Pair = tuple[int, ...]
SCORED_EXACTLY = 2_000  # up to so many examples every pair is scored by `least_resolved`
PAIR_SAMPLE = 1 << 18  # random pairs that are scored above that
PATTERN_PAIRS_AT_ONCE = 1 << 22  # compared


class UnresolvedPairs:
    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n = n
        self.rng = rng
        self._labels = PackedLabels(n)
        self._retired: set[Pair] = set()
        self._confused: NDArray[np.int64] | None = None  # see confused_with

    def add(self, labels: Labels) -> None:
        """Learn a feature: the pairs it tells apart are resolved from now on."""
        self._labels.add(labels)
        self._confused = None

    def retire(self, pair: Pair) -> None:
        """Never draw this pair again."""
        self._retired.add((min(pair), max(pair)))

    def count(self) -> int:
        """Exactly how many pairs are neither resolved nor retired."""
        a, b = np.array(sorted(self._retired), np.intp).reshape(-1, 2).T
        return int(self._partners().sum()) // 2 - int((self._labels.pairs_settled_by(a, b) == 0).sum())

    @property
    def share(self) -> float:
        """Unresolved pairs as a share of all pairs."""
        return self.count() / max(self.n * (self.n - 1) // 2, 1)

    def draw(self) -> Pair | None:
        """One of the unresolved pairs, each equally likely; None when there is none."""
        return next(iter(self.draw_many(1)), None)

    def draw_many(self, k: int) -> list[Pair]:
        """Up to `k` different unresolved pairs; fewer only when no more are left."""
        drawn: dict[Pair, None] = {}
        wanted = min(k, self.count())
        ends = np.cumsum(self._partners())
        while len(drawn) < wanted:
            a = int(np.searchsorted(ends, self.rng.integers(ends[-1]), side="right"))
            partners = self._confused_with(a)
            b = int(partners[self.rng.integers(partners.size)])
            pair = (min(a, b), max(a, b))
            if pair not in self._retired:
                drawn[pair] = None
        return list(drawn)

    def least_resolved(self, k: int) -> list[Pair]:
        """Up to `k` pairs, never retired, that the fewest known features tell apart; ties are broken at random.

        Exact up to SCORED_EXACTLY examples; above that the best of PAIR_SAMPLE random pairs."""
        if self.n <= SCORED_EXACTLY:
            a, b = np.triu_indices(self.n, 1)
        else:
            ends = self.rng.integers(self.n, size=(PAIR_SAMPLE, 2))
            ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
            a, b = ends[:, 0], ends[:, 1]
        retired = np.array([x * self.n + y for x, y in self._retired], np.int64)
        free = np.flatnonzero(~np.isin(a * self.n + b, retired))
        a, b = a[free], b[free]
        chosen = fewest(self._labels.pairs_settled_by(a, b), k, self.rng)
        return list(zip(a[chosen].tolist(), b[chosen].tolist(), strict=True))

    def _partners(self) -> NDArray[np.int64]:
        if self._confused is None:
            self._confused = confused_with(self._labels)
        return self._confused

    def _confused_with(self, a: int) -> NDArray[np.intp]:
        everyone = np.arange(self.n)
        settled = self._labels.pairs_settled_by(np.full(self.n, a), everyone)
        return np.flatnonzero((settled == 0) & (everyone != a))


def count_unresolved(labels: PackedLabels) -> int:
    """How many pairs no known feature tells apart."""
    return int(confused_with(labels).sum()) // 2


def confused_with(labels: PackedLabels) -> NDArray[np.int64]:
    """For each example, how many others no known feature tells it apart from."""
    first, pattern, size = labels.patterns()
    partners = size.astype(np.int64) - 1
    incomplete = np.zeros(first.size, np.bool_)
    for known in labels.known:
        incomplete |= known[first] != np.bitwise_or.reduce(known)
    if not labels.complete:
        partners += _confused_patterns(labels, first, size, incomplete)
    return partners[pattern]


def _confused_patterns(
    labels: PackedLabels, first: NDArray[np.intp], size: NDArray[np.intp], incomplete: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """For each pattern the examples of other patterns that it is confused with: one of the two must be incomplete."""
    others = np.zeros(first.size, np.int64)
    rows = np.flatnonzero(incomplete)
    step = max(1, PATTERN_PAIRS_AT_ONCE // first.size)
    for start in range(0, rows.size, step):
        block = rows[start : start + step]
        confused = np.ones((block.size, first.size), np.bool_)
        for word in range(len(labels.has)):
            confused &= labels.one_of_two(word, first[block, None], first[None, :]) == 0
        confused[np.arange(block.size), block] = False
        others[block] += confused @ size
        others[~incomplete] += size[block] @ confused[:, ~incomplete]
    return others
