"""Labels by vote: independent votes are asked until the majority of each label is decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discovery.questions import Labels
from discovery.votes import majority_labels, votes_to_ask
from models.oracle import (
    Answer,
    AnswersPending,
    BudgetExhausted,
    Compare,
    Feature,
    Label,
    Oracle,
    OracleError,
    OracleUnavailable,
    Question,
    Verdict,
)
from sources.example import Example

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
    def labels(self) -> Labels:
        return majority_labels(self.yes, self.no)

    def missing(self, votes: int) -> Counts:
        return votes_to_ask(self.yes, self.no, self.abstained, votes)

    def count(self, row: int, answer: Answer) -> None:
        verdict = answer.verdict
        side = self.yes if verdict is Verdict.YES else self.no if verdict is Verdict.NO else self.abstained
        side[row] += 1
        self.answers.append(answer)


@dataclass(frozen=True)
class Elicited:
    answers: list[Answer | None]  # in the order of the questions; None where it stopped before
    stopped: OracleError | None = None


@dataclass(frozen=True)
class Labelled:
    ballots: list[Ballot]  # in the order of the features
    stopped: OracleError | None = None


class Panel:
    """Who is asked, about which examples, and how many times. A plain object: Prefect looks into anything else."""

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

    def compare(self, questions: Sequence[Compare]) -> Elicited:
        answers: dict[Question, Answer] = {}
        stopped: OracleError | None = None
        try:
            for answer in self.oracle.ask(questions):
                self._on_answer(answer)
                answers[answer.question] = answer
        except (BudgetExhausted, AnswersPending, OracleUnavailable) as error:
            stopped = error
        return Elicited([answers.get(question) for question in questions], stopped)

    def label(self, features: Sequence[Feature]) -> Labelled:
        """Vote on every feature for every example; what was counted is returned even if something ends it."""
        ballots = [Ballot.empty(feature, len(self.examples)) for feature in features]
        while places := self._next_votes(ballots):
            try:
                for answer in self.oracle.ask(places):
                    self._on_answer(answer)
                    ballot, row = places[answer.question]
                    ballot.count(row, answer)
            except (BudgetExhausted, AnswersPending, OracleUnavailable) as stopped:
                return Labelled(ballots, stopped)
        return Labelled(ballots)

    def _next_votes(self, ballots: list[Ballot]) -> dict[Question, tuple[Ballot, int]]:
        """Example by example, so that an oracle that takes one example with many features meets them together."""
        cast = [ballot.yes + ballot.no + ballot.abstained for ballot in ballots]
        missing = np.array([ballot.missing(self.votes) for ballot in ballots])
        places: dict[Question, tuple[Ballot, int]] = {}
        for row in np.flatnonzero(missing.any(axis=0)).tolist():
            for place, ballot in enumerate(ballots):
                first = int(cast[place][row])
                for voter in range(first, first + int(missing[place, row])):
                    places[Label(ballot.feature, self.examples[row], voter)] = (ballot, row)
        return places
