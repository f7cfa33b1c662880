"""What a cheaper model has answered first, as numbers that classifiers learn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.oracle import Label
from models.voting import Ballot
from sources import Example

PLAIN = 0.9  # how sure an answer counts whose model gives no probability
LIMIT = 0.001  # of a probability


def mean_chances(ballots: Sequence[Ballot], examples: Sequence[Example]) -> NDArray[np.float64]:
    """Examples × features: the mean probability of yes over the votes that have one; NaN where none does."""
    place_of = {example.id: place for place, example in enumerate(examples)}
    sums, counts = np.zeros((2, len(examples), len(ballots)))
    for column, ballot in enumerate(ballots):
        for answer in ballot.answers:
            if answer.probability is not None and isinstance(answer.question, Label):
                place = place_of[answer.question.example.id]
                sums[place, column] += answer.probability
                counts[place, column] += 1
    means: NDArray[np.float64] = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means


def log_odds(labels: NDArray[np.int8], chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of yes: by the probabilities where there are any, else by the labels."""
    plain = np.select([labels == 1, labels == 0], [PLAIN, 1 - PLAIN], 0.5)
    likely = np.clip(np.where(np.isnan(chances), plain, chances), LIMIT, 1 - LIMIT)
    odds: NDArray[np.float64] = np.log(likely / (1 - likely))
    return odds
