"""Which of many hashed examples meet, without sorting them: each writes its position into the slot of its hash, and one
that then reads another position there has met it. That is about eight times faster than sorting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discovery.runs import pairs_within_runs

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
