"""Cells of a pool, which are its examples × features: their random order, which of them travel together, and what a
cheaper model says of them."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from models.oracle import Label
from models.predicted.labelling import Cells, Rows
from models.voting import Ballot
from sources import Example

PLAIN = 0.9  # how sure an answer counts whose model gives no probability


def random_order(examples: Sequence[Example], seed: int, number: str) -> Rows:
    """By contents and names: examples that are added or gone do not shuffle the others. `number` is random and known to
    the store alone: else whoever writes the data could place what disagrees behind the sample."""
    secret = f"{number}\n{seed}".encode()
    ranks = [
        hmac.digest(secret, f"{example.digest}\n{example.id}".encode("utf-8", "surrogatepass"), "sha256")
        for example in examples
    ]
    return np.array(sorted(range(len(examples)), key=ranks.__getitem__), np.intp)


def groups_of(cells: Cells, most: int) -> Iterator[tuple[Rows, Rows]]:
    """The cells as examples that want the same features, at most about so many cells each."""
    patterns, which = np.unique(cells, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        columns, rows = np.flatnonzero(pattern), np.flatnonzero(which.reshape(-1) == number)
        at_once = max(1, most // max(1, len(columns)))
        for start in range(0, len(rows) if len(columns) else 0, at_once):
            yield rows[start : start + at_once], columns


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


def leanings(labels: NDArray[np.int8], chances: NDArray[np.float64]) -> NDArray[np.float32]:
    """Towards yes or no, -1 to 1: by the probabilities where there are any, else by the labels."""
    plain = np.select([labels == 1, labels == 0], [PLAIN, 1 - PLAIN], 0.5)
    return (2 * np.where(np.isnan(chances), plain, chances) - 1).astype(np.float32)
