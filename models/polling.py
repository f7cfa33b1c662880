"""Every planned vote, decided or not: what is wanted is how voters differ, not only what most of them say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discovery.vote_sheet import VoteSheet
from models.oracle import (
    Answer,
    AnswersPending,
    BudgetExhausted,
    Feature,
    Label,
    Money,
    OracleUnavailable,
    Verdict,
)
from models.voting import Labelled, Panel

VALUES = {Verdict.YES: 1, Verdict.NO: 0}


class Poll(Panel):
    def label(self, features: Sequence[Feature]) -> Labelled:
        """All votes on every feature and example. They are handed to `on_answer`; no ballots are returned."""
        questions = (
            Label(feature, example, voter)
            for feature in features
            for example in self.examples
            for voter in range(self.votes)
        )
        try:
            for answer in self.oracle.ask(questions):
                self._on_answer(answer)
        except (BudgetExhausted, AnswersPending, OracleUnavailable) as stopped:
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
        self._sheet.said[place] = value
        self._sheet.who[place] = self._names.setdefault(answer.by, len(self._names))
        if answer.probability is not None:
            self._sheet.probability[place] = np.float32(answer.probability)

    def sheet(self) -> VoteSheet:
        made = self._sheet
        return VoteSheet(made.said, made.who, made.probability, tuple(self._names), made.refused)
