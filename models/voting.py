"""Labels by vote: a Panel asks until the majority of each label is decided, a Poll asks for every planned vote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Labels, VoteSheet, majority_labels, votes_to_ask
from twothirds.models.oracle import (
    USABLE,
    Answer,
    AnswersPending,
    BudgetExhausted,
    Chances,
    Compare,
    ComputesLabels,
    Feature,
    Halted,
    Label,
    Money,
    Oracle,
    OracleError,
    OracleUnavailable,
    Question,
    Same,
    Verdict,
)
from twothirds.sources import Example

if TYPE_CHECKING:
    from twothirds.models.cached import CachedOracle

ENDINGS = (BudgetExhausted, AnswersPending, OracleUnavailable, Halted)  # what was answered counts all the same

Counts = NDArray[np.int64]


@dataclass
class Ballot:
    """The votes on one feature, example by example."""

    feature: Feature
    yes: Counts
    no: Counts
    abstained: Counts
    answers: list[Answer] = field(default_factory=list)

    @classmethod
    def empty(cls, feature: Feature, n: int) -> Ballot:
        return cls(feature, np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64))

    @property
    def cast(self) -> Counts:
        return self.yes + self.no + self.abstained

    @property
    def labels(self) -> Labels:
        return majority_labels(self.yes, self.no)

    def missing(self, votes: int) -> Counts:
        return votes_to_ask(self.yes, self.no, self.abstained, votes)

    def add(self, rows: Sequence[int] | NDArray[np.intp] | slice, part: Ballot) -> None:
        """The votes of a part of the examples, those of these rows."""
        for mine, theirs in ((self.yes, part.yes), (self.no, part.no), (self.abstained, part.abstained)):
            mine[rows] += theirs
        self.answers += part.answers

    def count(self, row: int, answer: Answer) -> None:
        verdict = answer.verdict
        side = self.yes if verdict is Verdict.YES else self.no if verdict is Verdict.NO else self.abstained
        side[row] += 1
        self.answers.append(answer)

    def votes_by(self, ids: Sequence[str]) -> dict[str, tuple[int, int, int, int]]:
        """By the ids of the examples: yes, no, refused, unreadable."""
        refused = Counter(
            answer.question.example.id
            for answer in self.answers
            if answer.verdict is Verdict.REFUSED and isinstance(answer.question, Label)
        )
        return {
            name: (int(yes), int(no), refused[name], int(abstained) - refused[name])
            for name, yes, no, abstained in zip(ids, self.yes, self.no, self.abstained, strict=True)
        }

    def join(self, first: int, part: Ballot) -> None:
        """Add the votes of a part of the examples, which begins with the row `first`."""
        self.add(slice(first, first + len(part.yes)), part)


@dataclass(frozen=True)
class Elicited:
    answers: list[Answer | None]  # in the order of the questions; None where it stopped before
    stopped: OracleError | None = None


@dataclass(frozen=True)
class Labelled:
    ballots: list[Ballot]  # in the order of the features
    stopped: OracleError | None = None


class Panel:
    """An oracle, the examples it is asked about, and the number of votes.

    Not a dataclass: Prefect would copy it, field by field, whenever it is passed to a task."""

    def __init__(
        self,
        oracle: Oracle,
        examples: Sequence[Example],
        votes: int,
        on_answer: Callable[[Answer], None] = lambda _: None,
    ) -> None:
        self.oracle = oracle
        self.examples = examples
        self.votes = votes
        self._on_answer = on_answer

    def part(self, rows: Sequence[int] | NDArray[np.intp]) -> Panel:
        """The same panel for the examples of these rows only."""
        return Panel(self.oracle, [self.examples[int(row)] for row in rows], self.votes, self._on_answer)

    def compare(self, questions: Sequence[Compare] | Sequence[Same]) -> Elicited:
        """Of examples, or of pairs of features."""
        answers: dict[Question, Answer] = {}
        stopped: OracleError | None = None
        try:
            for answer in self.oracle.ask(questions):
                self._on_answer(answer)
                answers[answer.question] = answer
        except ENDINGS as error:
            stopped = error
        return Elicited([answers.get(question) for question in questions], stopped)

    def label(self, features: Sequence[Feature]) -> Labelled:
        """Vote on every feature for every example; what was counted is returned even if the oracle stops."""
        return self.complete([Ballot.empty(feature, len(self.examples)) for feature in features])

    def complete(self, ballots: list[Ballot]) -> Labelled:
        """The same where some votes are counted already, of each label the first ones."""
        while places := self._next_votes(ballots):
            try:
                for answer in self.oracle.ask(places):
                    self._on_answer(answer)
                    ballot, row = places[answer.question]
                    ballot.count(row, answer)
            except ENDINGS as stopped:
                return Labelled(ballots, stopped)
        return Labelled(ballots)

    def _next_votes(self, ballots: list[Ballot]) -> dict[Question, tuple[Ballot, int]]:
        """Example by example, so that an oracle can group the features of one example."""
        cast = [ballot.cast for ballot in ballots]
        missing = np.array([ballot.missing(self.votes) for ballot in ballots])
        places: dict[Question, tuple[Ballot, int]] = {}
        for row in np.flatnonzero(missing.any(axis=0)).tolist():
            for place, ballot in enumerate(ballots):
                first = int(cast[place][row])
                for voter in range(first, first + int(missing[place, row])):
                    places[Label(ballot.feature, self.examples[row], voter)] = (ballot, row)
        return places


def stored_ballots(
    recorded: CachedOracle, features: Sequence[Feature], examples: Sequence[Example], votes: int
) -> list[Ballot]:
    """The votes that are kept, as far as they are needed, for `Panel.complete`: of each label up to the first vote that
    is not. They are counted all at once, and no answers are in the ballots."""
    ballots = [Ballot.empty(feature, len(examples)) for feature in features]
    for voter in range(votes):
        cast = np.array([ballot.cast for ballot in ballots])
        missing = np.array([ballot.missing(votes) for ballot in ballots])
        wanted = (cast == voter) & (missing > 0)
        rows = np.flatnonzero(wanted.any(axis=0)).tolist()
        chosen = recorded.keys.of_labels(features, [examples[row] for row in rows], voter)
        keys = [
            key for mask, of_row in zip(wanted.T[rows].tolist(), chosen, strict=True) for key in compress(of_row, mask)
        ]
        verdicts = recorded.stored_verdicts(keys)
        if not any(verdicts):
            break
        sides = np.zeros(wanted.shape, np.int8)
        sides.T[wanted.T] = [_SIDES[verdict] for verdict in verdicts]
        for ballot, of_feature in zip(ballots, sides, strict=True):
            ballot.yes += of_feature == _YES
            ballot.no += of_feature == _NO
            ballot.abstained += of_feature == _NEITHER
    return ballots


@dataclass(frozen=True)
class Computed:
    ballots: list[Ballot]  # without answers
    refused: Counts  # of each feature; other abstentions are unreadable
    chances: Chances | None  # means over the votes, examples × features; NaN without any


def computed_ballots(
    recorded: CachedOracle, oracle: ComputesLabels, features: Sequence[Feature], examples: Sequence[Example], votes: int
) -> Computed:
    """All the votes that are needed, computed by the oracle behind `recorded`, which counts them."""
    ballots = [Ballot.empty(feature, len(examples)) for feature in features]
    refused, sums = np.zeros(len(features), np.int64), None
    for voter in range(votes):
        wanted = np.stack([ballot.missing(votes) > 0 for ballot in ballots], axis=1)
        if not wanted.any():
            break
        computed = oracle.computed_votes(features, examples, voter, wanted)
        for ballot, asked, labels in zip(ballots, wanted.T, computed.labels.T, strict=True):
            ballot.yes += asked & (labels == 1)
            ballot.no += asked & (labels == 0)
            ballot.abstained += asked & (labels == UNKNOWN)
        refused += (wanted & computed.refused).sum(axis=0)
        if computed.chances is not None:
            sums = np.where(wanted, computed.chances, 0.0) + (0.0 if sums is None else sums)
    cast = np.stack([ballot.cast for ballot in ballots], axis=1)
    recorded.note_computed(int(cast.sum()))
    return Computed(ballots, refused, None if sums is None else sums / np.maximum(cast, 1))


_YES, _NO, _NEITHER, _NOT_STORED = 1, 2, 3, 0
_SIDES = dict.fromkeys(USABLE, _NEITHER) | {Verdict.YES.value: _YES, Verdict.NO.value: _NO, None: _NOT_STORED}
VALUES = {Verdict.YES: 1, Verdict.NO: 0}


class Poll(Panel):
    """Asks for every vote, decided or not, to compare voters."""

    def label(self, features: Sequence[Feature]) -> Labelled:
        """All votes on every feature and example. They are handed to `on_answer`; no ballots are returned."""
        questions = (
            Label(feature, example, voter)
            for example in self.examples
            for feature in features
            for voter in range(self.votes)
        )
        try:
            for answer in self.oracle.ask(questions):
                self._on_answer(answer)
        except ENDINGS as stopped:
            return Labelled([], stopped)
        return Labelled([])


class SheetWriter:
    """Fills a sheet answer by answer; answers themselves need not be kept."""

    def __init__(self, features: Sequence[Feature], ids: Sequence[str], votes: int) -> None:
        self._sheet = VoteSheet.empty(len(features), len(ids), votes)
        self._row_of = {name: row for row, name in enumerate(ids)}
        self._place_of = {feature: place for place, feature in enumerate(features)}
        self._names: dict[str, int] = {}
        self.cost: Money = 0  # of all answers, those from the store included
        self.seconds = 0.0
        self.answers = 0

    def write(self, answer: Answer) -> None:
        question = answer.question
        if not isinstance(question, Label):
            raise TypeError("a sheet holds labels only")
        feature, row = self._place_of[question.feature], self._row_of[question.example.id]
        self.cost += answer.cost
        self.seconds += answer.seconds
        self.answers += 1
        value = VALUES.get(answer.verdict)
        if value is None:
            self._sheet.refused[feature, row] += 1
            return
        place = (feature, row, question.voter)
        self._sheet.votes[place] = value
        self._sheet.who[place] = self._names.setdefault(answer.by, len(self._names))
        if answer.probability is not None:
            self._sheet.probability[place] = np.float32(answer.probability)

    def sheet(self) -> VoteSheet:
        made = self._sheet
        return VoteSheet(made.votes, made.who, made.probability, tuple(self._names), made.refused)


def mean_chances(ballots: Sequence[Ballot], examples: Sequence[Example]) -> NDArray[np.float64]:
    """Examples × features: the mean probability of yes over the votes that have one; NaN where none does."""
    place_of = {example.id: place for place, example in enumerate(examples)}
    sums, counts = np.zeros((2, len(examples), len(ballots)))
    for column, ballot in enumerate(ballots):
        for answer in ballot.answers:
            if answer.probability is not None and isinstance(answer.question, Label):
                place = place_of[answer.question.example.id]
                sums[place, column] += answer.probability
                counts[place, column] += 1
    means: NDArray[np.float64] = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means
