"""The default strategy: what do at least two of these share that at least one lacks, other than what is known?

It begins with three examples. An answer with fewer new features than were asked for says that they show too little: the
next question shows one more, up to `widest`. Where three are all that may be shown, it asks instead for what one or two
of the three have. Of DRAWN random sets the one is asked that the fewest known features settle and, where features have
no labels yet, whose examples were shown least. The list of known features in a question does the rest: choosing the
examples by labels finds no more (docs/strategies.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.questions import Comparison, Kind, Labels, StrategyError, possible_counts
from twothirds.discovery.unresolved import UnresolvedSets

NARROWEST, WIDEST, DRAWN = 3, 8, 10


class Growing:
    """`most` is how many features one answer may hold, `widest` how many examples a question may show."""

    def __init__(self, n: int, rng: np.random.Generator, *, most: int = 1, widest: int = WIDEST) -> None:
        if n < NARROWEST:
            raise StrategyError(f"auto needs at least {NARROWEST} examples, and there are {n}")
        if widest < NARROWEST:
            raise StrategyError(f"auto shows at least {NARROWEST} examples, and {widest} are allowed")
        self._n, self._rng, self._most = n, rng, most
        self._widest, self._size = min(widest, n), NARROWEST
        self._kind = Kind.TWO_OF_THREE
        self._triples = UnresolvedSets(n, NARROWEST, rng)
        self._names: set[str] = set()
        self._has = np.zeros((0, n), np.bool_)  # of the known features
        self._shown = np.zeros(n, np.int64)  # how often, of each example
        self._asked: set[tuple[int, ...]] = set()
        self._heard: set[Comparison] = set()

    @property
    def unresolved(self) -> float:
        return self._triples.share

    def next_questions(self, k: int) -> list[Comparison]:
        return [self._question(examples) for _ in range(k) if (examples := self._choose()) is not None]

    def know(self, feature: str, labels: Labels) -> None:
        if feature not in self._names:
            self._names.add(feature)
            self._triples.add(labels)
            self._has = np.vstack([self._has, labels == 1])

    def hear(self, question: Comparison, *, full: bool) -> None:
        """What was asked before the questions grew says nothing about those of now."""
        self._heard.add(question)
        if not full and question.kind is self._kind and len(question.examples) == self._size:
            self._grow()

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        if question not in self._heard:
            self.hear(question, full=len(set(features) - self._names) >= self._most)
        for feature, its_labels in zip(features, labels, strict=True):
            self.know(feature, its_labels)

    def _grow(self) -> None:
        if self._size < self._widest:
            self._size += 1
            self._kind = Kind.SHARED
        elif self._size == NARROWEST:
            self._kind = Kind.ONE_OR_TWO

    def _question(self, examples: tuple[int, ...]) -> Comparison:
        self._asked.add(examples)
        self._shown[list(examples)] += 1
        return Comparison(self._kind, examples, other_than_known=True)

    def _choose(self) -> tuple[int, ...] | None:
        while self._are_all_asked():
            if self._size == self._widest:
                return None
            self._grow()
        while True:
            sets = np.sort(np.argsort(self._rng.random((DRAWN, self._n)), axis=1)[:, : self._size], axis=1)
            order = np.lexsort([self._shown[sets].sum(axis=1), self._settled(sets)])
            fresh = (examples for examples in map(tuple, sets[order].tolist()) if examples not in self._asked)
            if (examples := next(fresh, None)) is not None:
                return examples

    def _are_all_asked(self) -> bool:
        return Counter(map(len, self._asked))[self._size] == comb(self._n, self._size)

    def _settled(self, sets: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many known features answer a question about each."""
        counts = self._has[:, sets].sum(axis=2)
        wanted = possible_counts(self._kind, self._size)
        settled: NDArray[np.int64] = ((counts >= wanted.start) & (counts < wanted.stop)).sum(axis=0)
        return settled
