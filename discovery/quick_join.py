"""The join of discovery/joins.py for complete labels, where it can do without sorting.

What the first example lacks, only one of the other two may have. So the examples are kept in two parts, those that lack
a certain feature and those that have it, and the latter need not be compared with one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery.packed import WORD, Bits, PackedLabels
from discovery.slots import Positions, SlotTable, slot_bits

SPLITS = 5  # features by which examples are kept in two parts; 1 in 32 examples has all of them, if each is had by half


@dataclass(frozen=True)
class Split:
    """All places, ascending within each part, first those whose example lacks the feature."""

    places: NDArray[np.intp]
    has: list[Bits]
    lacking: int

    def after(self, place: int) -> tuple[int, int]:
        """Where in each part the places after this one begin."""
        first, second = self.places[: self.lacking], self.places[self.lacking :]
        return int(np.searchsorted(first, place, "right")), self.lacking + int(np.searchsorted(second, place, "right"))


class QuickJoin:
    def __init__(self, rows: PackedLabels, factors: Bits) -> None:
        self._rows = rows
        self._factors = factors
        self._table = SlotTable(rows.n)
        self._hashes = np.empty(rows.n, np.uint64)
        self._everyone = Split(np.arange(rows.n), rows.has, rows.n)
        self._features = _most_even(rows)[:SPLITS]
        self._splits: dict[int, Split] = {}

    def partners(self, a: int) -> Iterator[tuple[Positions, Positions]] | None:
        """All pairs of places after place a that make an unresolved triple with it, in batches; None when to sort is
        faster."""
        key = [has[a] for has in self._rows.has]
        split = self.split_for(key)
        first, second = split.after(a)
        writers = split.lacking - first
        hashes = self._hashes[: writers + split.places.size - second]
        self._hash(split.has, slice(first, split.lacking), key, hashes[:writers])
        self._hash(split.has, slice(second, None), key, hashes[writers:])
        np.right_shift(hashes, np.uint64(64 - slot_bits(writers)), out=hashes)
        pairs = self._table.pairs(hashes.view(np.int64), writers)
        if pairs is None:
            return None
        placed = ((b + first, c + np.where(c < writers, first, second - writers)) for b, c in pairs)
        return (_unresolved(key, split, b, c) for b, c in placed)

    def split_for(self, key: list[np.uint64]) -> Split:
        for feature in self._features:
            word, bit = divmod(feature, WORD)
            if not int(key[word]) >> bit & 1:
                if feature not in self._splits:
                    self._splits[feature] = _split(self._rows, feature)
                return self._splits[feature]
        return self._everyone

    def _hash(self, has: list[Bits], there: slice, key: list[np.uint64], hashes: Bits) -> None:
        np.bitwise_and(has[0][there], key[0], out=hashes)
        np.multiply(hashes, self._factors[0], out=hashes)
        for word in range(1, len(has)):
            hashes += (has[word][there] & key[word]) * self._factors[word]


def _unresolved(key: list[np.uint64], split: Split, b: Positions, c: Positions) -> tuple[Positions, Positions]:
    """Of the pairs at these positions of the split, as places, those that share with the first example what they share
    with each other."""
    for mine, has in zip(key, split.has, strict=True):
        y, z = has[b], has[c]
        both = y & z
        y |= z
        y &= mine
        found = np.flatnonzero(y == both)
        b, c = b[found], c[found]
    return split.places[b], split.places[c]


def _most_even(rows: PackedLabels) -> list[int]:
    """The features, those that nearest to half of the examples have first."""
    shares = [float(rows.column(f).mean()) for f in range(rows.features)]
    return sorted(range(rows.features), key=lambda feature: abs(shares[feature] - 0.5))


def _split(rows: PackedLabels, feature: int) -> Split:
    having = rows.column(feature)
    places = np.concatenate([np.flatnonzero(~having), np.flatnonzero(having)])
    return Split(places, [has[places] for has in rows.has], int((~having).sum()))
