"""Random triples that a few features already leave unresolved: of these a far greater share is unresolved by all.

Examples with the same labels on the chosen features form a group. Every three groups that no chosen feature resolves
are listed with the number of triples that they stand for, so that one random number picks one of all those triples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discovery.unresolved.packed_labels import WORD, PackedLabels

Groups = NDArray[np.int32]
TABLE = 1 << 21  # up to so many triples of groups: 42 MB
LARGEST = 2_000_000  # examples up to which all triples can be numbered with 63 bits
GUIDED = 4  # steps from there before the rest is searched for
UNRESOLVED = ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1))


class Block:
    """Groups are numbered in the order of `_members`; the three of a triple of groups ascend, so that each triple of
    examples stands in one of them, and in that once with its members in ascending order."""

    def __init__(self, labels: PackedLabels) -> None:
        self.features = labels.features  # that were known when the block was made
        codes = np.zeros(labels.n, np.int64)
        groups: tuple[Groups, ...] = (np.zeros(1, np.int32),) * 3
        for feature in _most_resolving(labels):
            if len(UNRESOLVED) * groups[0].size > TABLE:
                break
            longer = codes * 2 + labels.column(feature)
            groups = _split(groups, np.unique(codes), np.unique(longer))
            codes = longer
        self._groups = groups
        self._members = np.argsort(codes, kind="stable").astype(np.int32)
        _, self._starts, self._sizes = np.unique(codes[self._members], return_index=True, return_counts=True)
        first, second, third = (self._sizes[each] for each in groups)
        self._ends = np.cumsum(first * second * third)
        self.cells = int(self._ends[-1])  # every triple that the block leaves unresolved is one of them
        self._step = -(-self.cells // self._ends.size)
        self._guide = np.searchsorted(self._ends, np.arange(self._ends.size) * self._step, side="right")

    def draw(self, cells: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """The triples in so many cells, each chosen uniformly; one column per triple, none for a cell without one."""
        numbers = rng.integers(self.cells, size=cells)
        places = self._places(numbers)
        left = self._ends[places] - 1 - numbers
        chosen = []
        for each in self._groups:
            group = each[places]
            left, member = np.divmod(left, self._sizes[group])
            chosen.append(self._starts[group] + member)
        a, b, c = chosen
        ascending = np.flatnonzero((a < b) & (b < c))
        return np.stack([self._members[each[ascending]] for each in chosen])

    def _places(self, numbers: NDArray[np.int64]) -> NDArray[np.intp]:
        """Which triple of groups each number falls on: a table says where to look, which spares most of the search."""
        places = self._guide[numbers // self._step]
        for _ in range(GUIDED):
            ahead = np.flatnonzero(self._ends[places] <= numbers)
            if not ahead.size:
                return places
            places[ahead] += 1
        ahead = np.flatnonzero(self._ends[places] <= numbers)
        places[ahead] = np.searchsorted(self._ends, numbers[ahead], side="right")
        return places


def _split(groups: tuple[Groups, ...], before: NDArray[np.int64], after: NDArray[np.int64]) -> tuple[Groups, ...]:
    """The triples of groups when each group is divided by one more feature, without those that it resolves."""
    children = np.searchsorted(after, np.stack([before * 2, before * 2 + 1]))
    exists = np.isin(np.stack([before * 2, before * 2 + 1]), after)
    parts = []
    for bits in UNRESOLVED:
        new = [children[bit][each] for bit, each in zip(bits, groups, strict=True)]
        kept = (new[0] <= new[1]) & (new[1] <= new[2])
        for bit, each in zip(bits, groups, strict=True):
            kept &= exists[bit][each]
        parts.append(np.stack(new)[:, kept])
    first, second, third = np.concatenate(parts, axis=1).astype(np.int32)
    return first, second, third


def _most_resolving(labels: PackedLabels) -> list[int]:
    """Features without missing labels, those first that resolve most triples: true of two thirds is best."""
    complete = [f for f in range(labels.features) if bool((labels.known[f // WORD] >> np.uint64(f % WORD) & 1).all())]
    shares = {feature: float(labels.column(feature).mean()) for feature in complete}
    return sorted(complete, key=lambda feature: -(shares[feature] ** 2) * (1 - shares[feature]))
