"""All pairs of sorted entries with the same hash. An entry is a hash in its high bits and a row in its low bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from discovery.unresolved.packed_labels import Bits

LONG_RUN = 64  # entries with one hash above which their pairs are tested as a grid


GRID = 1 << 15  # about so many pairs of a grid are tested at once


def pairs_within_runs(entries: Bits, low: np.uint64) -> Iterator[tuple[Bits, Bits]]:
    """Those of long runs as grids, the others by distance 1, 2, and so on; `low` are the bits of the place."""
    left = np.flatnonzero((entries[1:] ^ entries[:-1]) <= low)  # the next entry belongs to the same run
    if left.size > LONG_RUN:
        breaks = np.flatnonzero(np.diff(left, prepend=-2, append=-2) != 1)
        sizes = np.diff(breaks)
        for start, size in zip(left[breaks[:-1]].tolist(), sizes.tolist(), strict=True):
            if size > LONG_RUN:
                yield from _grids(entries[start : start + size + 1])
        left = left[np.repeat(sizes <= LONG_RUN, sizes)]
    distance = 1
    while left.size:
        yield entries[left], entries[left + distance]
        distance += 1
        left = left[left < entries.size - distance]
        left = left[(entries[left] ^ entries[left + distance]) <= low]


def _grids(run: Bits) -> Iterator[tuple[Bits, Bits]]:
    """All pairs of a run, and a few twice, the second time with the larger entry first."""
    step = max(1, GRID // run.size)
    for row in range(0, run.size - 1, step):
        yield run[row : row + step, None], run[None, row + 1 :]
