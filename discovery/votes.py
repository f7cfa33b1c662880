"""The majority of several votes on one label, asked for no longer than needed (Section 7 of the paper takes five).

A vote is yes, no or an abstention (a refusal, an unreadable reply). An abstention uses up a planned vote and counts for
neither side, so a majority that stops when decided always equals the majority of all the planned votes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discovery.questions import UNKNOWN, Labels

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
    """1 where yes leads, 0 where no leads, UNKNOWN on a tie, which is also what is left when everybody abstains."""
    lead = np.asarray(yes, np.int64) - np.asarray(no, np.int64)
    return np.select([lead > 0, lead < 0], [np.int8(1), np.int8(0)], np.int8(UNKNOWN)).astype(np.int8)


def _lead_and_left(yes: ArrayLike, no: ArrayLike, abstained: ArrayLike, planned: ArrayLike) -> tuple[Counts, Counts]:
    for_it, against, neither, total = (np.asarray(counts, np.int64) for counts in (yes, no, abstained, planned))
    left = total - for_it - against - neither
    if bool((left < 0).any()):
        raise ValueError(f"more votes were cast than the {int(total.max())} planned")
    return np.abs(for_it - against), left
