"""The store: one database, and a repository for each subject in it."""

from __future__ import annotations

import time
from functools import cached_property
from types import TracebackType

from sqlalchemy import Engine

from store import migrations
from store.connection import connect, examine, store_name
from store.errors import StoreError
from store.ledger import Check, Claims, Costs, KeptAnswers, Rates, Runs, Settlements
from store.review import Queue
from store.transactions import Clock, Transactions

PATIENCE_SECONDS = 60.0


class Store:
    """Answers, claims, charges and runs. No acknowledged answer is lost and no budget exceeded, even if any process
    crashes at any point. Each method of a repository is one short transaction, callable from any thread."""

    def __init__(
        self, engine: Engine, name: str, *, clock: Clock = time.time, patience: float = PATIENCE_SECONDS
    ) -> None:
        self.engine = engine
        self.name = name
        self.transactions = Transactions(engine, name, patience=patience)
        self.runs = Runs(self.transactions, clock)
        self.answers = KeptAnswers(self.transactions, clock, self.runs)
        self.claims = Claims(self.transactions, clock, self.runs)
        self.costs = Costs(self.transactions, clock, self.runs)
        self.settlements = Settlements(self.transactions, clock, self.runs)
        self.rates = Rates(self.transactions, clock)
        self.check = Check(self.transactions, clock)
        self._clock = clock

    @cached_property
    def queue(self) -> Queue:
        """The questions for people; most runs never ask any."""
        return Queue(self.transactions, self._clock)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Clock = time.time,
        patience: float = PATIENCE_SECONDS,
        waiting: migrations.Waiting = migrations.silently,
    ) -> Store:
        """The store at a path, `sqlite:///path` or `postgresql://…`, created or migrated as needed.

        Raises StoreError in one line when it cannot be used; a file that is not a store is never written to."""
        name = store_name(url)
        store = cls(connect(url), name, clock=clock, patience=patience)
        try:
            examine(store.engine, name)
            store.transactions.first(lambda connection: migrations.migrate(connection, name, waiting=waiting))
        except StoreError:
            store.close()
            raise
        return store

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
