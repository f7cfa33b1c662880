"""Which triples no known feature resolves, and a uniform draw from them (Algorithm 1, step 1)."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from discovery.draws import ListedTriples, all_triples, try_triples
from discovery.fewest import fewest
from discovery.packed import PackedLabels
from discovery.pairs import UnresolvedPairs
from discovery.questions import Labels

__all__ = ["UnresolvedPairs", "UnresolvedTriples"]

Triple = tuple[int, ...]
LIST_LIMIT = 4_000_000  # triples kept one by one: 48 MB
SAMPLE = 1 << 18  # random triples scored by `least_resolved` when there are too many to score all


class UnresolvedTriples:
    """A triple is resolved when some feature is known on all three examples and true of exactly two of them."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n = n
        self.rng = rng
        self.total = comb(n, 3)
        self._labels = PackedLabels(n)
        self._retired: set[Triple] = set()
        self._list = ListedTriples(all_triples(n))

    def add(self, labels: Labels) -> None:
        """Learn a feature: the triples it settles are resolved from now on."""
        self._labels.add(labels)
        self._list.add(labels)

    def retire(self, triple: Triple) -> None:
        """Never draw this triple again."""
        x, y, z = sorted(triple)
        self._retired.add((x, y, z))

    def count(self) -> int:
        """Exactly how many triples are neither resolved nor retired."""
        a, b, c = np.array(sorted(self._retired), np.int32).reshape(-1, 3).T
        return int(self._list.triples.shape[1]) - self._labels.unresolved_triples(a, b, c).size

    @property
    def share(self) -> float:
        """Unresolved triples as a share of all triples."""
        return self.count() / max(self.total, 1)

    @property
    def share_is_exact(self) -> bool:
        return True

    def draw(self) -> Triple | None:
        """One of the unresolved triples, each equally likely; None when there is none."""
        return next(iter(self.draw_many(1)), None)

    def draw_many(self, k: int) -> list[Triple]:
        """Up to `k` different unresolved triples; fewer only when no more are left."""
        drawn: dict[Triple, None] = {}
        wanted = min(k, self.count())
        while len(drawn) < wanted:
            x, y, z = self._list.draw(self.rng)[:, 0].tolist()
            if (x, y, z) not in self._retired:
                drawn[(x, y, z)] = None
        return list(drawn)

    def candidates(self, k: int) -> NDArray[np.intp]:
        """`k` uniform draws, one per row, possibly with repetition; no rows when nothing is unresolved."""
        drawn = [self.draw_many(1) for _ in range(k if self.count() else 0)]
        return np.array(drawn, np.intp).reshape(-1, 3)

    def least_resolved(self, k: int) -> list[Triple]:
        """Up to `k` triples, never retired, that the fewest known features settle; ties are broken at random.

        Exact where all triples fit a list (289 examples); above that the best of SAMPLE random triples."""
        if self.total <= LIST_LIMIT:
            triples, scores = all_triples(self.n), self._score_all()
        else:
            triples = np.unique(try_triples(PackedLabels(self.n), SAMPLE, self.rng), axis=1)
            scores = self._labels.triples_settled_by(*triples)
        a, b, c = triples.astype(np.int64)
        retired = np.array([(x * self.n + y) * self.n + z for x, y, z in self._retired], np.int64)
        free = np.flatnonzero(~np.isin((a * self.n + b) * self.n + c, retired))
        chosen = triples[:, free[fewest(scores[free], k, self.rng)]]
        return [tuple(triple) for triple in chosen.T.tolist()]

    def _score_all(self) -> NDArray[np.int64]:
        return self._labels.triples_settled_by(*all_triples(self.n))
