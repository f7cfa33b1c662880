"""What a run changes in its table, and what that costs."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from enum import StrEnum

from models import Money, OracleError, Unlike
from reports.enrichment import Cells
from reports.run import UnusableTally
from sources import Quarantined
from store.ledger import Totals

MAX_IDS = 20  # ids named in a summary: the first by name


class ChangeKind(StrEnum):
    ADDED = "added"  # an id and a content that the table has not
    CHANGED = "changed"  # a known id with another content
    RENAMED = "renamed"  # a known content under another id: nothing is asked
    FILLED = "filled"  # known, but some labels are missing


@dataclass
class Changes:
    # The first few ids of each kind.
    ids: dict[ChangeKind, list[str]] = field(default_factory=lambda: {kind: [] for kind in ChangeKind})
    counts: dict[ChangeKind, int] = field(default_factory=lambda: dict.fromkeys(ChangeKind, 0))
    unchanged: int = 0
    gone: int = 0  # in the table, but no longer in the data set
    left_out: list[Quarantined] = field(default_factory=list)  # the first few
    left_out_count: int = 0
    rows: list[int] = field(default_factory=list)  # of the table, written by this run
    new_content: list[int] = field(default_factory=list)  # of these, added or changed
    cells: list[Cells] = field(default_factory=list)  # the labels of these rows that were asked or predicted now
    dropped: list[tuple[str, str]] = field(default_factory=list)  # id and digest of rows that are gone, on request
    flips: dict[str, int] = field(default_factory=dict)  # labels that a changed content has turned over
    paid_calls: int = 0
    cached_calls: int = 0
    cost: Money = 0
    unknown_calls: int = 0  # sent and never answered: the provider may or may not have charged them
    unknown: Money = 0  # the most that those may have cost
    remarks: list[str] = field(default_factory=list)  # on how the data set was read
    unusable: UnusableTally = field(default_factory=UnusableTally)
    unlike: Unlike = field(default_factory=Unlike)
    new_labels: int = 0  # asked of what is added or changed
    new_unknown: int = 0  # of these, without a usable answer
    stopped: OracleError | None = None
    failure: Exception | None = None
    run_id: str = ""  # of the store
    tried_again: bool = False  # most answers were unusable in an earlier attempt of the same flow run

    @property
    def complete(self) -> bool:
        return self.stopped is None and self.failure is None

    @property
    def mostly_unusable(self) -> bool:
        """Of what is new: a few old labels that are refused every night are no failure. What was new in an attempt
        that has failed is old when Prefect tries it again, and fails again."""
        again = self.tried_again and self.unusable.summary().too_many
        return self.complete and (again or 2 * self.new_unknown > self.new_labels)

    def count(self, kind: ChangeKind, name: str) -> None:
        self.counts[kind] += 1
        insort(self.ids[kind], name)
        del self.ids[kind][MAX_IDS:]

    def use_totals(self, totals: Totals) -> None:
        """What batches that were tried again, or whose worker was lost, have cost is known to the store alone."""
        self.paid_calls, self.cached_calls, self.cost = totals.paid_calls, totals.cached_calls, totals.paid
        self.unknown_calls, self.unknown = totals.unknown_calls, totals.unknown

    def skip(self, one: Quarantined) -> None:
        self.left_out_count += 1
        insort(self.left_out, one, key=lambda left: (left.id, left.reason))
        del self.left_out[MAX_IDS:]
