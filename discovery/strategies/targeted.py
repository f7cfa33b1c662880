"""Features that predict a target, by questions about the examples that the features found so far predict worst.

A group question shows up to GROUP examples whose value is underestimated and as many whose value is overestimated,
drawn in proportion to the error: the very worst predicted are mostly those whose value is wrong. The prediction is a
ridge regression on the features found so far, each example predicted by a fit that leaves it out. An answer is a
feature that clearly more of one group have: it generalises the left-right question of Section 6, which asks for all and
none. Every UNGUIDED-th question, and the one after a group question in vain, is the unguided strategy's, so that
nothing is overlooked. Examples without a value, such as those held out for testing, are in no group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.questions import UNKNOWN, Comparison, HearsAnswers, Kind, Labels, Strategy, StrategyError
from twothirds.discovery.statistics import fit_ridge

Floats = NDArray[np.float64]
GROUP = 8  # examples on each side
UNGUIDED = 4
LEAST_WEIGHT = 1e-3  # of an example that is predicted well, relative to the worst one
TRIES = 20  # at groups that were not asked before
FEWEST = 2  # examples of a group


def target_outputs(values: NDArray[np.intp] | Floats, classes: int) -> Floats:
    """One column of 0 and 1 for each class, one in all for two classes, or a column of numbers scaled to unit variance.

    NaN and, of classes, negative positions are unknown."""
    if not classes:
        numbers = values.astype(np.float64)
        spread = float(np.nanstd(numbers))
        scaled: Floats = ((numbers - np.nanmean(numbers)) / (spread or 1.0))[:, None]
        return scaled
    wanted = range(1, 2) if classes == 2 else range(classes)
    outputs = np.stack([values == place for place in wanted], axis=1).astype(np.float64)
    outputs[values < 0] = np.nan
    return outputs


class Targeted:
    """`outputs` is what `target_outputs` returns for all `n` examples: rows that are NaN are in no group."""

    def __init__(self, unguided: Strategy, outputs: Floats, rng: np.random.Generator, group: int = GROUP) -> None:
        self._rows = np.flatnonzero(~np.isnan(outputs).any(axis=1))
        self._outputs = outputs[self._rows]
        spread = self._outputs.std(axis=0) if len(self._rows) else np.zeros(1)
        if len(self._rows) < 2 * FEWEST or not spread.all():
            raise StrategyError("the target has one value only on the examples that may be compared: name another one")
        self._unguided, self._rng, self._group = unguided, rng, group
        self._labels: dict[str, Labels] = {}
        self._asked: set[Comparison] = set()
        self._turn = 0
        self._unanswered = False

    @property
    def unresolved(self) -> float:
        return self._unguided.unresolved

    def next_questions(self, k: int) -> list[Comparison]:
        questions: list[Comparison] = []
        for _ in range(k):
            self._turn += 1
            unguided = self._unanswered or self._turn % UNGUIDED == 0
            self._unanswered = False
            grouped = None if unguided else self._groups()
            questions += [grouped] if grouped else self._unguided.next_questions(1)
        return list(dict.fromkeys(questions))

    def hear(self, question: Comparison, *, full: bool) -> None:
        if question.kind is not Kind.GROUPS and isinstance(self._unguided, HearsAnswers):
            self._unguided.hear(question, full=full)

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        new = {name: its for name, its in zip(features, labels, strict=True) if name not in self._labels}
        self._labels |= new
        if question.kind is not Kind.GROUPS:
            self._unguided.learn(question, features, labels)
            return
        self._unanswered = not new
        for feature, its_labels in new.items():
            self._unguided.know(feature, its_labels)

    def know(self, feature: str, labels: Labels) -> None:
        self._labels.setdefault(feature, labels)
        self._unguided.know(feature, labels)

    def _groups(self) -> Comparison | None:
        residuals = fit_ridge(self._matrix(), self._outputs).left_out
        for _ in range(TRIES):
            output = self._output(residuals)
            left, right = self._sides(residuals[:, output], self._outputs[:, output])
            question = Comparison(Kind.GROUPS, left, right, other_than_known=True)
            if question not in self._asked and len(left) >= FEWEST:
                self._asked.add(question)
                return question
        return None

    def _matrix(self) -> Floats:
        known = [labels[self._rows] for labels in self._labels.values()]
        matrix = np.array(known, np.float64).reshape(-1, len(self._rows)).T
        return np.where(matrix == UNKNOWN, np.nan, matrix)

    def _output(self, residuals: Floats) -> int:
        """The class that is asked about: the worse it is predicted, the more often."""
        error = (residuals**2).mean(axis=0) / self._outputs.var(axis=0)
        return int(self._rng.choice(len(error), p=error / error.sum()))

    def _sides(self, residuals: Floats, values: Floats) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Rows that are underestimated and rows that are overestimated, of one value and of another."""
        middle = (values.min() + values.max()) / 2
        binary = bool(np.isin(values, (values.min(), values.max())).all())
        high = np.flatnonzero(values > middle if binary else residuals > 0)
        low = np.flatnonzero(values < middle if binary else residuals < 0)
        size = min(self._group, len(high), len(low))
        left, right = high[self._drawn(residuals[high], size)], low[self._drawn(-residuals[low], size)]
        return tuple(sorted(self._rows[left].tolist())), tuple(sorted(self._rows[right].tolist()))

    def _drawn(self, errors: Floats, size: int) -> NDArray[np.intp]:
        """So many different places, each drawn in proportion to its error (Efraimidis and Spirakis 2006)."""
        weights = np.maximum(errors, 0) + LEAST_WEIGHT * np.abs(errors).max(initial=0) + 1e-9
        return np.argsort(self._rng.exponential(size=len(errors)) / weights)[:size]
