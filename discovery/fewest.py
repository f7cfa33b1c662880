"""Which comparisons the fewest known features settle: where to go on when every one is settled by some feature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def fewest(scores: NDArray[np.int64] | NDArray[np.uint16], k: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Positions of the `k` lowest scores, lowest first, ties in random order."""
    k = min(k, scores.size)
    if k == 0:
        return np.zeros(0, np.intp)
    limit = np.partition(scores, k - 1)[k - 1]
    below = np.flatnonzero(scores < limit)
    level = np.flatnonzero(scores == limit)
    chosen = np.concatenate([below, rng.choice(level, k - below.size, replace=False, shuffle=False)])
    chosen = rng.permutation(chosen)
    return chosen[np.argsort(scores[chosen], kind="stable")]
