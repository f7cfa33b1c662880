"""Asks one kind of question by means of another (Section 6): 2/3 by left-right, a pair by two 2/3 questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from discovery.questions import Comparison, Kind, Labels, Strategy

Parts = Callable[[Comparison], list[Comparison]]


def as_left_right(question: Comparison) -> list[Comparison]:
    """The left-right questions of which at least one is answered exactly when `question` is."""
    have = {Kind.TWO_OF_THREE: 2, Kind.ONE_OF_THREE: 1, Kind.PAIR: 1}.get(question.kind)
    if have is None:
        return [question]
    parts = []
    for left in combinations(range(len(question.examples)), have):
        right = tuple(example for place, example in enumerate(question.examples) if place not in left)
        chosen = tuple(question.examples[place] for place in left)
        if set(chosen).isdisjoint(right):  # an example shown twice cannot both have and lack it
            parts.append(Comparison(Kind.LEFT_RIGHT, chosen, right, question.other_than_known))
    return list(dict.fromkeys(parts))


def as_two_of_three(question: Comparison) -> list[Comparison]:
    """A pair (x, y) as the two 2/3 questions (x, x, y) and (x, y, y); any other question as it is."""
    if question.kind is not Kind.PAIR:
        return [question]
    x, y = question.examples
    other = question.other_than_known
    return [Comparison(Kind.TWO_OF_THREE, triple, other_than_known=other) for triple in ((x, x, y), (x, y, y))]


class Rephrased:
    """A strategy whose every question is asked in parts, one after the other in random order until one has an answer.

    The strategy inside hears that answer, or NONE after the last part."""

    def __init__(self, inner: Strategy, parts: Parts, rng: np.random.Generator) -> None:
        self._inner = inner
        self._parts = parts
        self._rng = rng
        self._waiting: list[tuple[Comparison, list[Comparison]]] = []  # whole questions and the parts yet to be asked
        self._asked: dict[Comparison, tuple[Comparison, list[Comparison]]] = {}

    @property
    def unresolved(self) -> float:
        return self._inner.unresolved

    def next_questions(self, k: int) -> list[Comparison]:
        if len(self._waiting) < k:
            for whole in self._inner.next_questions(k - len(self._waiting)):
                parts = self._parts(whole)
                self._waiting.append((whole, [parts[i] for i in self._rng.permutation(len(parts))]))
        now, self._waiting = self._waiting[:k], self._waiting[k:]
        questions = []
        for whole, parts in now:
            self._asked[parts[0]] = (whole, parts[1:])
            questions.append(parts[0])
        return questions

    def know(self, feature: str, labels: Labels) -> None:
        self._inner.know(feature, labels)

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        whole, rest = self._asked.pop(question)
        if not features and rest:
            self._waiting.append((whole, rest))
        else:
            self._inner.learn(whole, features, labels)
