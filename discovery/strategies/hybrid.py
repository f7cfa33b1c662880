"""Adaptive Hybrid (the paper's Algorithm 2) for feature trees of any degree, repaired so that it misses no feature.

As printed the algorithm misses features. Here off(f) holds the largest known features below f *and* the examples right
under f; features found by pairs are explored like the others; and before f is left, each example right under it is
asked about alone: what has x that z lacks? There is no other way to find a feature of one kind of example only.

On labels that do not form a tree (noise, crossing features) the search still ends, because no question is asked twice,
but it may miss features: only what is known to lie in f is searched below f, and unknown labels count as absent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations
from math import ceil, comb, log
from operator import or_

import numpy as np

from twothirds.discovery.questions import UNKNOWN, Comparison, Kind, Labels, StrategyError

ExampleSet = int  # a bit mask: bit x is set if example x is in the set
MAX_ENUMERATED = 20_000  # up to so many triples are listed, above that they are tried at random


class AdaptiveHybrid:
    """`theta`: how many answers in a row must bring nothing new before a feature is left. By default 3·D²·ln(M/δ) as in
    Proposition 4.3, D being `degree`, δ `delta`, and M the most features that a tree with these examples can have."""

    def __init__(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        theta: int | None = None,
        degree: int | None = None,
        delta: float | None = None,
    ) -> None:
        _check(n, theta, degree, delta)
        self._rng = rng
        self._theta = theta
        self._degree = degree or 3
        self._delta = delta or 0.05
        self._classes = ExampleClasses(n, rng)
        self._labels: dict[str, Labels] = {}
        self._features: dict[ExampleSet, int] = {}  # the examples that have it, and the one that stands for it
        self._queue: deque[ExampleSet] = deque()
        self._current: ExampleSet | None = None
        self._misses = 0
        self._asked: set[Comparison] = set()
        self._everything: ExampleSet = 0  # the root; 0 while pairs are being compared

    @property
    def unresolved(self) -> float:
        """Share of the work known so far that is left: examples to place and features to explore."""
        exploring = 0 if self._everything and self._current is None else 1
        left = self._classes.waiting + len(self._queue) + exploring
        return left / (self._classes.n + len(self._features) + 1)

    def next_questions(self, k: int) -> list[Comparison]:
        if not self._everything:
            questions = self._classes.next_pairs(k)
            if questions or self._classes.waiting:
                return questions
            self._start_exploring()
        while self._current is not None:
            questions = self._explore(self._current, k)
            if questions:
                self._asked.update(questions)
                return questions
            self._current = self._queue.popleft() if self._queue else None
            self._misses = 0
        return []

    def know(self, feature: str, labels: Labels) -> None:
        if feature not in self._labels:
            self._labels[feature] = labels
            if self._everything:
                self._add(labels)

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        new = {name: its for name, its in zip(features, labels, strict=True) if name not in self._labels}
        self._labels |= new
        if question.kind is Kind.PAIR:
            self._classes.learn(question, [*new.values()], answered=bool(features))
        elif question.kind is Kind.TWO_OF_THREE:
            self._misses += 1
        if self._everything and sum(self._add(its_labels) for its_labels in new.values()):
            self._misses = 0

    def _start_exploring(self) -> None:
        self._everything = _as_set(self._classes.representatives)
        self._current = self._everything
        for labels in self._labels.values():
            self._add(labels)

    def _add(self, labels: Labels) -> bool:
        """Queue a feature; False if it adds nothing to those that are known."""
        having = [example for example in self._classes.representatives if labels[example] == 1]
        feature = _as_set(having)
        if feature in (0, self._everything) or feature in self._features:
            return False
        self._features[feature] = int(self._rng.choice(having))
        self._queue.append(feature)
        return True

    def _explore(self, feature: ExampleSet, k: int) -> list[Comparison]:
        covered = self._right_below(feature)
        bare = list(_examples(feature & ~reduce(or_, covered, 0)))
        standing_in = list(dict.fromkeys([self._features[other] for other in covered] + bare))
        if self._misses < self._theta_now():
            triples = self._fresh_triples(standing_in, k)
            if triples:
                return triples
        return self._alone(bare, standing_in)[:k]

    def _right_below(self, feature: ExampleSet) -> list[ExampleSet]:
        inside = [other for other in self._features if other != feature and other & ~feature == 0]
        return [f for f in inside if not any(f != other and f & ~other == 0 for other in inside)]

    def _theta_now(self) -> int:
        if self._theta is not None:
            return self._theta
        most = 2 * len(self._classes.representatives)  # features of a leafy tree over so many kinds of examples
        return ceil(3 * self._degree**2 * log(most / self._delta))

    def _fresh_triples(self, examples: list[int], k: int) -> list[Comparison]:
        """Up to `k` random triples that were not asked."""
        if comb(len(examples), 3) <= MAX_ENUMERATED:
            triples = (Comparison(Kind.TWO_OF_THREE, triple) for triple in combinations(sorted(examples), 3))
            fresh = [question for question in triples if question not in self._asked]
            return [fresh[i] for i in self._rng.permutation(len(fresh))[:k]]
        found: dict[Comparison, None] = {}
        for _ in range(20 * k):  # far more triples than were ever asked: a repetition is rare
            triple = sorted(self._rng.choice(examples, 3, replace=False).tolist())
            question = Comparison(Kind.TWO_OF_THREE, tuple(triple))
            if question not in self._asked:
                found[question] = None
            if len(found) == k:
                break
        return list(found)

    def _alone(self, bare: list[int], standing_in: list[int]) -> list[Comparison]:
        """For each example right under the feature: what has it that another one under the feature lacks?"""
        questions = []
        for x in bare:
            others = [example for example in standing_in if example != x]
            tried = any(Comparison(Kind.LEFT_RIGHT, (x,), (z,)) in self._asked for z in others)
            if others and not tried:
                questions.append(Comparison(Kind.LEFT_RIGHT, (x,), (int(self._rng.choice(others)),)))
        return questions


class ExampleClasses:
    """Step 1: pairs are compared until any two examples are told apart by a feature or known to have the same ones.

    Examples are placed one after another: each is compared with those that stand for a class and that no known feature
    tells it apart from. So there are at most as many questions as examples and features."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n = n
        self.representatives: list[int] = []
        self._rng = rng
        order: list[int] = rng.permutation(n).tolist()
        self._to_place: dict[int, set[int]] = {example: set() for example in order}  # with whom compared
        self._being_asked: set[int] = set()
        self._known = np.zeros((0, n), dtype=np.int8)

    @property
    def waiting(self) -> int:
        return len(self._to_place)

    def next_pairs(self, k: int) -> list[Comparison]:
        questions: list[Comparison] = []
        for example in list(self._to_place):
            if len(questions) == k:
                break
            if example in self._being_asked:
                continue
            alike = [other for other in self._alike(example) if other not in self._to_place[example]]
            if alike:
                other = int(self._rng.choice(alike))
                self._to_place[example].add(other)
                self._being_asked.add(example)
                questions.append(Comparison(Kind.PAIR, (example, other)))
            else:
                del self._to_place[example]
                self.representatives.append(example)
        return questions

    def _alike(self, example: int) -> list[int]:
        others = np.array(self.representatives, dtype=np.intp)
        mine, theirs = self._known[:, [example]], self._known[:, others]
        apart = ((mine != theirs) & (mine != UNKNOWN) & (theirs != UNKNOWN)).any(axis=0)
        alike: list[int] = others[~apart].tolist()
        return alike

    def learn(self, question: Comparison, new: Sequence[Labels], *, answered: bool) -> None:
        example = question.examples[0]
        self._being_asked.discard(example)
        if not answered:
            self._to_place.pop(example, None)  # the same features as the one it was compared with
        self._known = np.vstack([self._known, *new])


def _check(n: int, theta: int | None, degree: int | None, delta: float | None) -> None:
    if n < 3:
        raise StrategyError(f"adaptive-hybrid needs at least 3 examples, and there are {n}")
    if theta is not None and (degree is not None or delta is not None):
        raise StrategyError("theta follows from degree and delta: give either theta or those two")
    if theta is not None and theta < 1:
        raise StrategyError(f"theta is {theta}, but it takes at least 1 unsuccessful question to leave a feature")
    if degree is not None and degree < 2:
        raise StrategyError(f"degree is {degree}, but a tree has at least 2 features below some feature")
    if delta is not None and not 0 < delta < 1:
        raise StrategyError(f"delta is {delta:g}, but a probability of failure lies between 0 and 1")


def _as_set(examples: list[int]) -> ExampleSet:
    return sum(1 << example for example in examples)


def _examples(bits: ExampleSet) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
