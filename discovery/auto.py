"""The default strategy: two of three, a pair or a tag, whichever is likely to find the next feature that counts.

Every question asks for a feature other than the known ones. Several ways of asking compete: a triple that no known
feature settles (the paper's way), any triple, any pair, any one example. Each is judged by how often it found an
interesting and distinct feature, and at first by a forecast from the features that were found in other ways."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, inf

import numpy as np

from discovery.forecast import Forecast
from discovery.metrics import distinct, interesting
from discovery.questions import UNKNOWN, Comparison, Kind, Labels, StrategyError
from discovery.triples import UnresolvedTriples

Examples = tuple[int, ...]
KIND_OF = {
    "unresolved": Kind.TWO_OF_THREE,  # a triple that no known feature settles
    "near": Kind.TWO_OF_THREE,  # of some such triples the one whose examples are the most alike
    "far": Kind.TWO_OF_THREE,  # the least alike
    "triple": Kind.TWO_OF_THREE,  # any triple
    "pair": Kind.PAIR,
    "tag": Kind.TAG,
}
WAYS = ("unresolved", "triple", "pair", "tag")
SIZE = {Kind.TWO_OF_THREE: 3, Kind.PAIR: 2, Kind.TAG: 1}
DRAWN = 8  # from so many random comparisons one is chosen
DRAWN_BY_LIKENESS = 64
TRIES = 50
ENUMERATED = 5_000  # comparisons of one kind that are listed when random tries find none that is new


@dataclass
class Record:
    """How one way of asking did, older queries counting less."""

    good: float = 0.0
    asked: float = 0.0


class Auto:
    """Each part can be switched: `beyond` (go on when no triple is unresolved), the `ways` that compete, `other` (ask
    for another than the known features), the `forecast`, `balance` (prefer examples that were shown less), `sample`
    (Thompson sampling instead of the best expectation).

    `trust` is how many queries the forecast is worth, `caution` how much evidence it needs itself, `memory` the weight
    of a query relative to the next one, and `lead` how much likelier to find something an unresolved triple is thought
    to be than any triple until it shows."""

    def __init__(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        beyond: bool = True,
        ways: tuple[str, ...] = WAYS,
        other: bool = True,
        forecast: bool = True,
        balance: bool = True,
        sample: bool = False,
        trust: float = 16.0,
        caution: float = 1.5,
        memory: float = 0.97,
        lead: float = 0.05,
    ) -> None:
        if n < 3:
            raise StrategyError(f"auto needs at least 3 examples, and there are {n}")
        if not ways or set(ways) - set(KIND_OF):
            raise StrategyError(f"auto cannot ask in the ways {', '.join(ways)!r}: choose among {', '.join(KIND_OF)}")
        for name, value, most in (("trust", trust, inf), ("caution", caution, inf), ("memory", memory, 1)):
            if not 0 < value <= most:
                raise StrategyError(f"auto: {name} is {value:g}, but must be above 0 and at most {most:g}")
        self._n, self._rng, self._beyond = n, rng, beyond
        self._other, self._balance, self._sample = other, balance, sample
        self._trust, self._memory, self._lead = trust, memory, lead
        self._forecast = Forecast(memory, caution)
        self._yields = self._forecast.yields() if not forecast else None  # where it is to stay what it is at first
        self._triples = UnresolvedTriples(n, rng)
        self._records = {way: Record() for way in ways}
        self._shown = np.zeros(n)
        self._labels: dict[str, Labels] = {}
        self._kept: list[Labels] = []
        self._way: dict[Comparison, str] = {}  # of every question that was asked
        self._known_then: dict[Comparison, frozenset[str]] = {}  # when a question was asked that is not answered yet

    @property
    def unresolved(self) -> float:
        return self._triples.share

    def next_questions(self, k: int) -> list[Comparison]:
        questions: list[Comparison] = []
        known = frozenset(self._labels)
        while len(questions) < k and (question := self._choose()) is not None:
            questions.append(question)
            self._known_then[question] = known
        return questions

    def learn(self, question: Comparison, feature: str | None, labels: Labels | None) -> None:
        known_then = self._known_then.pop(question, frozenset(self._labels))
        if feature is not None and feature in self._labels and feature not in known_then:
            return  # found by another question of the same round: that says nothing about this way of asking
        counts = False
        new = labels if feature is not None and feature not in self._labels else None
        if feature is not None and new is not None:
            self._labels[feature] = new
            self._triples.add(new)
            counts = interesting(new) and distinct(new, self._kept)
            if counts:
                self._kept.append(new)
        self._record(question, counts=counts)
        self._forecast.note(question.kind, answered=feature is not None)
        if new is not None:
            share = float((new == 1).sum() / max((new != UNKNOWN).sum(), 1))
            self._forecast.found(question.kind, share, counts=counts)

    def _record(self, question: Comparison, *, counts: bool) -> None:
        for record in self._records.values():
            record.good *= self._memory
            record.asked *= self._memory
        record = self._records[self._way[question]]
        record.good += counts
        record.asked += 1.0

    def _choose(self) -> Comparison | None:
        """A question of the most promising way that has one left."""
        if not self._beyond and self._triples.share == 0:
            return None
        promise = self._promises()
        for way in sorted(promise, key=promise.__getitem__, reverse=True):
            examples = self._examples(way)
            if examples is not None:
                question = Comparison(KIND_OF[way], examples, other_than_known=self._other)
                self._way[question] = way
                self._shown[list(examples)] += 1
                if question.kind is Kind.TWO_OF_THREE:
                    self._triples.retire(examples)
                return question
        return None

    def _promises(self) -> dict[str, float]:
        """For each way the probability that it finds a feature that counts, or a sample of what it may be."""
        yields = self._yields or self._forecast.yields()
        promise = {}
        for way, record in self._records.items():
            expected = yields[KIND_OF[way]] + (self._lead if way == "unresolved" else 0.0)
            expected = min(max(expected, 0.05), 0.95)
            good = self._trust * expected + record.good
            bad = self._trust * (1 - expected) + record.asked - record.good
            promise[way] = float(self._rng.beta(good, bad)) if self._sample else good / (good + bad)
        return promise

    def _examples(self, way: str) -> Examples | None:
        if way in ("near", "far"):
            drawn = self._triples.draw_many(DRAWN_BY_LIKENESS) or self._random(Kind.TWO_OF_THREE, DRAWN_BY_LIKENESS)
            sign = 1 if way == "near" else -1
            return min(drawn, key=lambda examples: sign * self._differences(examples), default=None)
        wanted = DRAWN if self._balance else 1
        drawn = self._triples.draw_many(wanted) if way == "unresolved" else self._random(KIND_OF[way], wanted)
        return min(drawn, key=lambda examples: float(self._shown[list(examples)].sum()), default=None)

    def _differences(self, examples: Examples) -> int:
        """How many known labels differ, over all pairs of these examples."""
        rows = np.array([labels[list(examples)] for labels in self._labels.values()]).reshape(-1, len(examples)).T
        pairs = combinations(rows, 2)
        return sum(int(((x != y) & (x != UNKNOWN) & (y != UNKNOWN)).sum()) for x, y in pairs)

    def _random(self, kind: Kind, wanted: int) -> list[Examples]:
        """Up to `wanted` comparisons of that kind that were not asked; none only if all were, or so it seems."""
        size = SIZE[kind]
        drawn: dict[Examples, None] = {}
        for row in self._rng.integers(self._n, size=(TRIES, size)).tolist():
            examples = tuple(sorted(row))
            if len(set(examples)) == size and not self._was_asked(kind, examples):
                drawn[examples] = None
            if len(drawn) == wanted:
                break
        if not drawn and comb(self._n, size) <= ENUMERATED:
            fresh = [every for every in combinations(range(self._n), size) if not self._was_asked(kind, every)]
            return [fresh[i] for i in self._rng.permutation(len(fresh))[:wanted]]
        return list(drawn)

    def _was_asked(self, kind: Kind, examples: Examples) -> bool:
        return Comparison(kind, examples, other_than_known=self._other) in self._way
