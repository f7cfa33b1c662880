"""Labels of features as an oracle that errs gives them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twothirds.discovery.questions import UNKNOWN, Labels
from twothirds.discovery.simulation.crowds import Matrix


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
