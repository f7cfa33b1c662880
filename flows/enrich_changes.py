"""What an enrichment did to the rows of its table."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from enum import StrEnum

from models.oracle import Money, OracleError
from sources.dataset import Quarantined
from store.ledger.costs import Totals

TOLD = 20  # ids named in a summary: the first by name, so that it says the same whoever labelled which part


class Why(StrEnum):
    ADDED = "added"  # an id and a content that the table has not
    CHANGED = "changed"  # a known id with another content
    RENAMED = "renamed"  # a known content under another id: nothing is asked
    FILLED = "filled"  # known, but some labels are missing


@dataclass
class Changes:
    ids: dict[Why, list[str]] = field(default_factory=lambda: {why: [] for why in Why})  # the first few of each
    counts: dict[Why, int] = field(default_factory=lambda: dict.fromkeys(Why, 0))
    unchanged: int = 0
    gone: int = 0  # in the table, but no longer in the data set
    left_out: list[Quarantined] = field(default_factory=list)  # the first few
    left_out_count: int = 0
    rows: list[int] = field(default_factory=list)  # of the table, written by this run
    new_content: list[int] = field(default_factory=list)  # of these, added or changed
    flips: dict[str, int] = field(default_factory=dict)  # labels that a changed content has turned over
    paid_calls: int = 0
    cached_calls: int = 0
    cost: Money = 0
    unknown_calls: int = 0  # sent and never answered: nobody knows whether they were charged
    unknown: Money = 0  # the most that those may have cost
    stopped: OracleError | None = None
    failure: Exception | None = None

    @property
    def complete(self) -> bool:
        return self.stopped is None and self.failure is None

    def count(self, why: Why, name: str) -> None:
        self.counts[why] += 1
        insort(self.ids[why], name)
        del self.ids[why][TOLD:]

    def take_from_books(self, totals: Totals) -> None:
        """What batches that were tried again, or whose worker was lost, have cost is known to the store alone."""
        self.paid_calls, self.cached_calls, self.cost = totals.paid_calls, totals.cached_calls, totals.paid
        self.unknown_calls, self.unknown = totals.unknown_calls, totals.unknown

    def leave_out(self, one: Quarantined) -> None:
        self.left_out_count += 1
        insort(self.left_out, one, key=lambda left: (left.id, left.reason))
        del self.left_out[TOLD:]
