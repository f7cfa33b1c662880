"""The default strategy: two of three, a pair or a tag, chosen by which is likely to find the next feature that counts.

Every question asks for a feature other than the known ones; one that is interesting and distinct counts. Of many random
comparisons of each kind the model in `hypothetical.py`, a posterior over the number of features left and a sample of
hypothetical features, picks the one expected to find the most features that count, a share p of the `most` that an
answer may hold. Then the kind is chosen whose estimate (trust · p + good) / (trust + asked) is highest: the mean of a
Beta distribution with p as prior mean, updated by the `good` shares of the `asked` questions of that kind, old ones
discounted; or a sample from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, inf

import numpy as np

from discovery.metrics import distinct, interesting
from discovery.questions import UNKNOWN, Comparison, Kind, Labels, StrategyError
from discovery.strategies.hypothetical import MAX_POOL, FeatureSample, HypotheticalFeatures, Places
from discovery.unresolved import UnresolvedTriples

Examples = tuple[int, ...]
KIND_OF = {
    "triple": Kind.TWO_OF_THREE,  # any triple
    "unresolved": Kind.TWO_OF_THREE,  # a triple that no known feature settles
    "near": Kind.TWO_OF_THREE,  # of some such triples the one whose examples are the most alike
    "far": Kind.TWO_OF_THREE,  # the least alike
    "pair": Kind.PAIR,
    "tag": Kind.TAG,
}
WAYS = ("triple", "pair", "tag")
SIZE = {Kind.TWO_OF_THREE: 3, Kind.PAIR: 2, Kind.TAG: 1}
DRAWN = 200  # comparisons of one kind of which the most promising is chosen
DRAWN_UNRESOLVED = 24  # triples among them that no known feature settles
DRAWN_BY_LIKENESS = 64
MIN_RANDOM_TRIES = 50
MAX_ENUMERATED = 5_000  # comparisons of one kind that are listed when random tries find none that is new
NOT_TRIPLE_DISCOUNT = 0.8  # on the promise of a pair or a tag: features too rare to count are hard to foresee
RECORD_DECAY = 0.9  # weight of a query relative to the next one, in the record of a way of asking
PROMISE_WITHOUT_MODEL = 0.5


@dataclass
class TrackRecord:
    """How one way of asking did, older queries counting less."""

    good: float = 0.0
    asked: float = 0.0


@dataclass(frozen=True)
class Choice:
    """The comparison that one way of asking would put, and what it promises."""

    examples: Examples
    promise: float = PROMISE_WITHOUT_MODEL
    places: Places | None = None  # of its examples in the sample's pool, if there is a sample
    mass: float = 0.0


class Auto:
    """Each part can be switched: `beyond` (go on when no triple is unresolved), the `ways` that compete, `other` (ask
    for another than the known features), `imagine` (judge comparisons by hypothetical features; otherwise a way asks
    at random), `sample` (Thompson sampling instead of the best expectation).

    `trust` is how many queries a promise is worth; `caution` and `memory` are those of HypotheticalFeatures. `most` is
    how many features one answer may hold."""

    def __init__(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        beyond: bool = True,
        ways: tuple[str, ...] = WAYS,
        other: bool = True,
        imagine: bool = True,
        sample: bool = False,
        trust: float = 32.0,
        caution: float = 1.5,
        memory: float = 0.97,
        most: int = 1,
    ) -> None:
        if n < 3:
            raise StrategyError(f"auto needs at least 3 examples, and there are {n}")
        if not ways or set(ways) - set(KIND_OF):
            raise StrategyError(f"auto cannot ask in the ways {', '.join(ways)!r}: choose among {', '.join(KIND_OF)}")
        for name, value, limit in (("trust", trust, inf), ("caution", caution, inf), ("memory", memory, 1)):
            if not 0 < value <= limit:
                raise StrategyError(f"auto: {name} is {value:g}, but must be above 0 and at most {limit:g}")
        self._n, self._rng, self._beyond = n, rng, beyond
        self._other, self._thompson = other, sample
        self._trust, self._most = trust, most
        self._model = HypotheticalFeatures(n, rng, memory, caution, most) if imagine else None
        self._triples = UnresolvedTriples(n, rng)
        self._records = {way: TrackRecord() for way in ways}
        self._labels: dict[str, Labels] = {}
        self._kept: list[Labels] = []
        self._asked: set[tuple[Kind, Examples]] = set()
        self._way: dict[Comparison, str] = {}  # of every question that was asked
        self._number: dict[Comparison, int] = {}  # by which the model knows it
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

    def know(self, feature: str, labels: Labels) -> None:
        if feature not in self._labels:
            counts = self._add(feature, labels)
            if self._model is not None:
                self._model.record_known(labels, counts=counts)

    def hear(self, question: Comparison, named: int) -> None:
        """The model then knows how much is left of what this question could bring out, though not yet which examples
        have it. A question that somebody else has put is not heard."""
        if self._model is not None and (number := self._number.get(question)) is not None:
            self._model.record_named(number, named)

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        known_then = self._known_then.pop(question, frozenset(self._labels))
        if features and all(feature in self._labels and feature not in known_then for feature in features):
            return  # found by other questions of the same round: that says nothing about this way of asking
        new = {name: its for name, its in zip(features, labels, strict=True) if name not in self._labels}
        counting = [self._add(name, its_labels) for name, its_labels in new.items()]
        self._record(question, sum(counting) / self._most)
        if self._model is not None:
            self._model.record_answer(self._number[question], len(features), [*new.values()], counting)

    def _add(self, feature: str, labels: Labels) -> bool:
        """A feature that is not known yet; whether it counts."""
        self._labels[feature] = labels
        self._triples.add(labels)
        counts = interesting(labels) and distinct(labels, self._kept)
        if counts:
            self._kept.append(labels)
        return counts

    def _record(self, question: Comparison, good: float) -> None:
        for record in self._records.values():
            record.good *= RECORD_DECAY
            record.asked *= RECORD_DECAY
        record = self._records[self._way[question]]
        record.good += good
        record.asked += 1.0

    def _choose(self) -> Comparison | None:
        """The question of the most promising way that has one left."""
        if not self._beyond and self._triples.share == 0:
            return None
        unresolved = self._triples.draw_many(DRAWN_UNRESOLVED) if self._model else []
        sample = self._model.sample(self._pool(unresolved)) if self._model else None
        found = [(way, self._choice(way, sample, unresolved)) for way in self._records]
        choices = {way: choice for way, choice in found if choice is not None}
        if not choices:
            return None
        promise = {way: self._promise(way, choice) for way, choice in choices.items()}
        way = max(promise, key=promise.__getitem__)
        choice = choices[way]
        question = Comparison(KIND_OF[way], choice.examples, other_than_known=self._other)
        self._way[question] = way
        self._asked.add((question.kind, choice.examples))
        if self._model is not None and sample is not None and choice.places is not None:
            self._number[question] = self._model.record_question(sample, question.kind, choice.places, choice.mass)
        if question.kind is Kind.TWO_OF_THREE:
            self._triples.retire(choice.examples)
        return question

    def _promise(self, way: str, choice: Choice) -> float:
        """The share of features that count in an answer of the greatest length, or a sample of what it may be."""
        record, expected = self._records[way], min(max(choice.promise, 0.001), 0.999)
        good = self._trust * expected + record.good
        bad = self._trust * (1 - expected) + record.asked - record.good
        return float(self._rng.beta(good, bad)) if self._thompson else good / (good + bad)

    def _pool(self, unresolved: list[Examples]) -> Places:
        """The examples on which features are sampled: all, or those of unresolved triples and some others."""
        if self._n <= MAX_POOL:
            return np.arange(self._n)
        wanted = np.unique(np.array(unresolved, np.intp))
        others = self._rng.choice(self._n, MAX_POOL, replace=False)
        return np.concatenate([wanted, others[~np.isin(others, wanted)]])[:MAX_POOL]

    def _choice(self, way: str, sample: FeatureSample | None, unresolved: list[Examples]) -> Choice | None:
        kind, pool = KIND_OF[way], np.arange(self._n) if sample is None else sample.pool
        if way in ("near", "far"):
            if sample is None:
                unresolved = self._triples.draw_many(DRAWN_BY_LIKENESS)
            drawn = unresolved or self._random(kind, DRAWN_BY_LIKENESS, pool)
            sign = 1 if way == "near" else -1
            drawn = sorted(drawn, key=lambda examples: sign * self._differences(examples))[:1]
        elif way == "unresolved":
            drawn = unresolved if sample is not None else self._triples.draw_many(1)
        else:
            drawn = self._random(kind, DRAWN if sample is not None else 1, pool)
            drawn += unresolved if way == "triple" else []
        if sample is None or not drawn:
            return Choice(drawn[0]) if drawn else None
        return _most_promising(kind, drawn, sample)

    def _differences(self, examples: Examples) -> int:
        """How many known labels differ, over all pairs of these examples."""
        rows = np.array([labels[list(examples)] for labels in self._labels.values()]).reshape(-1, len(examples)).T
        pairs = combinations(rows, 2)
        return sum(int(((x != y) & (x != UNKNOWN) & (y != UNKNOWN)).sum()) for x, y in pairs)

    def _random(self, kind: Kind, wanted: int, pool: Places) -> list[Examples]:
        """Up to `wanted` comparisons of that kind that were not asked; none if all, or nearly all, were."""
        size = SIZE[kind]
        drawn: dict[Examples, None] = {}
        for row in np.sort(
            pool[self._rng.integers(pool.size, size=(max(MIN_RANDOM_TRIES, wanted), size))], axis=1
        ).tolist():
            examples = tuple(row)
            if len(set(examples)) == size and (kind, examples) not in self._asked:
                drawn[examples] = None
            if len(drawn) == wanted:
                break
        if not drawn and comb(self._n, size) <= MAX_ENUMERATED:
            every = combinations(range(self._n), size)
            fresh = [examples for examples in every if (kind, examples) not in self._asked]
            return [fresh[i] for i in self._rng.permutation(len(fresh))[:wanted]]
        return list(drawn)


def _most_promising(kind: Kind, drawn: list[Examples], sample: FeatureSample) -> Choice:
    place = np.argsort(sample.pool)
    places = place[np.searchsorted(sample.pool, np.array(drawn, np.intp), sorter=place)]
    promise, mass = sample.promise(kind, places)
    if kind is not Kind.TWO_OF_THREE:
        promise *= NOT_TRIPLE_DISCOUNT
    best = int(promise.argmax())
    return Choice(drawn[best], float(promise[best]), places[best], float(mass[best]))
