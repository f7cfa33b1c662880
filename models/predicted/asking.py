"""What is asked of a pool, whatever is certified: examples to learn from, and the next of the random order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from discovery.statistics import Certificate
from models.predicted.classifier import Classifiers, Floats, fit
from models.predicted.pool import Ask, Cells, LabelPool, PredictedLabels, Table

UNSURE = 0.25  # of the examples that are learned from


class PoolAsking:
    def __init__(self, pool: LabelPool, ask: Ask, known: Table | None, *, leave: bool, whole_rows: bool) -> None:
        self.pool, self.leave, self._whole_rows = pool, leave, whole_rows
        self._ask = ask
        shape = (pool.size, pool.features)
        self.labels = np.full(shape, UNKNOWN, np.int8)
        self.asked = np.zeros(shape, np.bool_)
        if known is not None:
            self.labels[: len(known)], self.asked[: len(known)] = known, True

    def ask(self, cells: Cells) -> None:
        if cells.any():
            answers = self._ask(cells)
            self.labels[cells] = answers[cells]
            self.asked |= cells

    def learn(self, count: int) -> None:
        """Ask a random part, and what the classifiers of that part are least sure of; less what was asked before."""
        unsure = int(UNSURE * count)
        already = int(self.asked.all(axis=1).sum())
        self.ask(self.next_cells(max(0, count - unsure - already)))
        doubt = self.doubt(self.fitted()[0])
        doubt[self.asked] = -1
        self.ask(self.largest(doubt, unsure))

    def fitted(self) -> tuple[Classifiers, Floats]:
        return fit(self.pool.vectors, self.labels, self.pool.first)

    def chances(self, classifiers: Classifiers) -> Floats:
        return classifiers.chances(self.pool.vectors, self.pool.first)

    def doubt(self, classifiers: Classifiers) -> Floats:
        chances = self.chances(classifiers)
        return np.minimum(chances, 1 - chances)

    def next_cells(self, count: int) -> Cells:
        """The next examples of the random order that were not asked, of each feature."""
        chosen = np.zeros_like(self.asked)
        for feature in range(self.pool.features):
            left = self.pool.order[~self.asked[self.pool.order, feature]]
            chosen[left[:count], feature] = True
        return chosen

    def largest(self, doubt: Floats, count: int) -> Cells:
        """By whole examples, or feature by feature. Ties must not go by the random order: by it the sample is drawn
        from who is left."""
        chosen = np.zeros_like(self.asked)
        if self._whole_rows:
            doubt = np.broadcast_to(doubt.sum(axis=1, keepdims=True), doubt.shape)
        for feature in range(self.pool.features):
            chosen[np.argsort(-doubt[:, feature], kind="stable")[:count], feature] = True
        return chosen

    def rarer(self, before: Cells, guess: Cells) -> NDArray[np.int8]:
        """The answer of each feature that is rarer in what was asked before the sample; without that, among the
        predictions."""
        answered = before & (self.labels != UNKNOWN)
        yes = (answered & (self.labels == 1)).sum(axis=0)
        shares = np.where(answered.any(axis=0), yes / np.maximum(answered.sum(axis=0), 1), guess.mean(axis=0))
        rarer: NDArray[np.int8] = (shares < 0.5).astype(np.int8)
        return rarer

    def predicted(
        self, classifiers: Classifiers | None, cells: Cells, certificates: list[Certificate | None]
    ) -> PredictedLabels:
        """What was asked, and these cells by the classifiers."""
        chances = np.full(self.labels.shape, np.nan)
        if classifiers is not None:
            chances[cells] = self.chances(classifiers)[cells]
            self.labels[cells] = chances[cells] >= 0.5
        return PredictedLabels(self.labels, chances, certificates, classifiers, self.asked)

    def nothing_predicted(self, classifiers: Classifiers | None) -> PredictedLabels:
        """Everything else is asked, or left."""
        if not self.leave or classifiers is None:
            self.ask(~self.asked)
        return self.predicted(classifiers, np.zeros_like(self.asked), [None] * self.pool.features)
