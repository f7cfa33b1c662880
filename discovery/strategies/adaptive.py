"""Ask only what no known feature settles: Adaptive Triple (the paper's Algorithm 1), Adaptive Pair, and a list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twothirds.discovery.questions import Comparison, Kind, Labels, StrategyError, valid_columns
from twothirds.discovery.unresolved import UnresolvedSets


class Adaptive:
    """Draws uniformly among the unresolved comparisons; each is asked once, and NONE settles that comparison only.

    `beyond`: when nothing is unresolved, go on with what the fewest known features settle, asking for another one."""

    def __init__(self, kind: Kind, pool: UnresolvedSets, *, beyond: bool = False) -> None:
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
            rest = self._pool.settled_least(k - len(drawn))
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
    return Adaptive(Kind.TWO_OF_THREE, UnresolvedSets(n, 3, rng), beyond=beyond)


def adaptive_pair(n: int, rng: np.random.Generator, *, beyond: bool = False) -> Adaptive:
    if n < 2:
        raise StrategyError(f"pair questions need at least 2 examples, and there are {n}")
    return Adaptive(Kind.PAIR, UnresolvedSets(n, 2, rng), beyond=beyond)


class Listed:
    """Questions from a list, in its order, e.g. those that people have answered already: what known features settle is
    not asked. With `beyond`, those that are settled follow when no other is left."""

    def __init__(self, questions: Sequence[Comparison], *, beyond: bool = False) -> None:
        if not questions:
            raise StrategyError("there is no recorded comparison of these examples: give another table or data set")
        self._open = list(dict.fromkeys(questions))
        self._total = len(self._open)
        self._settled: list[Comparison] = []
        self._beyond = beyond

    def __len__(self) -> int:
        return self._total

    @property
    def unresolved(self) -> float:
        return len(self._open) / self._total

    def next_questions(self, k: int) -> list[Comparison]:
        now, self._open = self._open[:k], self._open[k:]
        if self._beyond and len(now) < k:
            more = k - len(now)
            now, self._settled = [*now, *self._settled[:more]], self._settled[more:]
        return now

    def know(self, feature: str, labels: Labels) -> None:  # noqa: ARG002 (a name settles nothing)
        column = labels[:, None]
        settled = {question for question in self._open if valid_columns(column, question)[0]}
        self._settled += [question for question in self._open if question in settled]
        self._open = [question for question in self._open if question not in settled]

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:  # noqa: ARG002
        for feature, known in zip(features, labels, strict=True):
            self.know(feature, known)
