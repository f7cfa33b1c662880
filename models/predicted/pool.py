"""A pool of examples that want labels: what is asked of it, which cells travel together, and what became of it."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from discovery.statistics import Certificate
from models.oracle import Label
from models.predicted.classifier import Classifiers, Floats, fit
from models.voting import Ballot
from sources import Example

Cells = NDArray[np.bool_]  # examples × features
Table = NDArray[np.int8]  # of labels, the same shape
Ask = Callable[[Cells], Table]  # the oracle's labels of these cells, UNKNOWN where it gave none and elsewhere


@dataclass(frozen=True, eq=False)
class LabelPool:
    """Examples that want labels. `whole_rows`: one request carries all features of an example and is paid for the
    example, so that an example is asked about everything or nothing."""

    vectors: NDArray[np.float32]
    order: NDArray[np.intp]  # a random permutation of the examples
    features: int
    whole_rows: bool
    first: Floats | None = None  # log-odds of a cheaper model, examples × features

    @property
    def size(self) -> int:
        return len(self.order)


@dataclass(frozen=True, eq=False)
class StoredClassifiers:
    """Of an earlier pool, and which features they had a certificate for."""

    classifiers: Classifiers
    certified: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PredictedLabels:
    labels: Table
    chances: Floats  # of yes where a label is predicted, NaN elsewhere
    certificates: list[Certificate | None]  # None: nothing is predicted of the feature
    classifiers: Classifiers | None  # None: the pool is too small
    asked: Cells
    learned_anew: bool = True

    @property
    def predicted(self) -> Cells:
        return ~np.isnan(self.chances)

    @property
    def left(self) -> Cells:
        """Neither asked nor predicted."""
        return ~self.asked & ~self.predicted

    @property
    def kept(self) -> StoredClassifiers | None:
        """For the next pool; None where there is nothing that it could confirm."""
        certified = np.array([certificate is not None for certificate in self.certificates])
        return StoredClassifiers(self.classifiers, certified) if self.classifiers and certified.any() else None


def random_order(examples: Sequence[Example], seed: int, number: str) -> NDArray[np.intp]:
    """By contents and names: examples that are added or gone do not shuffle the others. `number` is random and known to
    the store alone: else whoever writes the data could place what disagrees behind the sample."""
    secret = f"{number}\n{seed}".encode()
    ranks = [
        hmac.digest(secret, f"{example.digest}\n{example.id}".encode("utf-8", "surrogatepass"), "sha256")
        for example in examples
    ]
    return np.array(sorted(range(len(examples)), key=ranks.__getitem__), np.intp)


UNSURE = 0.25  # of the examples that are learned from


class PoolAsking:
    """What is asked so far, and the labels that were given."""

    def __init__(self, pool: LabelPool, ask: Ask, known: Table | None, *, leave: bool) -> None:
        self.pool, self.leave, self._ask = pool, leave, ask
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

    def ask_rows(self, rows: NDArray[np.intp]) -> None:
        """About all features of which they were not asked."""
        cells = np.zeros_like(self.asked)
        cells[rows] = True
        self.ask(cells & ~self.asked)

    @property
    def asked_rows(self) -> NDArray[np.bool_]:
        """Examples that were asked about any feature."""
        rows: NDArray[np.bool_] = np.asarray(self.asked.any(axis=1))
        return rows

    def learn(self, count: int) -> None:
        """Ask a random part, and what the classifiers of that part are least sure of; less what was asked before."""
        unsure = int(UNSURE * count)
        left = self.pool.order[~self.asked_rows[self.pool.order]]
        self.ask_rows(left[: max(0, count - unsure - int(self.asked_rows.sum()))])
        doubt = self.doubt(self.fitted()[0]).sum(axis=1)
        doubt[self.asked_rows] = -1
        # Ties must not go by the random order: by it the sample is drawn from who is left.
        self.ask_rows(np.argsort(-doubt, kind="stable")[:unsure])

    def fitted(self) -> tuple[Classifiers, Floats]:
        return fit(self.pool.vectors, self.labels, self.pool.first)

    def chances(self, classifiers: Classifiers) -> Floats:
        return classifiers.chances(self.pool.vectors, self.pool.first)

    def doubt(self, classifiers: Classifiers) -> Floats:
        chances = self.chances(classifiers)
        return np.minimum(chances, 1 - chances)

    def rarer(self, guess: Cells) -> NDArray[np.int8]:
        """The answer of each feature that is rarer in what was asked; without that, among the predictions."""
        answered, yes = self.labels != UNKNOWN, (self.labels == 1).sum(axis=0)
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


def groups_of(cells: Cells, most: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The cells as examples that want the same features, at most about so many cells each."""
    patterns, which = np.unique(cells, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        columns, rows = np.flatnonzero(pattern), np.flatnonzero(which.reshape(-1) == number)
        at_once = max(1, most // max(1, len(columns)))
        for start in range(0, len(rows) if len(columns) else 0, at_once):
            yield rows[start : start + at_once], columns


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
