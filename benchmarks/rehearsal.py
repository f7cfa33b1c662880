"""Runs a strategy against a simulated crowd and a known truth, all in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from discovery.metrics import g_curve, interesting_and_distinct, queries_to_reach
from discovery.questions import UNKNOWN, Comparison, HearsAnswers, Labels, Strategy
from discovery.simulation.crowds import Crowd, Matrix


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


@dataclass(frozen=True)
class Labelling:
    """How a feature is labelled: the majority of `votes` votes per example, each wrong with probability `flip`."""

    flip: float = 0.0
    votes: int = 1
    missing: float = 0.0  # share of labels that stay unknown

    def __call__(self, matrix: Matrix, column: int, rng: np.random.Generator) -> Labels:
        truth = matrix[:, column]
        labels = truth.copy()
        if self.flip:
            wrong = rng.binomial(self.votes, self.flip, size=truth.shape)
            known = truth != UNKNOWN
            labels[known & (2 * wrong > self.votes)] ^= 1
            labels[2 * wrong == self.votes] = UNKNOWN
        if self.missing:
            labels[rng.random(truth.shape) < self.missing] = UNKNOWN
        return labels


TRUTHFUL = Labelling()


def rehearse(
    strategy: Strategy,
    crowd: Crowd,
    truth: Matrix,
    queries: int,
    rng: np.random.Generator,
    *,
    batch: int = 1,
    one_by_one: bool = False,
    labelling: Labelling = TRUTHFUL,
    until: int | None = None,
    most: int = 1,
) -> Rehearsal:
    """Ask until `queries` are spent, the strategy has no question left, or `until` different columns are found.

    The answers of a round are learned in the order of its questions; a feature is labelled when it is first named.
    With `one_by_one` each question is chosen when those before it are answered, and lists what they have named; else
    all of a round are chosen at a time, and list the same features.
    An answer names up to `most` features."""
    history = Rehearsal(len(truth))
    found: dict[int, Labels] = {}
    while history.queries < queries and (until is None or len(found) < until):
        size = min(batch, queries - history.queries)
        first = len(history.questions)
        for question, columns in _answers(strategy, crowd, rng, tuple(found), most, size, one_by_one=one_by_one):
            new = {column: labelling(truth, column, rng) for column in columns if column not in found}
            found |= new
            history.questions.append(question)
            history.named.append(columns)
            history.labels.append([*new.values()])
        for question, columns in zip(history.questions[first:], history.named[first:], strict=True):
            strategy.learn(question, [f"feature {column}" for column in columns], [found[column] for column in columns])
        if len(history.questions) == first:
            break
    history.unresolved = strategy.unresolved
    return history


def _answers(
    strategy: Strategy,
    crowd: Crowd,
    rng: np.random.Generator,
    known: tuple[int, ...],
    most: int,
    size: int,
    *,
    one_by_one: bool,
) -> Iterator[tuple[Comparison, tuple[int, ...]]]:
    """The questions of a round with the columns that are named."""
    for _ in range(size if one_by_one else 1):
        for question in strategy.next_questions(1 if one_by_one else size):
            columns = crowd.answers(question, rng, known, most)
            if one_by_one:
                known = tuple(dict.fromkeys([*known, *columns]))
            if one_by_one and isinstance(strategy, HearsAnswers):
                strategy.hear(question, len(columns))
            yield question, columns
