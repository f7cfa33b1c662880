"""What an enrichment did to the rows of its table.

Label what is new: stream the data set, ask what the table lacks, and let the table grow.

Plain Python: the flow hands in how batches are submitted."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np

from discovery.questions import UNKNOWN, Labels
from flows.enrich.batches import Batch, BatchLost, Labeller, Marks
from models.oracle import Feature, Money, OracleError
from reports.label_table import GrowingTable
from sources.dataset import Example, Quarantined
from sources.errors import DatasetError
from sources.load import iter_examples
from store import StoreError
from store.ledger.costs import Totals

TOLD = 20  # ids named in a summary: the first by name


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


QUESTIONS = 8_192  # in one batch: a task costs tens of milliseconds, and what is under way is held in memory
TRIES = 3  # of a batch whose worker was lost


class Coming(Protocol):
    def result(self) -> Marks: ...


Submit = Callable[[Labeller, Batch], Coming]


@dataclass(frozen=True)
class Pending:
    batch: Batch
    cells: tuple[int, ...]
    whys: list[Why]
    coming: Coming
    tries: int = 1


class Enrichment:
    """One pass over a data set. `cells` are places of the table's columns."""

    def __init__(
        self,
        table: GrowingTable,
        features: Sequence[Feature],
        labeller: Labeller,
        submit: Submit,
        *,
        backfill: bool,
        under_way: int,
    ) -> None:
        self.table = table
        self.changes = Changes()
        self.looked_at = 0
        self._columns = [table.meaning.names.index(feature.name) for feature in features]
        self._feature_of = dict(zip(self._columns, features, strict=True))
        self._since = np.array([column.since for column in table.meaning.columns])
        self._labeller, self._submit = labeller, submit
        self._backfill, self._most = backfill, under_way
        self._known = len(table)
        self._before = table.labels[: self._known].copy()
        self._seen = np.zeros(self._known, np.bool_)
        self._waiting: dict[tuple[int, ...], list[tuple[Example, Why]]] = {}
        self._pending: deque[Pending] = deque()

    @property
    def before(self) -> Labels:
        """The labels as they were read."""
        return self._before

    @property
    def answered(self) -> tuple[int, Money]:
        """How many answers have come so far, and what they cost: of this process, or of batches that came back."""
        changes = self.changes
        return max(self._labeller.answered(), (changes.paid_calls + changes.cached_calls, changes.cost))

    def run(self, spec: str) -> Changes:
        """Label what is missing. What was labelled before something ended it is in the table."""
        changes = self.changes
        try:
            for example in self._examples(spec):
                self._look_at(example)
                if changes.stopped is not None:
                    break
            for cells in list(self._waiting):
                self._send(cells)
        except (OracleError, StoreError, DatasetError) as error:
            changes.failure = error
        while self._pending:
            try:
                self._settle()
            except (OracleError, StoreError, DatasetError) as error:
                changes.failure = changes.failure or error
        if changes.complete:
            changes.gone = int((~self._seen).sum())
        return changes

    def _examples(self, spec: str) -> Iterator[Example]:
        known = self.table.row_with
        for found in iter_examples(spec, known=lambda digest: known(digest) is not None):
            self._see(found.id)
            if isinstance(found, Quarantined):
                self.changes.leave_out(found)
                continue
            self.looked_at += 1
            yield found

    def _see(self, name: str) -> None:
        row = self.table.row(name)
        if row is not None and row < self._known:
            self._seen[row] = True

    def _look_at(self, example: Example) -> None:
        """Decide what to ask about an example."""
        table = self.table
        row = table.row(example.id)
        if row is not None and table.digest(row) == example.digest:
            cells = self._missing(row)
            if cells:
                self._wait(cells, example, Why.FILLED)
            else:
                self.changes.unchanged += 1
            return
        known = table.known_content(example.digest)
        if known is None:
            self._wait(tuple(self._columns), example, Why.ADDED if row is None else Why.CHANGED)
            return
        labels, version = known
        moved = table.put(example.id, example.digest, version)
        table.labels[moved] = labels
        self.changes.count(Why.RENAMED, example.id)
        self.changes.rows.append(moved)
        cells = self._missing(moved)
        if cells:
            self._wait(cells, example, Why.FILLED)

    def _missing(self, row: int) -> tuple[int, ...]:
        """The features of which a row has no label, though it should: those asked when it was labelled, or all."""
        labels = self.table.labels[row]
        if self._backfill:
            return tuple(cell for cell in self._columns if labels[cell] == UNKNOWN)
        version = self.table.versions[row]
        return tuple(cell for cell in self._columns if labels[cell] == UNKNOWN and self._since[cell] <= version)

    def _wait(self, cells: tuple[int, ...], example: Example, why: Why) -> None:
        waiting = self._waiting.setdefault(cells, [])
        waiting.append((example, why))
        if len(waiting) * len(cells) * self._labeller.settings.votes >= QUESTIONS:
            self._send(cells)

    def _send(self, cells: tuple[int, ...]) -> None:
        waiting = self._waiting.pop(cells)
        if self.changes.stopped is not None:
            return
        batch = Batch([example for example, _ in waiting], [self._feature_of[cell] for cell in cells])
        coming = self._submit(self._labeller, batch)
        self._pending.append(Pending(batch, cells, [why for _, why in waiting], coming))
        while len(self._pending) > self._most:
            self._settle()

    def _settle(self) -> None:
        """Take over the oldest batch; one whose worker was lost is asked again, and what was answered is kept."""
        pending = self._pending.popleft()
        try:
            marks = pending.coming.result()
        except BatchLost as lost:
            self._take_over(pending, lost.marks)
            raise
        except (OracleError, StoreError, DatasetError):
            raise
        except Exception:
            if pending.tries >= TRIES:
                raise
            again = self._submit(self._labeller, pending.batch)
            self._pending.append(Pending(pending.batch, pending.cells, pending.whys, again, pending.tries + 1))
            return
        self._take_over(pending, marks)

    def _take_over(self, pending: Pending, marks: Marks) -> None:
        self.changes.paid_calls += marks.paid_calls
        self.changes.cached_calls += marks.cached_calls
        self.changes.cost += marks.cost
        self.changes.stopped = self.changes.stopped or marks.stopped
        for one in marks.left_out:
            self.changes.leave_out(one)
        for place, (example, why) in enumerate(zip(pending.batch.examples, pending.whys, strict=True)):
            if marks.known[place]:
                self._take(example, why, pending.cells, marks.labels[place])

    def _take(self, example: Example, why: Why, cells: tuple[int, ...], labels: Labels) -> None:
        table, changes = self.table, self.changes
        if why is Why.FILLED and (labels == UNKNOWN).all():
            changes.unchanged += 1
            return
        row = table.row(example.id)
        version = table.meaning.version
        if why is Why.CHANGED and row is not None:
            self._count_flips(row, cells, labels)
        row = table.put(example.id, example.digest, version)
        table.labels[row, list(cells)] = labels
        changes.count(why, example.id)
        changes.rows.append(row)
        if why in (Why.ADDED, Why.CHANGED):
            changes.new_content.append(row)

    def _count_flips(self, row: int, cells: tuple[int, ...], labels: Labels) -> None:
        for cell, label in zip(cells, labels.tolist(), strict=True):
            old = int(self.table.labels[row, cell])
            if UNKNOWN not in (old, label) and old != label:
                name = self.table.meaning.names[cell]
                self.changes.flips[name] = self.changes.flips.get(name, 0) + 1
