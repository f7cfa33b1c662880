"""Runs short transactions, again where another process or a dropped connection was in the way.

Work that runs again because the answer to a COMMIT was lost must do nothing more then; every write here is such."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from store.errors import explained

T = TypeVar("T")

_TRANSIENT_STATES = {"40001", "40P01", "55P03", "53300", "57P01", "57P02", "57P03"}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


class Transactions:
    """Reads and writes of one engine, usable from many threads."""

    def __init__(self, engine: Engine, name: str, *, patience: float) -> None:
        self.engine = engine
        self.name = name
        self._patience = patience
        self._writers = engine.execution_options(writes=True)
        # SQLite takes one writer at a time: threads that queue here wake at once, where SQLite would have them poll.
        queue: AbstractContextManager[object] = threading.Lock() if engine.dialect.name == "sqlite" else nullcontext()
        self._queue = queue

    def read(self, work: Callable[[Connection], T]) -> T:
        return self._patiently(lambda: self._run(self.engine, work))

    def write(self, work: Callable[[Connection], T]) -> T:
        def queued() -> T:
            with self._queue:
                return self._run(self._writers, work)

        return self._patiently(queued)

    def once(self, work: Callable[[Connection], T]) -> T:
        """A write that fails at the first refusal, for the moment when the store is opened."""
        try:
            return self._run(self._writers, work)
        except SQLAlchemyError as error:
            raise explained(self.name, error) from error

    @staticmethod
    def _run(engine: Engine, work: Callable[[Connection], T]) -> T:
        with engine.begin() as connection:
            return work(connection)

    def _patiently(self, attempt: Callable[[], T]) -> T:
        deadline, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            try:
                return attempt()
            except SQLAlchemyError as error:
                if not is_transient(error) or time.monotonic() + pause > deadline:
                    raise explained(self.name, error) from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def is_transient(error: SQLAlchemyError) -> bool:
    """Whether the same work may succeed in a moment: locks, conflicts and connections that were cut."""
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    if hasattr(error.orig, "sqlstate"):
        state: str | None = getattr(error.orig, "sqlstate", None)
        if state is None:  # the server could not be reached at all
            return type(error.orig).__name__ in {"OperationalError", "ConnectionTimeout"}
        return state in _TRANSIENT_STATES or state.startswith("08")
    return "is locked" in str(error.orig)
