"""Which cells travel together to the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from models.predicted.pool import Cells
from sources import Example

COMMON = 0.5  # of the examples that want anything: a feature that so many want
SHORT_CHARS = 400  # of a text, which then takes fewer tokens than a request and the features of one


def groups_of(
    cells: Cells, most: int, examples: Sequence[Example]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The cells as examples that want the same features, at most about so many cells each. Short texts share requests
    if they want the same: what most of them want comes first, and then each feature by itself, since a short text that
    is sent twice costs less than a request of its own."""
    parts = _shared(cells) if _are_short_texts(examples) else [cells]
    for part in parts:
        patterns, which = np.unique(part, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            columns, rows = np.flatnonzero(pattern), np.flatnonzero(which.reshape(-1) == number)
            at_once = max(1, most // max(1, len(columns)))
            for start in range(0, len(rows) if len(columns) else 0, at_once):
                yield rows[start : start + at_once], columns


def _shared(cells: Cells) -> Iterator[Cells]:
    wanting = cells.any(axis=1)
    common = cells[wanting].mean(axis=0) >= COMMON if wanting.any() else cells.any(axis=0)
    whole = np.zeros_like(cells)
    whole[np.ix_(np.flatnonzero(cells[:, common].all(axis=1)), np.flatnonzero(common))] = True
    yield whole
    left = cells & ~whole
    for column in np.flatnonzero(left.any(axis=0)):
        yield left & (np.arange(cells.shape[1]) == column)


def _are_short_texts(examples: Sequence[Example]) -> bool:
    return bool(examples) and all(
        example.image is None and len(example.text or "") <= SHORT_CHARS for example in examples
    )
