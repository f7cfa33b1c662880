"""What a single vote, the majority of a few and the majority of all votes would have been worth.

The votes that were cast are drawn from without replacement, in every possible way at once (hypergeometric), so that the
curve over the number of votes has no noise of its own. A tie counts as half right: a coin would decide it."""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from discovery.questions import UNKNOWN, Labels

CLOSE = 0.01  # so near to what all votes give is near enough


def chance_of_right(votes: NDArray[np.int8], true: Labels, drawn: int) -> NDArray[np.float64]:
    """For each example (votes are examples × workers), how probable it is that the majority of `drawn` of its votes is
    right; NaN where there is no vote or the truth is unknown. Where fewer were cast, all of them are drawn."""
    right = (votes == true[:, None]).sum(1)
    cast = (votes != UNKNOWN).sum(1)
    pairs, place = np.unique(np.stack([right, cast], axis=1), axis=0, return_inverse=True)
    chances = np.array([_chance(int(r), int(c), min(drawn, int(c))) if c else np.nan for r, c in pairs])
    return np.where(true != UNKNOWN, chances[place.reshape(-1)], np.nan)


@cache
def _chance(right: int, cast: int, drawn: int) -> float:
    ways = comb(cast, drawn)
    total = 0.0
    for good in range(max(0, drawn - (cast - right)), min(right, drawn) + 1):
        worth = 1.0 if 2 * good > drawn else 0.5 if 2 * good == drawn else 0.0
        total += worth * comb(right, good) * comb(cast - right, drawn - good) / ways
    return total


def odd_numbers(most: int) -> list[int]:
    """1, 3, 5 … and `most` itself: an even number of votes is no better than one less, and can be tied."""
    return sorted({*range(1, most + 1, 2), most}) if most else []


def enough(curve: dict[int, float]) -> int | None:
    """The fewest votes that give nearly as much as all of them."""
    if not curve:
        return None
    most = curve[max(curve)]
    return min(votes for votes, accuracy in curve.items() if accuracy >= most - CLOSE)


def chance_after_first(votes: NDArray[np.int8], true: Labels, drawn: int, *, first_right: bool) -> NDArray[np.float64]:
    """As `chance_of_right`, given that the first of the drawn votes is right, or wrong; NaN where that cannot be."""
    right = (votes == true[:, None]).sum(1)
    cast = (votes != UNKNOWN).sum(1)
    pairs, place = np.unique(np.stack([right, cast], axis=1), axis=0, return_inverse=True)
    chances = np.array([_after(int(r), int(c), min(drawn, int(c)), first_right) for r, c in pairs])
    return np.where(true != UNKNOWN, chances[place.reshape(-1)], np.nan)


@cache
def _after(right: int, cast: int, drawn: int, first_right: bool) -> float:
    if (right if first_right else cast - right) == 0:
        return float("nan")
    left_right, left = right - first_right, cast - 1
    ways = comb(left, drawn - 1)
    total = 0.0
    for good in range(max(0, drawn - 1 - (left - left_right)), min(left_right, drawn - 1) + 1):
        sure = 2 * (good + first_right)
        worth = 1.0 if sure > drawn else 0.5 if sure == drawn else 0.0
        total += worth * comb(left_right, good) * comb(left - left_right, drawn - 1 - good) / ways
    return total
