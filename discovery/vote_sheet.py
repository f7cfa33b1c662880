"""Every vote that one oracle cast: who said what of which example, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discovery.questions import UNKNOWN
from discovery.votes import majority_labels

NOBODY = -1


@dataclass(frozen=True, eq=False)
class VoteSheet:
    """All arrays are features × examples × votes; a vote that was refused, unreadable or never given is UNKNOWN."""

    said: NDArray[np.int8]
    who: NDArray[np.int32]  # place in `names`, or NOBODY where no vote was given
    probability: NDArray[np.float32]  # of yes, NaN where none was given
    names: tuple[str, ...]
    refused: NDArray[np.int64]  # features × examples: answers that were no vote

    @classmethod
    def empty(cls, features: int, examples: int, votes: int) -> VoteSheet:
        shape = (features, examples, votes)
        return cls(
            np.full(shape, UNKNOWN, np.int8),
            np.full(shape, NOBODY, np.int32),
            np.full(shape, np.nan, np.float32),
            (),
            np.zeros(shape[:2], np.int64),
        )

    @cached_property
    def yes(self) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = (self.said == 1).sum(-1)
        return counts

    @cached_property
    def no(self) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = (self.said == 0).sum(-1)
        return counts

    @cached_property
    def labels(self) -> NDArray[np.int8]:
        """The majority, features × examples."""
        return majority_labels(self.yes, self.no)

    @property
    def most_votes(self) -> int:
        """The most that any label has."""
        return int((self.yes + self.no).max(initial=0))

    @cached_property
    def chances(self) -> NDArray[np.float64]:
        """Of yes, features × examples: the mean of the probabilities, else the share of two votes or more; NaN where
        there is neither."""
        given = ~np.isnan(self.probability) & (self.said != UNKNOWN)
        counts = given.sum(-1)
        sums = np.where(given, self.probability, 0.0).sum(-1, dtype=np.float64)
        cast = self.yes + self.no
        shares = np.divide(self.yes, cast, out=np.full(cast.shape, np.nan), where=cast > 1)
        means: NDArray[np.float64] = np.divide(sums, counts, out=shares, where=counts > 0)
        return means

    @property
    def gives_probabilities(self) -> bool:
        return bool((~np.isnan(self.probability)).any())

    @cached_property
    def named(self) -> bool:
        """Whether votes are told apart by who gave them. A model that votes under one name is told apart by the
        number of the vote."""
        known = np.sort(np.where(self.who == NOBODY, -1 - np.arange(self.who.shape[-1]), self.who), axis=-1)
        return not bool((np.diff(known, axis=-1) == 0).any())

    @property
    def workers(self) -> tuple[str, ...]:
        return self.names if self.named else tuple(f"vote {place + 1}" for place in range(self.said.shape[-1]))

    def by_worker(self, feature: int) -> NDArray[np.int8]:
        """Examples × workers."""
        if not self.named:
            as_given: NDArray[np.int8] = self.said[feature]
            return as_given
        table = np.full((self.said.shape[1], len(self.names)), UNKNOWN, np.int8)
        rows, places = np.nonzero(self.who[feature] != NOBODY)
        table[rows, self.who[feature, rows, places]] = self.said[feature, rows, places]
        return table
