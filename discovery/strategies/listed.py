"""Questions from a list, e.g. those that people have answered already: what known features settle is not asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discovery.questions import Comparison, Labels, StrategyError, valid_columns


class Listed:
    """In the order of the list. With `beyond`, those that are settled follow when no other is left."""

    def __init__(self, questions: Sequence[Comparison], *, beyond: bool = False) -> None:
        if not questions:
            raise StrategyError("there is no recorded comparison of these examples: give another table or data set")
        self._open = list(dict.fromkeys(questions))
        self._total = len(self._open)
        self._settled: list[Comparison] = []
        self._beyond = beyond

    def __len__(self) -> int:
        return self._total

    @property
    def unresolved(self) -> float:
        return len(self._open) / self._total

    def next_questions(self, k: int) -> list[Comparison]:
        now, self._open = self._open[:k], self._open[k:]
        if self._beyond and len(now) < k:
            more = k - len(now)
            now, self._settled = [*now, *self._settled[:more]], self._settled[more:]
        return now

    def know(self, feature: str, labels: Labels) -> None:  # noqa: ARG002 (a name settles nothing)
        column = labels[:, None]
        settled = np.array([bool(valid_columns(column, one)[0]) for one in self._open], bool)
        self._settled += [one for one, done in zip(self._open, settled, strict=True) if done]
        self._open = [one for one, done in zip(self._open, settled, strict=True) if not done]

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:  # noqa: ARG002
        for feature, known in zip(features, labels, strict=True):
            self.know(feature, known)
