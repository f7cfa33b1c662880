"""Label what is new: stream the data set, ask what the table lacks, and let the table grow.

Plain Python: the flow passes in how batches are submitted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN, Labels
from flows.enrich.batches import Batch, BatchLabels, BatchLost, Labeller
from flows.enrich.changes import ChangeKind, Changes
from flows.enrich.pool import (
    FIRST_QUESTIONS,
    GROWTH,
    MAX_ATTEMPTS,
    MAX_QUESTIONS,
    PATIENCE,
    BatchFuture,
    PoolBatches,
    PoolStopped,
    Submit,
)
from flows.enrich.predict import Predictor
from models import ExampleChanged, Feature, Money, OracleError
from reports.enrichment import Cells, GrowingTable
from sources import ANY, Columns, DatasetError, Example, Quarantined, iter_examples
from store import StoreError


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
        drop_gone: bool = False,
        predictor: Predictor | None = None,
        cheap: Labeller | None = None,
        opens_all: bool = False,
        asks_early: bool = False,
    ) -> None:
        self._opens_all = opens_all  # the oracle opens every picture itself, and says which it cannot
        self._full, self._asks_early = MAX_QUESTIONS, asks_early
        self._patient_until = monotonic() + PATIENCE
        self.predictor, self._cheap, self._drops = predictor, cheap, drop_gone
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
        self._complete = np.full(self._known, not backfill)  # rows of which every label was there already
        for column in self._columns:
            self._complete &= self._before[:, column] != UNKNOWN
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
                if self.predictor is not None:
                    self._predict(self.predictor, columns)
                else:
                    self._send(columns)
        except PoolStopped as stopped:
            changes.stopped = stopped.error
        except (OracleError, StoreError, DatasetError) as error:
            changes.failure = error
        while self._in_flight:
            try:
                self._apply_oldest()
            except (OracleError, StoreError, DatasetError) as error:
                changes.failure = changes.failure or error
        if changes.complete:
            changes.gone = int((~self._seen).sum())
            if self._drops and changes.gone:
                self._drop_gone()
        return changes

    def _drop_gone(self) -> None:
        table, changes = self.table, self.changes
        gone = np.zeros(len(table), np.bool_)
        gone[: self._known] = ~self._seen
        changes.dropped = [(table.ids[row], table.digest(row)) for row in np.flatnonzero(gone).tolist()]
        now_at = table.drop(gone)
        changes.rows, changes.new_content = (now_at[rows].tolist() for rows in (changes.rows, changes.new_content))
        changes.cells = [Cells(now_at[one.rows], one.columns, one.chances) for one in changes.cells]

    def _examples(self, spec: str, columns: Columns) -> Iterator[Example]:
        known, remarks, left = self.table.row_with, self.changes.remarks, self.predictor is None and self._opens_all
        for found in iter_examples(
            spec, columns, known=lambda digest: left or known(digest) is not None, remark=remarks.append
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
            columns = () if row < self._known and self._complete[row] else self._missing(row)
            if columns:
                self._enqueue(columns, example, ChangeKind.FILLED)
            else:
                self.changes.unchanged += 1
            return
        known = table.known_content(example.digest)
        if known is None:
            corrected = table.corrected_columns(example.digest)
            columns = tuple(column for column in self._columns if column not in corrected)
            kind = ChangeKind.ADDED if row is None else ChangeKind.CHANGED
            if columns:
                self._enqueue(columns, example, kind)
            else:
                self._apply_row(example, kind, (), np.empty(0, np.int8))
            return
        moved = table.put(example.id, example.digest, known.version)
        table.restore(moved, known)
        self.changes.count(ChangeKind.RENAMED, example.id)
        self.changes.rows.append(moved)
        columns = self._missing(moved)
        if columns:
            self._enqueue(columns, example, ChangeKind.FILLED)

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
            self._full = min(GROWTH * self._full, MAX_QUESTIONS)
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
        self.changes.unlike += labelled.unlike
        for one in labelled.left_out:
            self.changes.skip(one)
        rows, places = list[int](), list[int]()
        for place, (example, kind) in enumerate(zip(oldest.batch.examples, oldest.kinds, strict=True)):
            row = (
                self._apply_row(example, kind, oldest.columns, labelled.labels[place])
                if labelled.known[place]
                else None
            )
            if row is not None:
                rows.append(row)
                places.append(place)
        self._note_cells(rows, oldest.columns, labelled.chances[places])

    def _note_cells(self, rows: list[int], columns: tuple[int, ...], chances: NDArray[np.float64]) -> None:
        probabilities = None if np.isnan(chances).all() else chances.astype(np.float16)
        if rows:
            self.changes.cells.append(Cells(np.array(rows, np.intp), np.array(columns, np.intp), probabilities))

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
        if kind is ChangeKind.FILLED and (labels == UNKNOWN).all():
            changes.unchanged += 1
            return None
        row = table.row(example.id)
        version = table.meaning.version
        if kind is ChangeKind.CHANGED and row is not None:
            self._count_flips(row, columns, labels)
        row = table.put(example.id, example.digest, version)
        asked = np.ones(len(columns), np.bool_) if chances is None else np.isnan(chances)
        chosen = np.array(columns, np.intp)
        table.set_asked(row, chosen[asked], labels[asked])
        if chances is not None and not asked.all():
            table.set_predicted(row, chosen[~asked], labels[~asked], chances[~asked])
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
            pool = PoolBatches(self._labeller, self._submit, self.changes, examples, features, self._max_in_flight)
            first = None
            if self._cheap is not None:
                cheap = PoolBatches(self._cheap, self._submit, self.changes, examples, features, self._max_in_flight)
                first = cheap.log_odds
            try:
                made = predictor.label(examples, features, pool.ask, first)
                break
            except ExampleChanged:
                examples, gone = predictor.without_vanished(examples)
                if not gone:
                    raise
                for one in gone:
                    self.changes.skip(one)
        skipped = {one.id for one in pool.left_out}
        result, rows = made.result, list[int]()
        for place, example in enumerate(examples):
            if example.id in skipped:
                continue
            here = np.flatnonzero(~result.left[place])
            known = tuple(columns[one] for one in here)
            labels, chances = result.labels[place, here], result.chances[place, here]
            row = self._apply_row(example, kinds[example.id], known, labels, chances)
            if row is not None:
                rows.append(row)
        self._note_cells(rows, columns, np.full((len(rows), len(columns)), np.nan))

    def _count_flips(self, row: int, columns: tuple[int, ...], labels: Labels) -> None:
        for column, label in zip(columns, labels.tolist(), strict=True):
            old = int(self.table.labels[row, column])
            if UNKNOWN not in (old, label) and old != label:
                name = self.table.meaning.names[column]
                self.changes.flips[name] = self.changes.flips.get(name, 0) + 1
