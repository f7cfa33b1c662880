"""Which triples, or pairs, of examples no known feature settles, and a uniform draw from them (Algorithm 1, step 1).

A feature settles a set when it is known on all its examples and true of all but one. Up to LISTED sets (all triples of
289 examples, all pairs of 2,829) are kept one by one, so that counts are exact. Above that sets are tried at random:
shares are estimated from a sample, and what GIVE_UP tries in a row do not find is taken for nothing."""

from __future__ import annotations

from itertools import islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.questions import UNKNOWN, Labels

Examples = tuple[int, ...]
Sets = NDArray[np.int32]  # one row per example of a set, one column per set: row numbers, ascending in each column
LISTED = 4_000_000
SAMPLE = 1 << 15  # random sets that are tried at once, or of which those that the fewest features settle are taken
SHARE_SAMPLE = 1 << 16  # random sets from which a share is estimated
GIVE_UP = 1 << 21
REPEATS = 100  # repeated draws in a row before it is checked whether any other set is left


def all_sets(n: int, size: int) -> Sets:
    """Every pair or triple of `n` examples, in lexicographic order."""
    a, b = np.triu_indices(n, 1)
    if size == 2:
        return np.stack([a, b]).astype(np.int32)
    thirds = n - 1 - b
    starts = np.cumsum(thirds) - thirds
    c = np.arange(thirds.sum()) - np.repeat(starts - b - 1, thirds)
    return np.stack([np.repeat(a, thirds), np.repeat(b, thirds), c]).astype(np.int32)


class UnresolvedSets:
    """`size` is 2 or 3. Asking for a count or a share never changes what is drawn."""

    def __init__(self, n: int, size: int, rng: np.random.Generator) -> None:
        self.n, self.size = n, size
        self.total = comb(n, size)
        self._rng = rng
        self._estimates = np.random.default_rng(rng.integers(1 << 63))
        self._values: list[NDArray[np.uint8]] = []  # of the known features; an unknown label is too large for any sum
        self._retired: set[Examples] = set()
        self._removed: set[Examples] = set()  # retired sets that the list does not hold any more
        self._list = all_sets(n, size) if self.total <= LISTED else None
        self._found: Sets = np.zeros((size, 0), np.int32)  # by tries, and not drawn yet: the next one last
        self._share: float | None = None  # as estimated with the features known now

    @property
    def is_exact(self) -> bool:
        return self._list is not None

    def add(self, labels: Labels) -> None:
        """Learn a feature: the sets that it settles are resolved from now on."""
        check_labels(labels, self.n)
        self._values.append(np.where(labels == UNKNOWN, self.size + 1, labels).astype(np.uint8))
        self._share = None
        if self._list is not None:
            self._list = self._list[:, ~self._settles(self._values[-1], self._list)]
        self._found = self._found[:, ~self._settles(self._values[-1], self._found)]

    def retire(self, examples: Examples) -> None:
        """Never draw this set again."""
        if len(set(examples)) != self.size:
            raise ValueError(f"{examples} is no set of {self.size}: name as many different examples")
        self._retired.add(tuple(sorted(examples)))

    def count(self) -> int:
        """How many sets are neither resolved nor retired; an estimate unless `is_exact`."""
        if self._list is None:
            return round(self.share * self.total)
        retired = sum(not self._is_resolved(examples) for examples in self._retired - self._removed)
        return int(self._list.shape[1]) - retired

    @property
    def share(self) -> float:
        """Unresolved sets as a share of all; an estimate unless `is_exact`, and never 0 then."""
        if self.is_exact:
            return self.count() / max(self.total, 1)
        if self._share is None:
            found = self._unresolved(self._tried(SHARE_SAMPLE, self._estimates)).shape[1]
            self._share = max(found, 1) / SHARE_SAMPLE
        return self._share

    def draw_many(self, k: int) -> list[Examples]:
        """Up to `k` different unresolved sets, each equally likely; fewer only when no more are left."""
        drawn: dict[Examples, None] = {}
        repeats = 0
        while len(drawn) < k and (examples := self._draw()) is not None:
            repeats = repeats + 1 if examples in drawn else 0
            drawn[examples] = None
            if repeats == REPEATS and (self._list is None or self.count() == len(drawn)):
                break
        return list(drawn)

    def settled_least(self, k: int) -> list[Examples]:
        """Up to `k` sets, never retired, that the fewest known features settle; ties are broken at random. Of all sets
        where they are no more than SAMPLE, else of as many random ones."""
        sets = all_sets(self.n, self.size) if self.total <= SAMPLE else self._tried(SAMPLE, self._rng)
        order = np.argsort(self._times_settled(sets) + self._rng.random(sets.shape[1]))
        different = dict.fromkeys(map(tuple, sets[:, order].T.tolist()))
        return list(islice((examples for examples in different if examples not in self._retired), k))

    def _draw(self) -> Examples | None:
        return self._draw_listed(self._list) if self._list is not None else self._draw_by_tries()

    def _draw_listed(self, listed: Sets) -> Examples | None:
        while listed.shape[1]:
            place = int(self._rng.integers(listed.shape[1]))
            examples = tuple(listed[:, place].tolist())
            if examples not in self._retired:
                return examples
            listed[:, place] = listed[:, -1]
            listed = self._list = listed[:, :-1]
            self._removed.add(examples)
        return None

    def _draw_by_tries(self) -> Examples | None:
        for _ in range(GIVE_UP // SAMPLE):
            while self._found.shape[1]:
                examples = tuple(self._found[:, -1].tolist())
                self._found = self._found[:, :-1]
                if examples not in self._retired:
                    return examples
            self._found = self._unresolved(self._tried(SAMPLE, self._rng))
        return None

    def _tried(self, tries: int, rng: np.random.Generator) -> Sets:
        """So many random sets, each equally likely."""
        sets = np.zeros((self.size, 0), np.int32)
        while sets.shape[1] < tries:
            drawn = np.sort(rng.integers(self.n, size=(self.size, tries), dtype=np.int32), axis=0)
            sets = np.concatenate([sets, drawn[:, (drawn[1:] != drawn[:-1]).all(axis=0)]], axis=1)
        return sets[:, :tries]

    def _unresolved(self, sets: Sets) -> Sets:
        for values in self._values:
            sets = sets[:, ~self._settles(values, sets)]
        return sets

    def _settles(self, values: NDArray[np.uint8], sets: Sets) -> NDArray[np.bool_]:
        settled: NDArray[np.bool_] = values[sets].sum(axis=0, dtype=np.uint8) == self.size - 1
        return settled

    def _times_settled(self, sets: Sets) -> NDArray[np.int64]:
        times = np.zeros(sets.shape[1], np.int64)
        for values in self._values:
            times += self._settles(values, sets)
        return times

    def _is_resolved(self, examples: Examples) -> bool:
        return bool(self._times_settled(np.array(examples, np.int32)[:, None])[0])


def check_labels(labels: Labels, n: int) -> None:
    if labels.shape != (n,):
        raise ValueError(f"a feature has {labels.size} labels for {n} examples: give one label per example")
    if not bool(np.isin(labels, (UNKNOWN, 0, 1)).all()):
        raise ValueError(f"a label is neither 1, 0 nor {UNKNOWN} (unknown)")
