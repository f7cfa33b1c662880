"""Cells of a pool, which are its examples × features: their random order, which of them travel together, and which way
a cheaper model leans."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from twothirds.models.predicted.labelling import Cells, Rows
from twothirds.sources import Example

PLAIN = 0.9  # how sure an answer counts whose model gives no probability


def random_order(examples: Sequence[Example], seed: int, number: str) -> Rows:
    """By contents and names: examples that are added or gone do not shuffle the others. `number` is random and known to
    the store alone: else whoever writes the data could place what disagrees behind the sample."""
    secret = f"{number}\n{seed}".encode()
    names = (f"{example.digest}\n{example.id}".encode("utf-8", "surrogatepass") for example in examples)
    ranks = [hmac.digest(secret, name, "sha256") for name in names]
    return np.array(sorted(range(len(examples)), key=ranks.__getitem__), np.intp)


def groups_of(cells: Cells, most: int) -> Iterator[tuple[Rows, Rows]]:
    """The cells as examples that want the same features, at most about so many cells each."""
    patterns, which = np.unique(cells, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        columns, rows = np.flatnonzero(pattern), np.flatnonzero(which.reshape(-1) == number)
        at_once = max(1, most // max(1, len(columns)))
        for start in range(0, len(rows) if len(columns) else 0, at_once):
            yield rows[start : start + at_once], columns


def leanings(labels: NDArray[np.int8], chances: NDArray[np.float64]) -> NDArray[np.float32]:
    """Towards yes or no, -1 to 1: by the probabilities where there are any, else by the labels."""
    plain = np.select([labels == 1, labels == 0], [PLAIN, 1 - PLAIN], 0.5)
    return (2 * np.where(np.isnan(chances), plain, chances) - 1).astype(np.float32)
