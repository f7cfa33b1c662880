"""Cells of a pool of examples are asked in batches, those with the same features together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from flows.enrich.batches import Batch, BatchLabels, BatchLost, Labeller
from flows.enrich.changes import Changes
from models import Feature, OracleError
from models.predicted import groups_of, log_odds
from sources import DatasetError, Example, Quarantined
from store import StoreError

MAX_QUESTIONS = 8_192  # in one batch: a task costs tens of milliseconds, and what is in flight is held in memory
PATIENCE = 2.0  # seconds of reading after which the first batch need not be full: few new examples would fill none
FIRST_QUESTIONS, GROWTH = 64, 4  # in that batch, and times as many in each after it
MAX_ATTEMPTS = 3  # of a batch whose worker was lost


class BatchFuture(Protocol):
    def result(self) -> BatchLabels: ...


Submit = Callable[[Labeller, Batch], BatchFuture]


class PoolStopped(Exception):
    """What stopped the asking of a pool: a budget, or people who have yet to answer."""

    def __init__(self, error: OracleError) -> None:
        super().__init__(str(error))
        self.error = error


class PoolBatches:
    """Asks cells of a pool in batches, those with the same features together."""

    def __init__(
        self,
        labeller: Labeller,
        submit: Submit,
        changes: Changes,
        examples: Sequence[Example],
        features: Sequence[Feature],
        in_flight: int,
    ) -> None:
        self._labeller, self._submit, self._changes = labeller, submit, changes
        self._examples, self._features, self._in_flight = examples, features, in_flight
        self.left_out: list[Quarantined] = []

    def ask(self, cells: NDArray[np.bool_]) -> NDArray[np.int8]:
        """Raises PoolStopped once all that was answered is in the store."""
        return self._asked(cells)[0]

    def log_odds(self, examples: Sequence[Example], features: Sequence[Feature]) -> NDArray[np.float64]:
        """Of a labeller that answers first."""
        return log_odds(*self._asked(np.ones((len(examples), len(features)), np.bool_)))

    def _asked(self, cells: NDArray[np.bool_]) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
        labels, chances = np.full(cells.shape, UNKNOWN, np.int8), np.full(cells.shape, np.nan)
        waiting: deque[tuple[NDArray[np.intp], NDArray[np.intp], Batch, BatchFuture]] = deque()
        stopped: OracleError | None = None

        def take() -> None:
            nonlocal stopped
            rows, columns, batch, future = waiting.popleft()
            found = self._result(batch, future)
            labels[np.ix_(rows, columns)], chances[np.ix_(rows, columns)] = found.labels, found.chances
            stopped = stopped or found.stopped

        for rows, columns in groups_of(cells, MAX_QUESTIONS // self._labeller.settings.votes, self._examples):
            batch = Batch([self._examples[row] for row in rows], [self._features[column] for column in columns])
            waiting.append((rows, columns, batch, self._submit(self._labeller, batch)))
            while len(waiting) > self._in_flight:
                take()
            if stopped is not None:
                break
        while waiting:
            take()
        if stopped is not None:
            raise PoolStopped(stopped)
        return labels, chances

    def _result(self, batch: Batch, future: BatchFuture) -> BatchLabels:
        """Of a batch; one whose worker was lost is asked again, and what was answered is in the store."""
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return self._counted(future.result())
            except BatchLost as lost:
                self._counted(lost.found)
                raise
            except (OracleError, StoreError, DatasetError):
                raise
            except Exception:  # whatever ended a worker
                future = self._submit(self._labeller, batch)
        return self._counted(future.result())

    def _counted(self, found: BatchLabels) -> BatchLabels:
        changes = self._changes
        changes.paid_calls += found.paid_calls
        changes.cached_calls += found.cached_calls
        changes.cost += found.cost
        changes.unusable.add(found.unusable)
        changes.unlike += found.unlike
        for one in found.left_out:
            self.left_out.append(one)
            changes.skip(one)
        return found
