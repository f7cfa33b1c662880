"""Minimal pairs: an example that has a feature beside the most similar one that lacks it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery.questions import UNKNOWN

CANDIDATES = 200


@dataclass(frozen=True)
class MinimalPair:
    having: int  # rows of the examples
    lacking: int
    differing: list[int]  # the other features in which the two are known to differ


def minimal_pairs(
    matrix: NDArray[np.int8], feature: int, doubtful: NDArray[np.bool_], wanted: int = 3
) -> list[MinimalPair]:
    """The pairs that differ in the feature and in as few others as possible; no example is used twice.

    Of pairs that are equally close, those with undoubted labels come first. `matrix` is features × examples."""
    labels = matrix[feature]
    having, lacking = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    if not having.size or not lacking.size:
        return []
    others = np.delete(matrix, feature, axis=0)
    ones, zeros = (others == 1).astype(np.float32), (others == 0).astype(np.float32)
    unknown = (others == UNKNOWN).astype(np.float32).sum(axis=0)
    distance = ones[:, having].T @ zeros[:, lacking] + zeros[:, having].T @ ones[:, lacking]
    distance += (0.25 * doubtful + 0.5 * unknown)[having][:, None] + (0.25 * doubtful + 0.5 * unknown)[lacking][None, :]
    flat = distance.ravel()
    nearest = np.argpartition(flat, min(CANDIDATES, flat.size) - 1)[:CANDIDATES]
    pairs: list[MinimalPair] = []
    used: set[int] = set()
    for place in sorted(nearest.tolist(), key=lambda place: (flat[place], place)):
        a, b = int(having[place // lacking.size]), int(lacking[place % lacking.size])
        if a in used or b in used:
            continue
        used |= {a, b}
        pairs.append(MinimalPair(a, b, _differing(matrix, a, b, feature)))
        if len(pairs) == wanted:
            break
    return pairs


def _differing(matrix: NDArray[np.int8], a: int, b: int, feature: int) -> list[int]:
    known = (matrix[:, a] != UNKNOWN) & (matrix[:, b] != UNKNOWN)
    return [row for row in np.flatnonzero(known & (matrix[:, a] != matrix[:, b])).tolist() if row != feature]
