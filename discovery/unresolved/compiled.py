"""The quick join as machine code where numba is installed (requirements-scale.txt): the same triples in half the time.

Examples that share a slot form a chain, and whoever comes to it is tested against all of it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery.unresolved.fast_join import slot_bits
from discovery.unresolved.join import Places, TripleJoin
from discovery.unresolved.packed_labels import Bits

Partners = Callable[[int], Iterator[tuple[Places, Places]]]
WORTH_COMPILING = 20_000  # examples; fewer are joined in the time that compiling takes
CROWDED = 4  # tests per example above which numpy is faster
TOO_CROWDED = -1


def fastest_partners(join: TripleJoin) -> Partners:
    """As `join.partners`, though maybe in another order."""
    if join.rows.n < WORTH_COMPILING or find_spec("numba") is None:
        return join.partners
    return CompiledJoin(join, import_module("numba").njit(nogil=True)(meetings)).partners


def meetings(
    key: np.uint64,
    has: Bits,
    parts: tuple[int, int, int],  # where the writers begin and end, and where the readers begin
    hashing: tuple[np.uint64, np.uint64],  # factor and shift
    slots: NDArray[np.int32],
    chain: NDArray[np.int32],  # of each writer the one before it in its slot, -1 for none
    added: int,
    found: NDArray[np.int64],  # two rows: positions of the pairs
) -> int:
    """How many pairs make an unresolved triple with the example that has `key`; as many are noted as there is room."""
    first, last, second = parts
    factor, shift = hashing
    count, tests = 0, 0
    for turn in range(2):
        for c in range(first if turn == 0 else second, last if turn == 0 else has.size):
            mine = has[c]
            slot = ((mine & key) * factor) >> shift
            b = slots[slot] - added
            top = b if b >= 0 else -1
            b = top
            while b >= 0:
                tests += 1
                other = has[first + b]
                if ((mine | other) & key) == (mine & other):
                    if count < found.shape[1]:
                        found[0, count] = first + b
                        found[1, count] = c
                    count += 1
                b = chain[b]
            if tests > CROWDED * has.size:
                return TOO_CROWDED
            if turn == 0:
                chain[c - first] = top
                slots[slot] = c - first + added
    return count


class CompiledJoin:
    """`kernel` is `meetings`, compiled or not."""

    def __init__(self, join: TripleJoin, kernel: Callable[..., Any]) -> None:
        self._join, self._kernel = join, kernel
        n = join.rows.n
        self._slots = np.full(1 << slot_bits(n), -1, np.int32)
        self._chain = np.empty(n, np.int32)
        self._found = np.empty((2, 1 << 10), np.int64)
        self._added = 0

    def partners(self, a: int) -> Iterator[tuple[Places, Places]]:
        quick, has = self._join.quick, self._join.rows.has
        if quick is None or len(has) > 1:
            yield from self._join.partners(a)
            return
        split = quick.split_for([has[0][a]])
        first, second = split.after(a)
        parts = first, split.lacking, second
        hashing = self._join.factors[0], np.uint64(64 - slot_bits(split.lacking - first))
        while True:
            count = self._kernel(
                has[0][a], split.has[0], parts, hashing, self._slots, self._chain, self._next(), self._found
            )
            if count <= self._found.shape[1]:
                break
            self._found = np.empty((2, 2 * count), np.int64)
        if count == TOO_CROWDED:
            yield from self._join.partners(a)
        else:
            yield split.places[self._found[0, :count]], split.places[self._found[1, :count]]

    def _next(self) -> int:
        """What is added to positions from now on, so that they exceed everything written before."""
        self._added += self._chain.size
        if self._added > np.iinfo(np.int32).max - self._chain.size:
            self._slots.fill(-1)
            self._added = 0
        return self._added
