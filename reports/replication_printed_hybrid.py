"""Adaptive Hybrid as the paper prints it (Algorithm 2), mended only so far that it can run: what it misses.

Mended: a feature found by a pair question is queued and returned too, and the examples of a node that lie under none of
its known sub-features take part as one more representative. Not mended: nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery.crowds import Crowd, Matrix
from discovery.questions import Comparison, Kind
from discovery.rehearsal import rehearse
from discovery.strategies import make_strategy

EVERYTHING = -1  # the root, of which every example is a part


@dataclass
class PrintedHybrid:
    truth: Matrix
    crowd: Crowd
    theta: int
    rng: np.random.Generator

    def run(self) -> tuple[set[int], int]:
        """The columns found, and how many questions it took."""
        pairs = make_strategy("adaptive-pair", len(self.truth), self.rng)
        history = rehearse(pairs, self.crowd, self.truth, len(self.truth) ** 2, self.rng)
        known = set(history.columns)
        queue, queries = [EVERYTHING, *history.columns], history.queries
        while queue:
            queries += self._explore(queue.pop(0), known, queue)
        return known, queries

    def _explore(self, node: int, known: set[int], queue: list[int]) -> int:
        """Triples of representatives under `node` until θ NONEs in a row; what is found joins the queue."""
        queries = nones = 0
        offspring = self._representatives(node, known)
        while nones < self.theta and len(offspring) >= 3:
            triple = self.rng.choice(offspring, 3, replace=False)
            queries += 1
            named = self.crowd.answer(Comparison(Kind.TWO_OF_THREE, tuple(triple.tolist())), self.rng)
            nones = nones + 1 if named is None else 0
            if named is not None and named not in known:
                known.add(named)
                queue.append(named)
                offspring = self._representatives(node, known)
        return queries

    def _representatives(self, node: int, known: set[int]) -> NDArray[np.intp]:
        """One example of each largest known feature right under the node, and one of those under none."""
        inside = np.ones(len(self.truth), np.bool_) if node == EVERYTHING else self.truth[:, node] == 1
        sets = [self.truth[:, column] == 1 for column in known]
        below = [members for members in sets if not (members & ~inside).any() and members.sum() < inside.sum()]
        largest = [
            members
            for members in below
            if not any((other & members).sum() == members.sum() < other.sum() for other in below)
        ]
        covered = np.logical_or.reduce([*largest, np.zeros(len(inside), np.bool_)])
        groups = [*largest, inside & ~covered]
        return np.array([self.rng.choice(np.flatnonzero(group)) for group in groups if group.any()], np.intp)
