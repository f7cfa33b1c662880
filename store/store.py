"""The store: one database, and a repository for each subject in it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import cached_property
from types import TracebackType

from sqlalchemy import Engine

from twothirds.store.costs import Costs
from twothirds.store.engine import (
    Clock,
    Transactions,
    WaitNotifier,
    clock_of,
    connect,
    create_tables,
    is_sqlite,
    leave,
    store_name,
    verify_file,
)
from twothirds.store.errors import StoreError
from twothirds.store.maintenance import Check, Housekeeping, Settlements
from twothirds.store.metrics import Metrics
from twothirds.store.rates import Rates
from twothirds.store.requests import Requests
from twothirds.store.review import Queue
from twothirds.store.runs import Runs

PATIENCE_SECONDS = 60.0


class Store:
    """Requests with their answers and costs, and runs. No acknowledged answer is lost and no budget exceeded, even if
    any process crashes at any point. Each method of a repository is one short transaction, callable from any thread."""

    def __init__(
        self,
        engine: Engine,
        name: str,
        *,
        clock: Clock | None = None,
        patience: float = PATIENCE_SECONDS,
        say: Callable[[str], None] = lambda _message: None,
    ) -> None:
        self.engine = engine
        self.name = name
        self.notice = WaitNotifier(say)
        clock = clock or clock_of(engine)
        self.transactions = Transactions(engine, name, patience=patience, notice=self.notice)
        self.runs = Runs(self.transactions, clock)
        self.requests = Requests(self.transactions, clock, self.runs)
        self.costs = Costs(self.transactions, clock, self.runs)
        self.settlements = Settlements(self.transactions, clock, self.runs)
        self.rates = Rates(self.transactions, clock)
        self.check = Check(self.transactions, clock)
        self.housekeeping = Housekeeping(self.transactions, clock)
        self.metrics = Metrics(self.transactions, clock)
        self._clock = clock
        self.is_incomplete = False  # the file was in use when it was copied, and its journal is missing
        # Also when nobody closes the store, at the latest when the process ends.
        self._leave = weakref.finalize(self.transactions, leave, engine, os.getpid())

    @cached_property
    def queue(self) -> Queue:
        """The questions for people; most runs never ask any."""
        return Queue(self.transactions, self._clock)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Clock | None = None,
        patience: float = PATIENCE_SECONDS,
        say: Callable[[str], None] = lambda _message: None,
    ) -> Store:
        """The store at a path, `sqlite:///path` or `postgresql://…`, created where there is none. Leases and pauses
        are counted by the clock of the database unless one is given; `say` is called with what is waited for.

        Raises StoreError in one line when it cannot be used; a file that is not a store is never written to."""
        name = store_name(url)
        store = cls(connect(url), name, clock=clock, patience=patience, say=say)
        try:
            store.is_incomplete = verify_file(store.engine, name)
            store._create(url, patience)
        except StoreError:
            store.close_as_found()
            raise
        return store

    def _create(self, url: str, patience: float) -> None:
        """A new SQLite file gets its schema before its WAL journal: no power cut leaves it without a schema."""
        engine = connect(url, keep_journal=True) if is_sqlite(self.engine) else self.engine
        opening = Transactions(engine, self.name, patience=patience, notice=self.notice)
        try:
            opening.first(lambda connection: create_tables(connection, self.name))
        finally:
            if engine is not self.engine:
                engine.dispose()

    def close(self) -> None:
        """Close the connections; if no other process uses an SQLite store, one complete file is left."""
        self._leave()

    def close_as_found(self) -> None:
        """Close the connections and leave the file as it is."""
        self._leave.detach()
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
