"""Runs a strategy against a simulated crowd and a known truth, all in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from twothirds.discovery.metrics import g_curve, interesting_and_distinct, queries_to_reach
from twothirds.discovery.questions import Comparison, Labels, Strategy
from twothirds.discovery.simulation.crowds import Crowd, Matrix


@dataclass
class Rehearsal:
    """What was asked and learned, one entry per query."""

    n: int
    questions: list[Comparison] = field(default_factory=list)
    named: list[tuple[int, ...]] = field(default_factory=list)  # the columns, best first; none for NONE
    labels: list[list[Labels]] = field(default_factory=list)  # of the new features that each query found
    unresolved: float = 1.0  # as the strategy reported it at the end

    @property
    def queries(self) -> int:
        return len(self.questions)

    @property
    def answers(self) -> list[int | None]:
        """The column that each query named first, None for NONE."""
        return [columns[0] if columns else None for columns in self.named]

    @property
    def columns(self) -> list[int]:
        """The different columns found, in the order of discovery."""
        return self.found_by(self.queries)

    def found_by(self, queries: int) -> list[int]:
        """The different columns that the first so many queries found."""
        return list(dict.fromkeys(column for columns in self.named[:queries] for column in columns))

    @property
    def nones(self) -> int:
        return self.named.count(())

    def interesting_distinct(self, queries: int | None = None) -> int:
        """How many interesting and distinct features the first `queries` queries (all, by default) found."""
        return sum(interesting_and_distinct([labels for found in self.labels[:queries] for labels in found]))

    @property
    def g_curve(self) -> list[float]:
        """g after each query."""
        return g_curve(self.labels, self.n)

    def queries_to_reach(self, g: float) -> int | None:
        return queries_to_reach(self.g_curve, g)


Labeller = Callable[[Matrix, int, np.random.Generator], Labels]  # of a column of the truth


def true_labels(truth: Matrix, column: int, _rng: np.random.Generator) -> Labels:
    return truth[:, column].copy()


def rehearse(
    strategy: Strategy,
    crowd: Crowd,
    truth: Matrix,
    queries: int,
    rng: np.random.Generator,
    *,
    batch: int = 1,
    labelling: Labeller = true_labels,
    until: int | None = None,
    most: int = 1,
) -> Rehearsal:
    """Ask until `queries` are spent, the strategy has no question left, or `until` different columns are found.

    The `batch` questions of a round are chosen at a time and list the same features as known. Their answers, which name
    up to `most` features each, are learned in the order of the questions; a feature is labelled when it is first named.
    """
    history = Rehearsal(len(truth))
    found: dict[int, Labels] = {}
    while history.queries < queries and (until is None or len(found) < until):
        known = tuple(found)
        questions = strategy.next_questions(min(batch, queries - history.queries))
        if not questions:
            break
        answers = []
        for question in questions:
            columns = crowd.answers(question, rng, known, most)
            new = {column: labelling(truth, column, rng) for column in columns if column not in found}
            found |= new
            answers.append(columns)
            history.labels.append([*new.values()])
        history.questions += questions
        history.named += answers
        for question, columns in zip(questions, answers, strict=True):
            strategy.learn(question, [f"feature {column}" for column in columns], [found[column] for column in columns])
    history.unresolved = strategy.unresolved
    return history
