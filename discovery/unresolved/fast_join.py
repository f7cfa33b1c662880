"""Which of many hashed examples meet, without sorting them: each writes its position into the slot of its hash, and one
that then reads another position there has met it. That is about eight times faster than sorting.

The join of discovery/unresolved/join.py for complete labels, where it can do without sorting.

What the first example lacks, only one of the other two may have. So the examples are kept in two parts, those that lack
a certain feature and those that have it, and the latter need not be compared with one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery.unresolved.equal_hashes import pairs_within_runs
from discovery.unresolved.packed_labels import WORD, Bits, PackedLabels

Positions = NDArray[np.intp]
Slots = NDArray[np.int64]
SPARSE = 4  # there are at least 2⁴ slots for each example that writes
CROWDED = 0.75  # when more of the examples meet another, sorting is as fast
ROUNDS = 16  # writers that a slot may have before the rest of its pairs are found by sorting
LOW = np.uint64((1 << 32) - 1)


def slot_bits(n: int) -> int:
    return n.bit_length() + SPARSE


class SlotTable:
    """For up to `n` examples at a time. The first ones write and read, the others only read: those need not meet among
    themselves. What earlier rounds wrote is not erased; it is known by being less than what this round adds."""

    def __init__(self, n: int) -> None:
        self._slots = np.full(1 << slot_bits(n), -1, np.int32)
        self._positions = np.arange(n, dtype=np.int32)
        self._written, self._read = np.empty((2, n), np.int32)
        self._met = np.empty(n, np.bool_)
        self._added = 0

    def pairs(self, slots: Slots, writers: int) -> Iterator[tuple[Positions, Positions]] | None:
        """All pairs of positions that share a slot, a writer first; None when it is crowded.

        Pairs of two readers may be among them, but need not."""
        who, last = self._meet(slots, writers)
        return None if who.size > CROWDED * slots.size else self._rounds(slots, writers, who, last)

    def _rounds(
        self, slots: Slots, writers: int, who: Positions, last: Positions
    ) -> Iterator[tuple[Positions, Positions]]:
        """Each round leaves out the last writer of every slot: all pairs with it were found."""
        for _ in range(ROUNDS):
            if not who.size:
                return
            yield last, who
            who, last = self._meet_again(slots, writers, who)
        yield last, who
        entries = np.sort(slots[who].astype(np.uint64) << np.uint64(32) | who.astype(np.uint64))
        for left, right in pairs_within_runs(entries, LOW):
            first, second = np.broadcast_arrays(left, right)
            ascending = first < second
            yield (first[ascending] & LOW).astype(np.intp), (second[ascending] & LOW).astype(np.intp)

    def _meet(self, slots: Slots, writers: int) -> tuple[Positions, Positions]:
        """Who meets a writer, and the last writer in that slot."""
        added = self._next()
        written = np.add(self._positions[:writers], added, out=self._written[:writers])
        self._slots[slots[:writers]] = written
        read = np.take(self._slots, slots, out=self._read[: slots.size], mode="clip")
        met = self._met[: slots.size]
        np.not_equal(read[:writers], written, out=met[:writers])
        np.greater_equal(read[writers:], added, out=met[writers:])
        who = np.flatnonzero(met)
        return who, (read[who] - added).astype(np.intp)

    def _meet_again(self, slots: Slots, writers: int, who: Positions) -> tuple[Positions, Positions]:
        """The same among these, in ascending order."""
        added = self._next()
        theirs = slots[who]
        writing = int(np.searchsorted(who, writers))
        self._slots[theirs[:writing]] = who[:writing] + added
        last = self._slots[theirs] - added
        met = np.flatnonzero((last >= 0) & (last != who))
        return who[met], last[met].astype(np.intp)

    def _next(self) -> int:
        """What is added to positions from now on, so that they exceed everything written before."""
        self._added += self._positions.size
        if self._added > np.iinfo(np.int32).max - self._positions.size:
            self._slots.fill(-1)
            self._added = 0
        return self._added


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
