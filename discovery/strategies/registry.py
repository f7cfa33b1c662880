"""Every strategy by its name on the command line, and its questions by means of another kind of question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from itertools import combinations
from typing import Any

import numpy as np

from discovery.questions import Comparison, Kind, Labels, Strategy, StrategyError
from discovery.strategies.adaptive import adaptive_pair, adaptive_triple
from discovery.strategies.auto import Auto
from discovery.strategies.hybrid import AdaptiveHybrid
from discovery.strategies.nonadaptive import random_triple, tagging

Rephrase = Callable[[Comparison], list[Comparison]]
STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "auto": Auto,
    "adaptive-triple": adaptive_triple,
    "random-triple": random_triple,
    "adaptive-pair": adaptive_pair,
    "adaptive-hybrid": AdaptiveHybrid,
    "tagging": tagging,
}


def as_left_right(question: Comparison) -> list[Comparison]:
    """The left-right questions of which at least one is answered exactly when `question` is."""
    have = {Kind.TWO_OF_THREE: 2, Kind.ONE_OF_THREE: 1, Kind.PAIR: 1}.get(question.kind)
    if have is None:
        return [question]
    questions = []
    for left in combinations(range(len(question.examples)), have):
        right = tuple(example for place, example in enumerate(question.examples) if place not in left)
        chosen = tuple(question.examples[place] for place in left)
        if set(chosen).isdisjoint(right):  # an example shown twice cannot both have and lack it
            questions.append(Comparison(Kind.LEFT_RIGHT, chosen, right, question.other_than_known))
    return list(dict.fromkeys(questions))


def as_two_of_three(question: Comparison) -> list[Comparison]:
    """A pair (x, y) as the two 2/3 questions (x, x, y) and (x, y, y); any other question as it is."""
    if question.kind is not Kind.PAIR:
        return [question]
    x, y = question.examples
    other = question.other_than_known
    return [Comparison(Kind.TWO_OF_THREE, triple, other_than_known=other) for triple in ((x, x, y), (x, y, y))]


class Rephrased:
    """A strategy that asks one kind of question by means of another (Section 6): each question is replaced by simpler
    ones, which are asked one after the other in random order until one has an answer.

    The strategy inside hears that answer, or NONE after the last of them."""

    def __init__(self, inner: Strategy, rephrase: Rephrase, rng: np.random.Generator) -> None:
        self._inner = inner
        self._rephrase = rephrase
        self._rng = rng
        self._waiting: list[tuple[Comparison, list[Comparison]]] = []  # questions, and by what they are yet to be asked
        self._asked: dict[Comparison, tuple[Comparison, list[Comparison]]] = {}

    @property
    def unresolved(self) -> float:
        return self._inner.unresolved

    def next_questions(self, k: int) -> list[Comparison]:
        if len(self._waiting) < k:
            for question in self._inner.next_questions(k - len(self._waiting)):
                simpler = self._rephrase(question)
                self._waiting.append((question, [simpler[i] for i in self._rng.permutation(len(simpler))]))
        now, self._waiting = self._waiting[:k], self._waiting[k:]
        questions = []
        for question, simpler in now:
            self._asked[simpler[0]] = (question, simpler[1:])
            questions.append(simpler[0])
        return questions

    def know(self, feature: str, labels: Labels) -> None:
        self._inner.know(feature, labels)

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        original, left = self._asked.pop(question)
        if not features and left:
            self._waiting.append((original, left))
        else:
            self._inner.learn(original, features, labels)


ASK: dict[str, Rephrase] = {"left-right": as_left_right, "two-of-three": as_two_of_three}


def make_strategy(
    name: str, n: int, rng: np.random.Generator, *, batch: int = 1, ask: str | None = None, **options: Any
) -> Strategy:
    """The strategy of that name for `n` examples. `ask` puts its questions by means of another kind of question."""
    if name not in STRATEGIES:
        raise StrategyError(f"unknown strategy {name!r}: choose one of {', '.join(STRATEGIES)}")
    if ask is not None and ask not in ASK:
        raise StrategyError(f"cannot ask by {ask!r}: choose one of {', '.join(ASK)}")
    if batch < 1:
        raise StrategyError(f"a batch of {batch} questions asks nothing: give 1 or more")
    build = STRATEGIES[name]
    taken = set(signature(build).parameters) - {"n", "rng"}
    for option in options:
        if option not in taken:
            known = f"it takes {', '.join(sorted(taken))}" if taken else "it takes none"
            raise StrategyError(f"strategy {name!r} has no option {option!r}: {known}")
    strategy = build(n, rng, **options)
    return Rephrased(strategy, ASK[ask], rng) if ask else strategy
