"""The paper's baselines, Random Triple and tagging, which learn nothing from the answers."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from discovery.questions import Comparison, Kind, Labels, StrategyError


class RandomTriple:
    """Triples at random, settled or not; each at most once."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        if n < 3:
            raise StrategyError(f"two-of-three questions need at least 3 examples, and there are {n}")
        self._ranks = _Shuffled(comb(n, 3), rng)

    @property
    def unresolved(self) -> float:
        return self._ranks.left / self._ranks.total

    def next_questions(self, k: int) -> list[Comparison]:
        count = min(k, self._ranks.left)
        return [Comparison(Kind.TWO_OF_THREE, triple_of_rank(self._ranks.draw())) for _ in range(count)]

    def know(self, feature: str, labels: Labels) -> None:
        pass

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        pass


class Tagging:
    """One example after another in random order: what is there to say about it?"""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        if n < 1:
            raise StrategyError("tagging needs at least 1 example, and there are 0")
        self._examples = _Shuffled(n, rng)

    @property
    def unresolved(self) -> float:
        return self._examples.left / self._examples.total

    def next_questions(self, k: int) -> list[Comparison]:
        return [Comparison(Kind.TAG, (self._examples.draw(),)) for _ in range(min(k, self._examples.left))]

    def know(self, feature: str, labels: Labels) -> None:
        pass

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        pass


class _Shuffled:
    """0 … total - 1 in random order without a list of that length: a Fisher-Yates shuffle that notes only its moves."""

    def __init__(self, total: int, rng: np.random.Generator) -> None:
        self.total = self.left = total
        self._rng = rng
        self._moved: dict[int, int] = {}

    def draw(self) -> int:
        place = int(self._rng.integers(self.left))
        self.left -= 1
        drawn = self._moved.get(place, place)
        last = self._moved.pop(self.left, self.left)
        if place != self.left:
            self._moved[place] = last
        return drawn


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
