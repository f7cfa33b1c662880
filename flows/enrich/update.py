"""Label what is new: stream the data set, ask what the table lacks, and let the table grow.

Plain Python: the flow passes in how batches are submitted."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np

from discovery import UNKNOWN, Labels
from flows.enrich.batches import Batch, BatchLabels, BatchLost, Labeller
from models import Feature, Money, OracleError
from reports import GrowingTable
from reports.run import UnusableTally
from sources import ANY, Columns, DatasetError, Example, Quarantined, iter_examples
from store import StoreError
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
    flips: dict[str, int] = field(default_factory=dict)  # labels that a changed content has turned over
    paid_calls: int = 0
    cached_calls: int = 0
    cost: Money = 0
    unknown_calls: int = 0  # sent and never answered: the provider may or may not have charged them
    unknown: Money = 0  # the most that those may have cost
    remarks: list[str] = field(default_factory=list)  # on how the data set was read
    unusable: UnusableTally = field(default_factory=UnusableTally)
    new_labels: int = 0  # asked of what is added or changed
    new_unknown: int = 0  # of these, without a usable answer
    stopped: OracleError | None = None
    failure: Exception | None = None

    @property
    def complete(self) -> bool:
        return self.stopped is None and self.failure is None

    @property
    def mostly_unusable(self) -> bool:
        """Of what is new: a few old labels that are refused every night are no failure."""
        return self.complete and 2 * self.new_unknown > self.new_labels

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


MAX_QUESTIONS = 8_192  # in one batch: a task costs tens of milliseconds, and what is in flight is held in memory
MAX_ATTEMPTS = 3  # of a batch whose worker was lost


class BatchFuture(Protocol):
    def result(self) -> BatchLabels: ...


Submit = Callable[[Labeller, Batch], BatchFuture]


@dataclass(frozen=True)
class InFlight:
    batch: Batch
    columns: tuple[int, ...]
    kinds: list[ChangeKind]
    future: BatchFuture
    attempts: int = 1


class Enrichment:
    """One pass over a data set. Columns are named by their index in the table."""

    def __init__(
        self,
        table: GrowingTable,
        features: Sequence[Feature],
        labeller: Labeller,
        submit: Submit,
        *,
        backfill: bool,
        in_flight: int,
    ) -> None:
        self.table = table
        self.changes = Changes()
        self.looked_at = 0
        self._columns = [table.meaning.names.index(feature.name) for feature in features]
        self._feature_of = dict(zip(self._columns, features, strict=True))
        self._since = np.array([column.since for column in table.meaning.columns])
        self._labeller, self._submit = labeller, submit
        self._backfill, self._max_in_flight = backfill, in_flight
        self._known = len(table)
        self._before = table.labels[: self._known].copy()
        self._seen = np.zeros(self._known, np.bool_)
        self._queued: dict[tuple[int, ...], list[tuple[Example, ChangeKind]]] = {}
        self._in_flight: deque[InFlight] = deque()

    @property
    def before(self) -> Labels:
        """The labels as they were read."""
        return self._before

    @property
    def answered(self) -> tuple[int, Money]:
        """How many answers have come so far, and what they cost: of this process, or of batches that came back."""
        changes = self.changes
        return max(self._labeller.answered(), (changes.paid_calls + changes.cached_calls, changes.cost))

    def run(self, spec: str, names: Columns = ANY) -> Changes:
        """Label what is missing. What was labelled before something ended it is in the table."""
        changes = self.changes
        try:
            for example in self._examples(spec, names):
                self._plan(example)
                if changes.stopped is not None:
                    break
            for columns in list(self._queued):
                self._send(columns)
        except (OracleError, StoreError, DatasetError) as error:
            changes.failure = error
        while self._in_flight:
            try:
                self._apply_oldest()
            except (OracleError, StoreError, DatasetError) as error:
                changes.failure = changes.failure or error
        if changes.complete:
            changes.gone = int((~self._seen).sum())
        return changes

    def _examples(self, spec: str, columns: Columns) -> Iterator[Example]:
        known, remarks = self.table.row_with, self.changes.remarks
        for found in iter_examples(
            spec, columns, known=lambda digest: known(digest) is not None, remark=remarks.append
        ):
            self._mark_seen(found.id)
            if isinstance(found, Quarantined):
                self.changes.skip(found)
                continue
            self.looked_at += 1
            yield found

    def _mark_seen(self, name: str) -> None:
        row = self.table.row(name)
        if row is not None and row < self._known:
            self._seen[row] = True

    def _plan(self, example: Example) -> None:
        """Decide what to ask about an example."""
        table = self.table
        row = table.row(example.id)
        if row is not None and table.digest(row) == example.digest:
            columns = self._missing(row)
            if columns:
                self._enqueue(columns, example, ChangeKind.FILLED)
            else:
                self.changes.unchanged += 1
            return
        known = table.known_content(example.digest)
        if known is None:
            self._enqueue(tuple(self._columns), example, ChangeKind.ADDED if row is None else ChangeKind.CHANGED)
            return
        labels, version = known
        moved = table.put(example.id, example.digest, version)
        table.labels[moved] = labels
        self.changes.count(ChangeKind.RENAMED, example.id)
        self.changes.rows.append(moved)
        columns = self._missing(moved)
        if columns:
            self._enqueue(columns, example, ChangeKind.FILLED)

    def _missing(self, row: int) -> tuple[int, ...]:
        """The features of which a row has no label, though it should: those asked when it was labelled, or all."""
        labels = self.table.labels[row]
        if self._backfill:
            return tuple(column for column in self._columns if labels[column] == UNKNOWN)
        version = self.table.versions[row]
        return tuple(column for column in self._columns if labels[column] == UNKNOWN and self._since[column] <= version)

    def _enqueue(self, columns: tuple[int, ...], example: Example, kind: ChangeKind) -> None:
        queued = self._queued.setdefault(columns, [])
        queued.append((example, kind))
        if len(queued) * len(columns) * self._labeller.settings.votes >= MAX_QUESTIONS:
            self._send(columns)

    def _send(self, columns: tuple[int, ...]) -> None:
        queued = self._queued.pop(columns)
        if self.changes.stopped is not None:
            return
        batch = Batch([example for example, _ in queued], [self._feature_of[column] for column in columns])
        future = self._submit(self._labeller, batch)
        self._in_flight.append(InFlight(batch, columns, [kind for _, kind in queued], future))
        while len(self._in_flight) > self._max_in_flight:
            self._apply_oldest()

    def _apply_oldest(self) -> None:
        """Apply the oldest batch; one whose worker was lost is asked again, and what was answered is kept."""
        oldest = self._in_flight.popleft()
        try:
            labelled = oldest.future.result()
        except BatchLost as lost:
            self._apply_batch(oldest, lost.found)
            raise
        except (OracleError, StoreError, DatasetError):
            raise
        except Exception:
            if oldest.attempts >= MAX_ATTEMPTS:
                raise
            again = self._submit(self._labeller, oldest.batch)
            self._in_flight.append(InFlight(oldest.batch, oldest.columns, oldest.kinds, again, oldest.attempts + 1))
            return
        self._apply_batch(oldest, labelled)

    def _apply_batch(self, oldest: InFlight, labelled: BatchLabels) -> None:
        self.changes.paid_calls += labelled.paid_calls
        self.changes.cached_calls += labelled.cached_calls
        self.changes.cost += labelled.cost
        self.changes.stopped = self.changes.stopped or labelled.stopped
        self.changes.unusable.add(labelled.unusable)
        for one in labelled.left_out:
            self.changes.skip(one)
        for place, (example, kind) in enumerate(zip(oldest.batch.examples, oldest.kinds, strict=True)):
            if labelled.known[place]:
                self._apply_row(example, kind, oldest.columns, labelled.labels[place])

    def _apply_row(self, example: Example, kind: ChangeKind, columns: tuple[int, ...], labels: Labels) -> None:
        table, changes = self.table, self.changes
        if kind is ChangeKind.FILLED and (labels == UNKNOWN).all():
            changes.unchanged += 1
            return
        row = table.row(example.id)
        version = table.meaning.version
        if kind is ChangeKind.CHANGED and row is not None:
            self._count_flips(row, columns, labels)
        row = table.put(example.id, example.digest, version)
        table.labels[row, list(columns)] = labels
        changes.count(kind, example.id)
        changes.rows.append(row)
        if kind in (ChangeKind.ADDED, ChangeKind.CHANGED):
            changes.new_content.append(row)
            changes.new_labels += len(columns)
            changes.new_unknown += int((labels == UNKNOWN).sum())

    def _count_flips(self, row: int, columns: tuple[int, ...], labels: Labels) -> None:
        for column, label in zip(columns, labels.tolist(), strict=True):
            old = int(self.table.labels[row, column])
            if UNKNOWN not in (old, label) and old != label:
                name = self.table.meaning.names[column]
                self.changes.flips[name] = self.changes.flips.get(name, 0) + 1
