"""Label what is new: stream the data set, ask what the table lacks, and let the table grow.

Plain Python: the flow passes in how batches are submitted."""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Labels
from twothirds.flows.enrich.batches import BatchFuture, BatchLost, LabelledBatch, Labeller, Submit, result_of
from twothirds.flows.enrich.predict import Predictor
from twothirds.flows.predicting import AskingStopped, CellLabels
from twothirds.models import (
    LABELS_AT_ONCE,
    ExampleChanged,
    Feature,
    LabelBatch,
    Money,
    OracleError,
    Unlike,
    Votes,
)
from twothirds.reports import VOTES, LabelledFeature, LabelTable, Source
from twothirds.reports.run import LABEL, UnusableCounts
from twothirds.reports.versions import VersionedTable
from twothirds.sources import ANY, Columns, DatasetError, Example, Quarantined, iter_examples, vanished
from twothirds.store import StoreError, Totals

PATIENCE = 2.0  # seconds of reading after which the first batch need not be full: few new examples would fill none
FIRST_QUESTIONS, GROWTH = 64, 4  # in that batch, and times as many in each after it
MAX_IDS = 20  # ids named in a summary: the first by name


class ChangeKind(StrEnum):
    ADDED = "added"  # an id and a content that the table has not
    CHANGED = "changed"  # a known id with another content
    RENAMED = "renamed"  # a known content under another id than before: its row moves there, and nothing is asked
    COPIED = "copies"  # a known content under one more id: a row with the same labels, and nothing is asked
    FILLED = "filled"  # known, but some labels are missing


@dataclass
class Changes:
    """What a run changes in its table, and what that costs."""

    # The first few ids of each kind.
    ids: dict[ChangeKind, list[str]] = field(default_factory=lambda: {kind: [] for kind in ChangeKind})
    counts: dict[ChangeKind, int] = field(default_factory=lambda: dict.fromkeys(ChangeKind, 0))
    unchanged: int = 0
    gone: int = 0  # in the table, but no longer in the data set
    left_out: list[Quarantined] = field(default_factory=list)  # the first few
    left_out_count: int = 0
    rows: list[int] = field(default_factory=list)  # of the table, written by this run
    new_content: list[int] = field(default_factory=list)  # of these, added or changed
    labels: list[LabelTable] = field(default_factory=list)  # that were asked or predicted now
    moved: list[tuple[str, str]] = field(default_factory=list)  # id and digest of rows before they moved to another id
    dropped: list[tuple[str, str]] = field(default_factory=list)  # of rows that are gone, on request
    flips: dict[str, int] = field(default_factory=dict)  # labels that a changed content has turned over
    paid_calls: int = 0
    cached_calls: int = 0
    cost: Money = 0
    unknown_calls: int = 0  # requests sent and never answered: the provider may or may not have charged them
    unknown: Money = 0  # the most that those may have cost
    remarks: list[str] = field(default_factory=list)  # on how the data set was read
    unusable: UnusableCounts = field(default_factory=UnusableCounts)
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

    def count_batch(self, found: LabelledBatch) -> None:
        votes = found.votes
        self.paid_calls += votes.asked
        self.cached_calls += votes.stored
        self.cost += votes.cost
        self.stopped = self.stopped or votes.stopped
        for (verdict, note), count in votes.notes.items():
            self.unusable.count(found.by, LABEL, verdict.value, note, count)
        self.unlike += found.unlike
        for left in found.skipped:
            self.skip(left)

    def count(self, kind: ChangeKind, name: str) -> None:
        self.counts[kind] += 1
        insort(self.ids[kind], name)
        del self.ids[kind][MAX_IDS:]

    def use_totals(self, totals: Totals) -> None:
        """What batches that were tried again, or whose worker was lost, have cost is known to the store alone."""
        self.paid_calls, self.cached_calls, self.cost = totals.paid_calls, totals.cached_calls, totals.paid
        self.unknown_calls, self.unknown = totals.unknown_calls, totals.unknown

    def skip(self, left: Quarantined) -> None:
        self.left_out_count += 1
        insort(self.left_out, left, key=lambda other: (other.id, other.reason))
        del self.left_out[MAX_IDS:]


@dataclass(frozen=True)
class InFlight:
    batch: LabelBatch
    columns: tuple[int, ...]
    kinds: list[ChangeKind]
    future: BatchFuture


class Enrichment:
    """One pass over a data set. Columns are named by their index in the table."""

    def __init__(
        self,
        table: VersionedTable,
        features: Sequence[Feature],
        labeller: Labeller,
        submit: Submit,
        *,
        backfill: bool,
        in_flight: int,
        drop_gone: bool = False,
        predictor: Predictor | None = None,
        cheap: Labeller | None = None,
        opens_all: bool = False,
        asks_early: bool = False,
    ) -> None:
        self._opens_all = opens_all  # the oracle opens every picture itself, and says which it cannot
        self._full, self._asks_early = LABELS_AT_ONCE, asks_early
        self._patient_until = monotonic() + PATIENCE
        self.predictor, self._cheap, self._drops = predictor, cheap, drop_gone
        self.table = table
        self.changes = Changes()
        self.looked_at = 0
        self._columns = [table.table_schema.names.index(feature.name) for feature in features]
        self._feature_of = dict(zip(self._columns, features, strict=True))
        self._since = np.array([column.since for column in table.table_schema.columns])
        self._labeller, self._submit = labeller, submit
        self._backfill, self._max_in_flight = backfill, in_flight
        self._known = len(table)
        self.before: Labels = table.labels[: self._known].copy()  # as they were read
        self._seen = np.zeros(self._known, np.bool_)
        self._arrived: dict[int, str | None] = {}  # rows to which a known content has come, and what they had before
        self._left_by: Counter[str] = Counter()  # contents of before, of ids that have another content now
        self._complete = np.full(self._known, not backfill)  # rows of which every label was there already
        for column in self._columns:
            self._complete &= self.before[:, column] != UNKNOWN
        self._queued: dict[tuple[int, ...], list[tuple[Example, ChangeKind]]] = {}
        self._in_flight: deque[InFlight] = deque()
        self._skipped: set[str] = set()  # by their ids

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
                columns, kind = self._wanted(example)
                if columns:
                    self._enqueue(columns, example, kind)
                if changes.stopped is not None:
                    break
            for columns in list(self._queued):
                if self.predictor is not None:
                    self._predict(self.predictor, columns)
                else:
                    self._send(columns)
        except AskingStopped as stopped:
            changes.stopped = stopped.error
        except (OracleError, StoreError, DatasetError) as error:
            changes.failure = error
        while self._in_flight:
            try:
                self._apply_oldest()
            except (OracleError, StoreError, DatasetError) as error:
                changes.failure = changes.failure or error
        if changes.complete:
            self._settle()
        else:
            self._undo_moves()
        return changes

    def lacking(self, spec: str, names: Columns = ANY) -> Iterator[tuple[Example, tuple[Feature, ...]]]:
        """What `run` would ask about each example. Nothing is asked, and the table is of no use afterwards."""
        for example in self._examples(spec, names):
            columns, _ = self._wanted(example)
            if columns:
                yield example, tuple(self._feature_of[column] for column in columns)

    def _settle(self) -> None:
        """Once all ids were seen, and those that are gone are known: move rows, tell copies, and drop what is gone."""
        table, changes = self.table, self.changes
        arrived: dict[str, deque[int]] = {}
        for row in self._arrived:
            arrived.setdefault(table.digest(row), deque()).append(row)
        moved, dropped = list[int](), list[int]()
        for row in np.flatnonzero(~self._seen).tolist():
            if rows := arrived.get(table.digest(row)):
                changes.count(ChangeKind.RENAMED, table.ids[rows.popleft()])
                moved.append(row)
            else:
                changes.gone += 1
                dropped += [row] if self._drops else []
        for digest, rows in arrived.items():
            for place, row in enumerate(rows):
                renamed = place < self._left_by[digest]
                changes.count(ChangeKind.RENAMED if renamed else ChangeKind.COPIED, table.ids[row])
        changes.moved = [(table.ids[row], table.digest(row)) for row in moved]
        changes.dropped = [(table.ids[row], table.digest(row)) for row in dropped]
        self._drop([*moved, *dropped])

    def _undo_moves(self) -> None:
        """A run that ends early cannot tell whether a known content was moved or copied: the next one finds it again,
        and what was asked about it is in the store."""
        table, changes = self.table, self.changes
        for row, before in self._arrived.items():
            known = table.known_content(before) if before is not None else None
            if before is not None and known is not None:
                table.restore(table.put(table.ids[row], before, known.version), known)
        changes.rows = [row for row in changes.rows if row not in self._arrived]
        arrived = {table.ids[row] for row in self._arrived}
        stayed = [[place for place, name in enumerate(labels.ids) if name not in arrived] for labels in changes.labels]
        changes.labels = [labels.take(places) for labels, places in zip(changes.labels, stayed, strict=True)]
        self._drop([row for row, before in self._arrived.items() if before is None])

    def _drop(self, rows: Sequence[int]) -> None:
        if not rows:
            return
        table, changes = self.table, self.changes
        dropped = np.zeros(len(table), np.bool_)
        dropped[rows] = True
        now_at = table.drop(dropped)
        changes.rows, changes.new_content = (now_at[kept].tolist() for kept in (changes.rows, changes.new_content))

    def _examples(self, spec: str, columns: Columns) -> Iterator[Example]:
        known, remarks, left = self.table.row_with, self.changes.remarks, self.predictor is None and self._opens_all
        for found in iter_examples(
            spec, columns, known=lambda digest: left or known(digest) is not None, remark=remarks.append
        ):
            row = self.table.row(found.id)
            if row is not None and row < self._known:
                self._seen[row] = True
            if isinstance(found, Quarantined):
                self.changes.skip(found)
                continue
            self.looked_at += 1
            yield found

    def _wanted(self, example: Example) -> tuple[tuple[int, ...], ChangeKind]:
        """What to ask about an example; one about which nothing is asked is taken over at once."""
        table = self.table
        row = table.row(example.id)
        if row is not None and table.digest(row) == example.digest:
            columns = () if row < self._known and self._complete[row] else self._missing(row)
            self.changes.unchanged += not columns
            return columns, ChangeKind.FILLED
        before = None if row is None else table.digest(row)
        if before is not None:
            self._left_by[before] += 1
        known = table.known_content(example.digest)
        if known is None:
            corrected = table.corrected_columns(example.digest)
            columns = tuple(column for column in self._columns if column not in corrected)
            kind = ChangeKind.ADDED if row is None else ChangeKind.CHANGED
            if not columns:
                self._apply_row(example, kind, (), np.empty(0, np.int8))
            return columns, kind
        row = table.put(example.id, example.digest, known.version)
        table.restore(row, known)
        self._arrived[row] = before
        self.changes.rows.append(row)
        return self._missing(row), ChangeKind.FILLED

    def _missing(self, row: int) -> tuple[int, ...]:
        """The features of which a row has no label, though it should: those asked when it was labelled, or all."""
        missing = self.table.labels[row] == UNKNOWN
        if self._backfill:
            if self._labeller.settings.agree is None:  # asked to ask: what was predicted is not enough
                missing = missing | self.table.is_predicted(row)
            return tuple(column for column in self._columns if missing[column])
        if self._labeller.settings.leaves:  # what an earlier night left is not tried again every night
            return ()
        version = self.table.versions[row]
        return tuple(column for column in self._columns if missing[column] and self._since[column] <= version)

    def _enqueue(self, columns: tuple[int, ...], example: Example, kind: ChangeKind) -> None:
        queued = self._queued.setdefault(columns, [])
        queued.append((example, kind))
        if self._asks_early and monotonic() >= self._patient_until:
            self._full, self._asks_early = FIRST_QUESTIONS, False
        full = len(queued) * len(columns) * self._labeller.settings.votes >= self._full
        if full and self.predictor is None:  # which needs to know the whole pool
            self._full = min(GROWTH * self._full, LABELS_AT_ONCE)
            self._send(columns)

    def _send(self, columns: tuple[int, ...]) -> None:
        queued = self._queued.pop(columns)
        if self.changes.stopped is not None:
            return
        examples, features = [example for example, _ in queued], [self._feature_of[column] for column in columns]
        batch = LabelBatch(examples, features, self._labeller.settings.votes)
        future = self._submit(self._labeller, batch)
        self._in_flight.append(InFlight(batch, columns, [kind for _, kind in queued], future))
        while len(self._in_flight) > self._max_in_flight:
            self._apply_oldest()

    def _apply_oldest(self) -> None:
        oldest = self._in_flight.popleft()
        try:
            votes = self._result(oldest.future, self._labeller, oldest.batch)
        except BatchLost as lost:
            self._apply_votes(oldest, lost.found.votes)
            raise
        self._apply_votes(oldest, votes)

    def _result(self, future: BatchFuture, labeller: Labeller, batch: LabelBatch) -> Votes:
        """Of a batch, once it is counted."""
        try:
            found = result_of(future, partial(self._submit, labeller, batch))
        except BatchLost as lost:
            self.changes.count_batch(lost.found)
            raise
        self.changes.count_batch(found)
        self._skipped.update(left.id for left in found.skipped)
        return found.votes

    def _apply_votes(self, oldest: InFlight, votes: Votes) -> None:
        """The next night asks for votes that are missing."""
        rows, places, labels = list[int](), list[int](), votes.decided.T
        for place in np.flatnonzero((votes.missing == 0).any(axis=0)).tolist():
            row = self._apply_row(oldest.batch.examples[place], oldest.kinds[place], oldest.columns, labels[place])
            if row is not None:
                rows.append(row)
                places.append(place)
        self._note_labels(rows, oldest.columns, labels[places], votes.chances.T[places], Source.ASKED)

    def _note_labels(
        self,
        rows: list[int],
        columns: tuple[int, ...],
        labels: Labels,
        chances: NDArray[np.float64],
        source: Source,
    ) -> None:
        """Of these rows and columns what the oracle or, where there are chances, `source` has said. What a person has
        corrected is told apart."""
        if not rows:
            return
        table, value, chance = self.table, labels.T.copy(), chances.T.astype(np.float32)
        for place, row in enumerate(rows):
            corrected = table.corrected_columns(table.digest(row))
            value[[at for at, column in enumerate(columns) if column in corrected], place] = UNKNOWN
        given = np.where(np.isnan(chance), Source.ASKED, source)
        features = [self._feature_of[column] for column in columns]
        self.changes.labels.append(
            LabelTable.of(
                [table.ids[row] for row in rows],
                [table.digest(row) for row in rows],
                [LabelledFeature(feature.name, feature.definition) for feature in features],
                value,
                source=np.where(value == UNKNOWN, Source.NONE, given).astype(np.uint8),
                probability=chance,
                votes=np.broadcast_to(np.uint16(0), (*value.shape, len(VOTES))),
            )
        )

    def _apply_row(
        self,
        example: Example,
        kind: ChangeKind,
        columns: tuple[int, ...],
        labels: Labels,
        chances: NDArray[np.float64] | None = None,
    ) -> int | None:
        """The row, unless nothing of it is new. `chances` are numbers where a label is predicted."""
        table, changes = self.table, self.changes
        row = table.row(example.id)
        arrived = row in self._arrived  # counted once it is known whether it has moved
        if kind is ChangeKind.FILLED and (labels == UNKNOWN).all():
            changes.unchanged += not arrived
            return None
        version = table.table_schema.version
        if kind is ChangeKind.CHANGED and row is not None:
            self._count_flips(row, columns, labels)
        row = table.put(example.id, example.digest, version)
        asked = np.ones(len(columns), np.bool_) if chances is None else np.isnan(chances)
        chosen = np.array(columns, np.intp)
        table.set_asked(row, chosen[asked], labels[asked])
        if chances is not None and not asked.all():
            table.set_predicted(row, chosen[~asked], labels[~asked], chances[~asked])
        if not arrived:
            changes.count(kind, example.id)
        changes.rows.append(row)
        if kind in (ChangeKind.ADDED, ChangeKind.CHANGED):
            changes.new_content.append(row)
            changes.new_labels += len(columns)
            changes.new_unknown += int((labels == UNKNOWN).sum())
        return row

    def _predict(self, predictor: Predictor, columns: tuple[int, ...]) -> None:
        """Label a pool, and take it over once all of it is known: a run that ends before leaves its answers in the
        store, and the next one finds the same pool and draws the same sample."""
        kinds = {example.id: kind for example, kind in self._queued[columns]}
        examples = [example for example, _ in self._queued.pop(columns)]
        features = [self._feature_of[column] for column in columns]
        while True:
            asking = self._cell_labels(self._labeller, examples, features)
            first = None if self._cheap is None else self._cell_labels(self._cheap, examples, features)
            try:
                made = predictor.label(asking, first)
                break
            except ExampleChanged:
                gone = {left.id: left for left in vanished(examples)}
                if not gone:
                    raise
                examples = [example for example in examples if example.id not in gone]
                for left in gone.values():
                    self.changes.skip(left)
        result, rows, places = made.result, list[int](), list[int]()
        for place, example in enumerate(examples):
            if example.id in self._skipped:
                continue
            here = np.flatnonzero(~result.left[place])
            known = tuple(columns[index] for index in here)
            labels, chances = result.labels[place, here], result.chances[place, here]
            row = self._apply_row(example, kinds[example.id], known, labels, chances)
            if row is not None:
                rows.append(row)
                places.append(place)
        given = np.where(result.left, np.int8(UNKNOWN), result.labels)[places]
        self._note_labels(rows, columns, given, result.chances[places], Source.PREDICTED)

    def _cell_labels(self, labeller: Labeller, examples: Sequence[Example], features: Sequence[Feature]) -> CellLabels:
        votes = labeller.settings.votes

        def put(part: Sequence[Example], chosen: Sequence[Feature]) -> Callable[[], Votes]:
            batch = LabelBatch(part, chosen, votes)
            return partial(self._result, self._submit(labeller, batch), labeller, batch)

        return CellLabels(put, examples, features, votes, self._max_in_flight)

    def _count_flips(self, row: int, columns: tuple[int, ...], labels: Labels) -> None:
        for column, label in zip(columns, labels.tolist(), strict=True):
            old = int(self.table.labels[row, column])
            if UNKNOWN not in (old, label) and old != label:
                name = self.table.table_schema.names[column]
                self.changes.flips[name] = self.changes.flips.get(name, 0) + 1
