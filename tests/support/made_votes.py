"""Annotators with known error rates, and what is true of them in the long run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Votes = NDArray[np.int8]


def made_truth(rng: np.random.Generator, n: int, share: float = 0.4) -> NDArray[np.int8]:
    return (rng.random(n) < share).astype(np.int8)


def annotated(
    rng: np.random.Generator, truth: NDArray[np.int8], rates: Sequence[tuple[float, float]], missing: float = 0.0
) -> Votes:
    """Examples × workers; a worker is (sensitivity, specificity) and errs independently of the others."""
    columns = []
    for sensitivity, specificity in rates:
        right = rng.random(len(truth)) < np.where(truth == 1, sensitivity, specificity)
        columns.append(np.where(right, truth, 1 - truth))
    votes = np.stack(columns, axis=1).astype(np.int8)
    votes[rng.random(votes.shape) < missing] = -1
    return votes


def joint(share: float, a: tuple[float, float], b: tuple[float, float]) -> NDArray[np.float64]:
    """How probable it is that both say yes, only a, only b, neither."""
    cells = np.zeros(4)
    for weight, (yes_a, yes_b) in ((share, (a[0], b[0])), (1 - share, (1 - a[1], 1 - b[1]))):
        cells += weight * np.array([yes_a * yes_b, yes_a * (1 - yes_b), (1 - yes_a) * yes_b, (1 - yes_a) * (1 - yes_b)])
    return cells
