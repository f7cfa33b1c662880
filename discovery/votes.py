"""The majority of several votes on a label, asked for only until it is decided, and the table of an oracle's votes.

Section 7 of the paper takes five votes. A vote is yes, no or an abstention (a refusal, an unreadable reply). An
abstention uses up a planned vote and counts for neither side, so a majority that stops when decided always equals the
majority of all the planned votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twothirds.discovery.questions import UNKNOWN, Labels

Counts = NDArray[np.int64]


def majority(votes: Sequence[bool | None], planned: int) -> int | None:
    """1, 0 or UNKNOWN once the votes yet to come cannot change it, else None. None in `votes` is an abstention."""
    yes, no, abstained = votes.count(True), votes.count(False), votes.count(None)
    if not bool(decided(yes, no, abstained, planned)):
        return None
    return int(majority_labels(yes, no))


def decided(yes: ArrayLike, no: ArrayLike, abstained: ArrayLike, planned: ArrayLike) -> NDArray[np.bool_]:
    """Where the lead is larger than the votes left, or no vote is left."""
    lead, left = _lead_and_left(yes, no, abstained, planned)
    done: NDArray[np.bool_] = (lead > left) | (left == 0)
    return done


def votes_to_ask(yes: ArrayLike, no: ArrayLike, abstained: ArrayLike, planned: ArrayLike) -> Counts:
    """The fewest further votes that could decide each label: 0 where it is decided, never more than are planned."""
    lead, left = _lead_and_left(yes, no, abstained, planned)
    fewest = np.minimum((left - lead) // 2 + 1, left)
    return np.where(decided(yes, no, abstained, planned), 0, fewest)


def majority_labels(yes: ArrayLike, no: ArrayLike) -> Labels:
    """1 where yes leads, 0 where no leads, UNKNOWN on a tie, and where all votes are abstentions."""
    lead = np.asarray(yes, np.int64) - np.asarray(no, np.int64)
    return np.select([lead > 0, lead < 0], [np.int8(1), np.int8(0)], np.int8(UNKNOWN)).astype(np.int8)


def _lead_and_left(yes: ArrayLike, no: ArrayLike, abstained: ArrayLike, planned: ArrayLike) -> tuple[Counts, Counts]:
    for_it, against, neither, total = (np.asarray(counts, np.int64) for counts in (yes, no, abstained, planned))
    left = total - for_it - against - neither
    if bool((left < 0).any()):
        raise ValueError(f"more votes were cast than the {int(total.max())} planned")
    return np.abs(for_it - against), left


NOBODY = -1


@dataclass(frozen=True, eq=False)
class VoteSheet:
    """All arrays are features × examples × votes; a vote that was refused, unreadable or never given is UNKNOWN."""

    votes: NDArray[np.int8]
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
        counts: NDArray[np.int64] = (self.votes == 1).sum(-1)
        return counts

    @cached_property
    def no(self) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = (self.votes == 0).sum(-1)
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
        given = ~np.isnan(self.probability) & (self.votes != UNKNOWN)
        counts = given.sum(-1)
        sums = np.where(given, self.probability, 0.0).sum(-1, dtype=np.float64)
        cast = self.yes + self.no
        shares = np.divide(self.yes, cast, out=np.full(cast.shape, np.nan), where=cast > 1)
        means: NDArray[np.float64] = np.divide(sums, counts, out=shares, where=counts > 0)
        return means

    @cached_property
    def named(self) -> bool:
        """Whether no voter's name occurs twice on one label. A model votes under one name: its votes are numbered."""
        known = np.sort(np.where(self.who == NOBODY, -1 - np.arange(self.who.shape[-1]), self.who), axis=-1)
        return not bool((np.diff(known, axis=-1) == 0).any())

    @property
    def workers(self) -> tuple[str, ...]:
        return self.names if self.named else tuple(f"vote {place + 1}" for place in range(self.votes.shape[-1]))

    def by_worker(self, feature: int) -> NDArray[np.int8]:
        """Examples × workers."""
        if not self.named:
            as_given: NDArray[np.int8] = self.votes[feature]
            return as_given
        table = np.full((self.votes.shape[1], len(self.names)), UNKNOWN, np.int8)
        rows, places = np.nonzero(self.who[feature] != NOBODY)
        table[rows, self.who[feature, rows, places]] = self.votes[feature, rows, places]
        return table
