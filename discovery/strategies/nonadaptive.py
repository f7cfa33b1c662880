"""The paper's baselines, Random Triple and tagging, which learn nothing from the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

import numpy as np

from twothirds.discovery.questions import Comparison, Kind, Labels, StrategyError


class RandomOrder:
    """The questions 0 … total - 1 in random order, each at most once, without a list of that length: a Fisher-Yates
    shuffle that notes only its moves."""

    def __init__(self, total: int, question: Callable[[int], Comparison], rng: np.random.Generator) -> None:
        self._total = self._left = total
        self._question = question
        self._rng = rng
        self._moved: dict[int, int] = {}

    @property
    def unresolved(self) -> float:
        return self._left / self._total

    def next_questions(self, k: int) -> list[Comparison]:
        return [self._question(self._draw()) for _ in range(min(k, self._left))]

    def know(self, feature: str, labels: Labels) -> None:
        pass

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        pass

    def _draw(self) -> int:
        place = int(self._rng.integers(self._left))
        self._left -= 1
        drawn = self._moved.get(place, place)
        last = self._moved.pop(self._left, self._left)
        if place != self._left:
            self._moved[place] = last
        return drawn


def random_triple(n: int, rng: np.random.Generator) -> RandomOrder:
    """Triples at random, settled or not."""
    if n < 3:
        raise StrategyError(f"two-of-three questions need at least 3 examples, and there are {n}")
    return RandomOrder(comb(n, 3), lambda rank: Comparison(Kind.TWO_OF_THREE, triple_of_rank(rank)), rng)


def tagging(n: int, rng: np.random.Generator) -> RandomOrder:
    """One example after another: what is there to say about it?"""
    if n < 1:
        raise StrategyError("tagging needs at least 1 example, and there are 0")
    return RandomOrder(n, lambda example: Comparison(Kind.TAG, (example,)), rng)


def triple_of_rank(rank: int) -> tuple[int, int, int]:
    """The triple a < b < c with comb(c, 3) + comb(b, 2) + a = rank: a one-to-one numbering of all triples."""
    c = _largest(rank, 3)
    rank -= comb(c, 3)
    b = _largest(rank, 2)
    return rank - comb(b, 2), b, c


def _largest(rank: int, size: int) -> int:
    """The largest m with comb(m, size) <= rank."""
    low, high = size - 1, size
    while comb(high, size) <= rank:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if comb(middle, size) <= rank else (low, middle)
    return low
