"""Writes that threads want at the same moment, in one transaction: a commit costs more than most of what is written.

Runs short transactions, again where another process or a dropped connection was in the way.

Work that runs again because the answer to a COMMIT was lost must do nothing more then; every write here is such."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from store.errors import explained

T = TypeVar("T")
Work = Callable[[Connection], Any]
MOST = 64  # works in one transaction, so that nobody waits long for the others


@dataclass(eq=False)
class _Waiting:
    work: Work
    woken: threading.Event = field(default_factory=threading.Event)
    done: bool = False
    result: Any = None
    error: Exception | None = None


class Together:
    """The first thread that comes writes; those that come meanwhile wait, and one of them then writes for all of them.
    `transact` runs a work in a transaction and returns when it is committed, and a work may be run again."""

    def __init__(self, transact: Callable[[Work], Any]) -> None:
        self._transact = transact
        self._lock = threading.Lock()
        self._queue: list[_Waiting] = []
        self._is_led = False

    def write(self, work: Callable[[Connection], T]) -> T:
        mine = _Waiting(work)
        with self._lock:
            self._queue.append(mine)
            waits, self._is_led = self._is_led, True
        if waits:
            self._wait(mine)
        if not mine.done:
            self._lead(mine)
        if mine.error is not None:
            raise mine.error
        return cast("T", mine.result)

    def _wait(self, mine: _Waiting) -> None:
        try:
            mine.woken.wait()
        except BaseException:  # this thread is interrupted: the others go on without it
            with self._lock:
                self._queue = [one for one in self._queue if one is not mine]
                leads = mine.woken.is_set() and not mine.done
                self._is_led = bool(self._queue) if leads else self._is_led
                successor = self._queue[:1] if leads else []
            for one in successor:
                one.woken.set()
            raise

    def _lead(self, mine: _Waiting) -> None:
        with self._lock:
            batch, self._queue = self._queue[:MOST], self._queue[MOST:]
        try:
            self._commit(batch)
        finally:
            with self._lock:
                # Those that an interrupt of this thread left undone go first.
                self._queue = [one for one in batch if not one.done and one is not mine] + self._queue
                self._is_led = bool(self._queue)
                woken = [one for one in batch if one.done and one is not mine] + self._queue[:1]
            for one in woken:
                one.woken.set()

    def _commit(self, batch: list[_Waiting]) -> None:
        """One for all; where any of them fails, each alone, so that it alone fails."""
        try:
            results = self._transact(lambda connection: [one.work(connection) for one in batch])
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    self._commit([one])
            else:
                batch[0].error, batch[0].done = error, True
            return
        for one, result in zip(batch, results, strict=True):
            one.result, one.done = result, True


_CONFLICTS = {"40001", "40P01", "55P03"}  # serialization failure, deadlock, lock not available
_AWAY = {"53300", "57P01", "57P02", "57P03"}  # too many connections, shutting down, crashed, starting up
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


class Transactions:
    """Reads and writes of one engine, usable from many threads."""

    def __init__(self, engine: Engine, name: str, *, patience: float) -> None:
        self.engine = engine
        self.name = name
        self._patience = patience
        self._writers = engine.execution_options(writes=True)
        is_sqlite = engine.dialect.name == "sqlite"
        # PostgreSQL shows each statement what is committed by then, within a transaction or without one.
        self._readers = engine if is_sqlite else engine.execution_options(isolation_level="AUTOCOMMIT")
        # SQLite takes one writer at a time: what threads write at once becomes one transaction, with one commit.
        self._together = Together(self._write_alone) if is_sqlite else None

    def read(self, work: Callable[[Connection], T]) -> T:
        return self._patiently(lambda: self._run(self._readers, work), is_transient)

    def write(self, work: Callable[[Connection], T]) -> T:
        return self._write_alone(work) if self._together is None else self._together.write(work)

    def _write_alone(self, work: Callable[[Connection], T]) -> T:
        return self._patiently(lambda: self._run(self._writers, work), is_transient)

    def first(self, work: Callable[[Connection], T]) -> T:
        """A write with which the store is opened: it waits for others, but not for a server that is not there."""
        return self._patiently(lambda: self._run(self._writers, work), is_conflict)

    @staticmethod
    def _run(engine: Engine, work: Callable[[Connection], T]) -> T:
        with engine.begin() as connection:
            return work(connection)

    def _patiently(self, attempt: Callable[[], T], worth_waiting: Callable[[SQLAlchemyError], bool]) -> T:
        deadline, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            try:
                return attempt()
            except SQLAlchemyError as error:
                if not worth_waiting(error) or time.monotonic() + pause > deadline:
                    raise explained(self.name, error) from error
            except UnicodeDecodeError as error:
                raise explained(self.name, error) from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def is_conflict(error: SQLAlchemyError) -> bool:
    """Whether another process was in the way, so that the same work may succeed in a moment."""
    if not isinstance(error, DBAPIError):
        return False
    return getattr(error.orig, "sqlstate", None) in _CONFLICTS or "is locked" in str(error.orig)


def is_transient(error: SQLAlchemyError) -> bool:
    """A conflict, or a connection that was cut or could not be made."""
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated or is_conflict(error):
        return True
    if not hasattr(error.orig, "sqlstate"):
        return False
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state is None:  # no server answered
        return type(error.orig).__name__ in {"OperationalError", "ConnectionTimeout"}
    return state in _AWAY or state.startswith("08")
