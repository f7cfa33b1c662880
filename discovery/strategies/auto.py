"""The default strategy: two of three, a pair or a tag, chosen by which is likely to find the next feature that counts.

Every question asks for a feature other than the known ones; one that is interesting and distinct counts. Of many random
comparisons of each kind the model in `hypothetical.py`, a posterior over the number of features left and a sample of
hypothetical features, picks the one expected to find the most features that count, a share p of the `most` that an
answer may hold. Then the kind is chosen whose estimate (TRUST · p + good) / (TRUST + asked) is highest: the mean of a
Beta distribution with p as prior mean, updated by the `good` shares of the `asked` questions of that kind, old ones
discounted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from discovery.metrics import DIFFERENCE, distinct, interesting
from discovery.questions import Comparison, Kind, Labels, StrategyError
from discovery.strategies.hypothetical import MAX_POOL, FeatureSample, HypotheticalFeatures, Places
from discovery.unresolved import UnresolvedTriples

Examples = tuple[int, ...]
SIZE = {Kind.TWO_OF_THREE: 3, Kind.PAIR: 2, Kind.TAG: 1}
DRAWN = 200  # comparisons of one kind of which the most promising is chosen
DRAWN_UNRESOLVED = 24  # triples among them that no known feature settles
MAX_ENUMERATED = 5_000  # comparisons of one kind that are listed when random tries find none that is new
NOT_TRIPLE_DISCOUNT = 0.8  # on the promise of a pair or a tag: features too rare to count are hard to foresee
RECORD_DECAY = 0.9  # weight of a query relative to the next one, in the record of a kind of question
TRUST = 32.0  # queries that a promise is worth


@dataclass
class TrackRecord:
    """How one kind of question did, older queries counting less."""

    good: float = 0.0
    asked: float = 0.0


@dataclass(frozen=True)
class Choice:
    """The best comparison of one kind, and what it promises."""

    examples: Examples
    promise: float
    places: Places  # of its examples in the sample's pool
    mass: float


class Auto:
    """`beyond`: go on when no triple is unresolved. `most` is how many features one answer may hold, `difference` the
    share of the examples in which a feature must differ to count."""

    def __init__(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        beyond: bool = True,
        most: int = 1,
        difference: float = DIFFERENCE,
    ) -> None:
        if n < 3:
            raise StrategyError(f"auto needs at least 3 examples, and there are {n}")
        self._n, self._rng, self._beyond, self._most, self._difference = n, rng, beyond, most, difference
        self._model = HypotheticalFeatures(n, rng, most, difference)
        self._triples = UnresolvedTriples(n, rng)
        self._records = {kind: TrackRecord() for kind in SIZE}
        self._labels: dict[str, Labels] = {}
        self._kept: list[Labels] = []
        self._asked: set[tuple[Kind, Examples]] = set()
        self._number: dict[Comparison, int] = {}  # by which the model knows a question that was asked
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
            self._model.record_known(labels, counts=self._add(feature, labels))

    def hear(self, question: Comparison, named: int) -> None:
        """The model then knows how much is left of what this question could bring out, though not yet which examples
        have it. A question that somebody else has put is not heard."""
        if (number := self._number.get(question)) is not None:
            self._model.record_named(number, named)

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        known_then = self._known_then.pop(question, frozenset(self._labels))
        if features and all(feature in self._labels and feature not in known_then for feature in features):
            return  # found by other questions of the same round: that says nothing about this kind of question
        new = {name: its for name, its in zip(features, labels, strict=True) if name not in self._labels}
        counting = [self._add(name, its_labels) for name, its_labels in new.items()]
        self._record(question.kind, sum(counting) / self._most)
        self._model.record_answer(self._number[question], len(features), [*new.values()], counting)

    def _add(self, feature: str, labels: Labels) -> bool:
        """A feature that is not known yet; whether it counts."""
        self._labels[feature] = labels
        self._triples.add(labels)
        counts = interesting(labels, self._difference) and distinct(labels, self._kept, self._difference)
        if counts:
            self._kept.append(labels)
        return counts

    def _record(self, kind: Kind, good: float) -> None:
        for record in self._records.values():
            record.good *= RECORD_DECAY
            record.asked *= RECORD_DECAY
        record = self._records[kind]
        record.good += good
        record.asked += 1.0

    def _choose(self) -> Comparison | None:
        """The question of the most promising kind that has one left."""
        if not self._beyond and self._triples.share == 0:
            return None
        unresolved = self._triples.draw_many(DRAWN_UNRESOLVED)
        sample = self._model.sample(self._pool(unresolved))
        candidates = {kind: self._drawn(kind, sample.pool) for kind in SIZE}
        candidates[Kind.TWO_OF_THREE] += unresolved
        choices = {kind: _most_promising(kind, drawn, sample) for kind, drawn in candidates.items() if drawn}
        if not choices:
            return None
        kind = max(choices, key=lambda kind: self._estimate(kind, choices[kind].promise))
        choice = choices[kind]
        question = Comparison(kind, choice.examples, other_than_known=True)
        self._asked.add((kind, choice.examples))
        self._number[question] = self._model.record_question(sample, kind, choice.places, choice.mass)
        if kind is Kind.TWO_OF_THREE:
            self._triples.retire(choice.examples)
        return question

    def _estimate(self, kind: Kind, promise: float) -> float:
        """The share of features that count in an answer of the greatest length."""
        record, expected = self._records[kind], min(max(promise, 0.001), 0.999)
        good = TRUST * expected + record.good
        bad = TRUST * (1 - expected) + record.asked - record.good
        return good / (good + bad)

    def _pool(self, unresolved: list[Examples]) -> Places:
        """The examples on which features are sampled: all, or those of unresolved triples and some others."""
        if self._n <= MAX_POOL:
            return np.arange(self._n)
        wanted = np.unique(np.array(unresolved, np.intp))
        others = self._rng.choice(self._n, MAX_POOL, replace=False)
        return np.concatenate([wanted, others[~np.isin(others, wanted)]])[:MAX_POOL]

    def _drawn(self, kind: Kind, pool: Places) -> list[Examples]:
        """Random comparisons of that kind that were not asked; none if all, or nearly all, were."""
        size = SIZE[kind]
        rows = np.sort(pool[self._rng.integers(pool.size, size=(DRAWN, size))], axis=1).tolist()
        drawn = [examples for examples in dict.fromkeys(map(tuple, rows)) if len(set(examples)) == size]
        drawn = [examples for examples in drawn if (kind, examples) not in self._asked]
        if not drawn and comb(self._n, size) <= MAX_ENUMERATED:
            every = combinations(range(self._n), size)
            fresh = [examples for examples in every if (kind, examples) not in self._asked]
            return [fresh[i] for i in self._rng.permutation(len(fresh))[:DRAWN]]
        return drawn


def _most_promising(kind: Kind, drawn: list[Examples], sample: FeatureSample) -> Choice:
    place = np.argsort(sample.pool)
    places = place[np.searchsorted(sample.pool, np.array(drawn, np.intp), sorter=place)]
    promise, mass = sample.promise(kind, places)
    if kind is not Kind.TWO_OF_THREE:
        promise *= NOT_TRIPLE_DISCOUNT
    best = int(promise.argmax())
    return Choice(drawn[best], float(promise[best]), places[best], float(mass[best]))
