"""Runs a strategy against a simulated crowd and a known truth, all in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

import numpy as np

from discovery.metrics import g_curve, interesting_and_distinct, queries_to_reach
from discovery.questions import UNKNOWN, Comparison, Labels, Strategy
from discovery.simulation.crowds import Crowd, Matrix


@dataclass
class Rehearsal:
    """What was asked and learned, one entry per query."""

    n: int
    questions: list[Comparison] = field(default_factory=list)
    answers: list[int | None] = field(default_factory=list)  # the column that was named, None for NONE
    labels: list[Labels | None] = field(default_factory=list)  # of the feature, where a query found a new one
    unresolved: float = 1.0  # as the strategy reported it at the end

    def note(self, question: Comparison, column: int | None, labels: Labels | None) -> None:
        self.questions.append(question)
        self.answers.append(column)
        self.labels.append(labels)

    @property
    def queries(self) -> int:
        return len(self.questions)

    @property
    def columns(self) -> list[int]:
        """The different columns found, in the order of discovery."""
        return list(dict.fromkeys(column for column in self.answers if column is not None))

    @property
    def nones(self) -> int:
        return self.answers.count(None)

    @property
    def counts(self) -> list[bool]:
        """For each query whether it found a feature that is interesting and distinct."""
        flags = iter(interesting_and_distinct([labels for labels in self.labels if labels is not None]))
        return [labels is not None and next(flags) for labels in self.labels]

    def interesting_distinct(self, queries: int | None = None) -> int:
        """How many of the first `queries` queries (of all, by default) found an interesting and distinct feature."""
        return sum(self.counts[:queries])

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

    def __call__(self, truth: Labels, rng: np.random.Generator) -> Labels:
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
    voters: int = 1,
    labelling: Labelling = TRUTHFUL,
    until: int | None = None,
) -> Rehearsal:
    """Ask until `queries` are spent, the strategy has no question left, or `until` different columns are found.

    The answers of a round are learned in the order of its questions; a feature is labelled when it is first named.
    With several `voters` each of them is asked every question, and each time it is a query."""
    history = Rehearsal(len(truth))
    found: dict[int, Labels] = {}
    while history.queries < queries and (until is None or len(found) < until):
        asked = strategy.next_questions(min(batch, ceil((queries - history.queries) / voters)))
        if not asked:
            break
        known = tuple(found)  # all questions of a round list the same features
        for question in [question for question in asked for _ in range(voters)]:
            column = crowd.answer(question, rng, known)
            new = column is not None and column not in found
            if column is not None and new:
                found[column] = labelling(truth[:, column], rng)
            labels = None if column is None else found[column]
            history.note(question, column, labels if new else None)
            strategy.learn(question, None if column is None else f"feature {column}", labels)
    history.unresolved = strategy.unresolved
    return history
