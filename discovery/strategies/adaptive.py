"""Adaptive Triple (the paper's Algorithm 1) and Adaptive Pair: ask only what no known feature settles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from discovery.questions import Comparison, Kind, Labels, StrategyError
from discovery.unresolved import UnresolvedPairs, UnresolvedTriples


class Pool(Protocol):
    """The comparisons of one kind, and which of them no known feature settles."""

    @property
    def share(self) -> float: ...
    def add(self, labels: Labels) -> None: ...
    def retire(self, examples: tuple[int, ...]) -> None: ...
    def draw_many(self, k: int) -> list[tuple[int, ...]]: ...
    def least_resolved(self, k: int) -> list[tuple[int, ...]]: ...


class Adaptive:
    """Draws uniformly among the unresolved comparisons; each is asked once, and NONE settles that comparison only.

    `beyond`: when nothing is unresolved, go on with what the fewest known features settle, asking for another one."""

    def __init__(self, kind: Kind, pool: Pool, *, beyond: bool = False) -> None:
        self._kind = kind
        self._pool = pool
        self._beyond = beyond
        self._names: set[str] = set()

    @property
    def unresolved(self) -> float:
        return self._pool.share

    def next_questions(self, k: int) -> list[Comparison]:
        drawn = [Comparison(self._kind, examples) for examples in self._pool.draw_many(k)]
        self._retire(drawn)
        if self._beyond and len(drawn) < k:
            rest = self._pool.least_resolved(k - len(drawn))
            more = [Comparison(self._kind, examples, other_than_known=True) for examples in rest]
            self._retire(more)
            drawn += more
        return drawn

    def _retire(self, questions: list[Comparison]) -> None:
        # at once: noise or a renamed duplicate may leave an asked comparison unresolved, and it would come up for ever
        for question in questions:
            self._pool.retire(question.examples)

    def know(self, feature: str, labels: Labels) -> None:
        if feature not in self._names:
            self._names.add(feature)
            self._pool.add(labels)

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:  # noqa: ARG002
        for feature, its_labels in zip(features, labels, strict=True):
            self.know(feature, its_labels)


def adaptive_triple(n: int, rng: np.random.Generator, *, beyond: bool = False) -> Adaptive:
    if n < 3:
        raise StrategyError(f"two-of-three questions need at least 3 examples, and there are {n}")
    return Adaptive(Kind.TWO_OF_THREE, UnresolvedTriples(n, rng), beyond=beyond)


def adaptive_pair(n: int, rng: np.random.Generator, *, beyond: bool = False) -> Adaptive:
    if n < 2:
        raise StrategyError(f"pair questions need at least 2 examples, and there are {n}")
    return Adaptive(Kind.PAIR, UnresolvedPairs(n, rng), beyond=beyond)
