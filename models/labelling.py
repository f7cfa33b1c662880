"""The one way to put labels: the votes on each are looked up, computed or asked until its majority is decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import NOBODY, UNKNOWN, Labels, VoteSheet, majority_labels, votes_to_ask
from twothirds.models.cached import CachedOracle
from twothirds.models.crowd import Asks
from twothirds.models.oracle import (
    Answer,
    AnswersPending,
    BudgetExhausted,
    Compare,
    Feature,
    Halted,
    Label,
    Money,
    OracleError,
    OracleUnavailable,
    Question,
    Same,
    Verdict,
)
from twothirds.sources import Example

LABELS_AT_ONCE = 8_192  # in one batch: a task costs tens of milliseconds, and what is in flight is held in memory
STOPS = (BudgetExhausted, AnswersPending, OracleUnavailable, Halted)  # what was answered counts all the same
VALUES = {Verdict.YES: 1, Verdict.NO: 0}

Counts = NDArray[np.int64]
Rows = Sequence[int] | NDArray[np.intp]


class LabelBatch:
    """Every feature for every example, by so many votes. A plain object: Prefect would copy a dataclass field by field.

    With `every`, votes are asked that cannot change a majority any more. Where the answers themselves are not
    `wanted`, those that are stored or can be computed are only counted."""

    def __init__(
        self,
        examples: Sequence[Example],
        features: Sequence[Feature],
        votes: int,
        *,
        every: bool = False,
        wanted: bool = True,
        on_answer: Callable[[Answer], None] | None = None,
    ) -> None:
        self.examples, self.features, self.votes = examples, tuple(features), votes
        self.every, self.wanted, self.on_answer = every, wanted, on_answer


def batches_of(examples: Sequence[Example], features: int, votes: int, least: int = 0) -> Iterator[slice]:
    """The examples in parts of which all labels are put together, at least about `least` labels."""
    step = max(1, max(LABELS_AT_ONCE, least) // max(1, features * votes))
    return (slice(first, first + step) for first in range(0, len(examples), step))


@dataclass(eq=False)
class Votes:
    """Arrays are features × examples, and then one place for each vote; a vote that was not given, or is no yes and no
    no, is UNKNOWN."""

    features: tuple[Feature, ...]
    value: Labels
    by: NDArray[np.int32]  # whose place in `names` it is, or NOBODY
    probability: NDArray[np.float32]  # of yes, NaN where none is known
    abstained: Counts  # features × examples: votes that were refused or unreadable
    names: dict[str, int] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)  # where they were wanted
    notes: Counter[tuple[Verdict, str]] = field(default_factory=Counter)  # votes by what was said, and why not
    asked: int = 0
    stored: int = 0
    cost: Money = 0
    stopped: OracleError | None = None

    @classmethod
    def empty(cls, features: Sequence[Feature], examples: int, votes: int) -> Votes:
        shape = (len(features), examples, votes)
        return cls(
            features=tuple(features),
            value=np.full(shape, UNKNOWN, np.int8),
            by=np.full(shape, NOBODY, np.int32),
            probability=np.full(shape, np.nan, np.float32),
            abstained=np.zeros(shape[:2], np.int64),
        )

    @property
    def yes(self) -> Counts:
        counts: Counts = (self.value == 1).sum(axis=-1)
        return counts

    @property
    def no(self) -> Counts:
        counts: Counts = (self.value == 0).sum(axis=-1)
        return counts

    @property
    def cast(self) -> Counts:
        return self.yes + self.no + self.abstained

    @property
    def missing(self) -> Counts:
        """The fewest further votes that could decide each label."""
        return votes_to_ask(self.yes, self.no, self.abstained, self.value.shape[-1])

    @property
    def labels(self) -> Labels:
        """The majority so far."""
        return majority_labels(self.yes, self.no)

    @property
    def decided(self) -> Labels:
        """The labels whose majority no vote can change; the others are UNKNOWN."""
        return np.where(self.missing == 0, self.labels, np.int8(UNKNOWN))

    @property
    def chances(self) -> NDArray[np.float64]:
        """Of yes: the mean over the votes that tell one, NaN where none does."""
        known = ~np.isnan(self.probability)
        sums, counts = np.where(known, self.probability, 0.0).sum(axis=-1, dtype=np.float64), known.sum(axis=-1)
        means: NDArray[np.float64] = np.divide(sums, counts, out=np.full(counts.shape, np.nan), where=counts > 0)
        return means

    @property
    def sheet(self) -> VoteSheet:
        return VoteSheet(self.value, self.by, self.probability, tuple(self.names), self.abstained)

    @cached_property
    def _by_feature(self) -> dict[Feature, list[Answer]]:
        answers = dict[Feature, list[Answer]]()
        for answer in self.answers:
            if isinstance(answer.question, Label):
                answers.setdefault(answer.question.feature, []).append(answer)
        return answers

    def of(self, rows: slice) -> Votes:
        """On these examples; all answers must be about them."""
        return replace(
            self,
            value=self.value[:, rows],
            by=self.by[:, rows],
            probability=self.probability[:, rows],
            abstained=self.abstained[:, rows],
        )

    def answers_on(self, feature: Feature) -> list[Answer]:
        """Of a table that grows no more."""
        return self._by_feature.get(feature, [])

    def count(self, place: int, row: int, answer: Answer) -> None:
        """One more vote, on the feature and the example of these places."""
        self.notes[answer.verdict, answer.note] += 1
        if answer.cached:
            self.stored += 1
        else:
            self.asked += 1
            self.cost += answer.cost
        value = VALUES.get(answer.verdict)
        if value is None or not isinstance(answer.question, Label):
            self.abstained[place, row] += 1
            return
        cell = (place, row, answer.question.voter)
        self.value[cell], self.by[cell] = value, self.place_of(answer.by)
        if answer.probability is not None:
            self.probability[cell] = answer.probability

    def add(self, part: Votes, rows: Rows, places: Rows | None = None) -> None:
        """Enter the votes on some features for some examples, of which none was given before."""
        columns = range(len(self.features)) if places is None else places
        cells = np.ix_(np.asarray(columns, np.intp), np.asarray(rows, np.intp))
        voters = np.array([*(self.place_of(name) for name in part.names), NOBODY], np.int32)
        self.value[cells], self.by[cells] = part.value, voters[part.by]
        self.probability[cells], self.abstained[cells] = part.probability, part.abstained
        self.answers += part.answers
        self.notes += part.notes
        self.asked, self.stored, self.cost = self.asked + part.asked, self.stored + part.stored, self.cost + part.cost
        self.stopped = self.stopped or part.stopped

    def place_of(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))


def collect_votes(asked: Asks, batch: LabelBatch) -> Votes:
    """What was counted is returned even if the oracle stops."""
    votes = Votes.empty(batch.features, len(batch.examples), batch.votes)
    try:
        if asked.labeller is not None and not (batch.wanted or batch.every):
            _compute(asked.labeller, batch, votes)
            _look_up(asked.labeller, batch, votes)
        while places := _next_votes(batch, votes):
            for answer in asked.ask(places):
                place, row = places[answer.question]
                votes.count(place, row, answer)
                if batch.wanted:
                    votes.answers.append(answer)
                if batch.on_answer is not None:
                    batch.on_answer(answer)
    except STOPS as stopped:
        votes.stopped = stopped
    return votes


def _next_votes(batch: LabelBatch, votes: Votes) -> dict[Question, tuple[int, int]]:
    """Example by example, so that an oracle can group the features of one example."""
    cast = votes.cast
    missing = batch.votes - cast if batch.every else votes.missing
    places: dict[Question, tuple[int, int]] = {}
    for row in np.flatnonzero(missing.any(axis=0)).tolist():
        for place, feature in enumerate(batch.features):
            first = int(cast[place, row])
            for voter in range(first, first + int(missing[place, row])):
                places[Label(feature, batch.examples[row], voter)] = (place, row)
    return places


def _look_up(oracle: CachedOracle, batch: LabelBatch, votes: Votes) -> None:
    """Count the votes that are stored, as far as they are needed: of each label up to the first vote that is not."""
    for voter in range(batch.votes):
        wanted = (votes.cast == voter) & (votes.missing > 0)
        rows = np.flatnonzero(wanted.any(axis=0)).tolist()
        chosen = oracle.keys.of_labels(batch.features, [batch.examples[row] for row in rows], voter)
        keys = [
            key for mask, of_row in zip(wanted.T[rows].tolist(), chosen, strict=True) for key in compress(of_row, mask)
        ]
        found = oracle.stored_votes(keys)
        if not any(found):
            return
        for verdict, count in Counter(stored["verdict"] for stored in found if stored).items():
            votes.notes[Verdict(verdict), ""] += count
            votes.stored += count
        said = [VALUES.get(stored["verdict"], UNKNOWN) if stored else UNKNOWN for stored in found]
        by = [votes.place_of(stored.get("by", "")) if stored else NOBODY for stored in found]
        probability = [stored.get("probability") if stored else None for stored in found]
        examples, features = np.nonzero(wanted.T)
        cells = features, examples, np.full(len(features), voter)
        votes.value[cells], votes.by[cells], votes.probability[cells] = said, by, np.array(probability, np.float32)


def _compute(oracle: CachedOracle, batch: LabelBatch, votes: Votes) -> None:
    """Count all votes that are needed, where the oracle can compute them."""
    computing = oracle.computing
    if computing is None:
        return
    me = votes.place_of(str(oracle.identity))
    for voter in range(batch.votes):
        wanted = votes.missing > 0
        if not wanted.any():
            return
        computed = computing.compute(batch.features, batch.examples, voter, wanted.T)
        labels, refused = computed.labels.T, wanted & computed.refused.T
        known = wanted & (labels != UNKNOWN)
        abstained = wanted & (labels == UNKNOWN)
        votes.value[..., voter][known], votes.by[..., voter][known] = labels[known], me
        votes.abstained += abstained
        if computed.chances is not None:
            votes.probability[..., voter][wanted] = computed.chances.T[wanted]
        votes.notes[Verdict.YES, ""] += int((labels[known] == 1).sum())
        votes.notes[Verdict.NO, ""] += int((labels[known] == 0).sum())
        for place in np.flatnonzero(abstained.any(axis=1)).tolist():
            why = computed.problems[place] if computed.problems else ""
            votes.notes[Verdict.REFUSED, why] += int(refused[place].sum())
            votes.notes[Verdict.UNREADABLE, why] += int((abstained[place] & ~refused[place]).sum())
        votes.asked += int(wanted.sum())
        oracle.note_computed(int(wanted.sum()))


@dataclass(frozen=True)
class Elicited:
    answers: list[Answer | None]  # in the order of the questions; None where it stopped before
    stopped: OracleError | None = None


def collect_answers(asked: Asks, questions: Sequence[Compare] | Sequence[Same]) -> Elicited:
    """To comparisons of examples, or of pairs of features; what came is returned even if the oracle stops."""
    answers: dict[Question, Answer] = {}
    stopped: OracleError | None = None
    try:
        for answer in asked.ask(questions):
            answers[answer.question] = answer
    except STOPS as error:
        stopped = error
    return Elicited([answers.get(question) for question in questions], stopped)
