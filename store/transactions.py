"""Short transactions that are retried, and methods that are transactions.

A transaction is retried after a conflict or a dropped connection, also when only the acknowledgement of its COMMIT was
lost: every write must therefore be idempotent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from twothirds.store.connection import OpenedFile
from twothirds.store.errors import explained, first_line

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R", bound="Repository")
Clock = Callable[[], float]
_CONFLICTS = {"40001", "40P01", "55P03"}  # serialization failure, deadlock, lock not available
_SERVER_DOWN = {"53300", "57P01", "57P02", "57P03"}  # too many connections, shutting down, crashed, starting up
_SUSPENDED = {"25P03", "25P04", "57P05"}  # idle in a transaction for too long, transaction too long, session idle
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
_SILENT_SECONDS = 2.0  # a longer wait is reported
_REPEAT_SECONDS = 60.0


class WaitNotifier:
    """Says what is waited for, once a minute for each subject, however many threads wait for it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._noticed_at: dict[str, float] = {}

    def __call__(self, subject: str, message: str) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._noticed_at.get(subject, float("-inf")) < _REPEAT_SECONDS:
                return
            self._noticed_at[subject] = now
        self._say(message)


class Transactions:
    """Reads and writes of one engine, usable from many threads."""

    def __init__(self, engine: Engine, name: str, *, patience: float, notice: WaitNotifier) -> None:
        self.engine = engine
        self.name = name
        self._notice = notice
        self._patience = patience
        self._writers = engine.execution_options(writes=True)
        is_sqlite = engine.dialect.name == "sqlite"
        # PostgreSQL shows each statement what is committed by then, within a transaction or without one.
        self._readers = engine if is_sqlite else engine.execution_options(isolation_level="AUTOCOMMIT")
        # SQLite takes one writer at a time: its own threads wait here, in turn, and not by polling the file.
        self._writing = threading.Lock() if is_sqlite else nullcontext()

    def read(self, work: Callable[[Connection], T]) -> T:
        return self._retry(self._readers, work, is_transient)

    def write(self, work: Callable[[Connection], T]) -> T:
        with self._writing:
            return self._retry(self._writers, work, is_transient)

    def first(self, work: Callable[[Connection], T]) -> T:
        """The write with which a store is opened: retried after a conflict, but not when the server is down."""
        return self._retry(self._writers, work, is_conflict)

    def _retry(
        self, engine: Engine, work: Callable[[Connection], T], is_retryable: Callable[[SQLAlchemyError], bool]
    ) -> T:
        began = time.monotonic()
        deadline, pause, was_cut = began + self._patience, _FIRST_PAUSE, False
        while True:
            try:
                with engine.begin() as connection:
                    result = work(connection)
                    file: OpenedFile | None = connection.info.get("file")
                if file is not None and engine is self._writers:
                    file.check()
                return result
            except SQLAlchemyError as error:
                is_cut = isinstance(error, DBAPIError) and error.connection_invalidated
                if is_cut and not was_cut:  # perhaps this process was suspended: patience begins again
                    was_cut, deadline = True, time.monotonic() + self._patience
                if not is_retryable(error) or time.monotonic() + pause > deadline:
                    raise explained(self.name, error) from error
                if time.monotonic() - began > _SILENT_SECONDS:
                    left = f"at most {deadline - time.monotonic():.0f} s more"
                    self._notice("store", f"waiting for store {self.name} ({first_line(error)}), {left}")
            except UnicodeDecodeError as error:
                raise explained(self.name, error) from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


class Repository:
    """Base of the classes that read and write some tables. Callers leave out the `connection` of methods under @reads
    and @writes; each call is one short transaction and may come from any thread."""

    def __init__(self, transactions: Transactions, clock: Clock) -> None:
        self._transactions = transactions
        self._clock = clock


def reads(method: Callable[Concatenate[R, Connection, P], T]) -> Callable[Concatenate[R, P], T]:
    """Run the method in a read transaction."""

    @wraps(method)
    def read(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._transactions.read(lambda connection: method(self, connection, *args, **kwargs))

    return read


def writes(method: Callable[Concatenate[R, Connection, P], T]) -> Callable[Concatenate[R, P], T]:
    """Run the method in a write transaction. It may be retried: it must be idempotent and take no iterators."""

    @wraps(method)
    def write(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._transactions.write(lambda connection: method(self, connection, *args, **kwargs))

    return write


def is_conflict(error: SQLAlchemyError) -> bool:
    """Whether another process was in the way, so that a retry may succeed."""
    if not isinstance(error, DBAPIError):
        return False
    return getattr(error.orig, "sqlstate", None) in _CONFLICTS or "is locked" in str(error.orig)


def is_transient(error: SQLAlchemyError) -> bool:
    """Whether it was a conflict, or a connection that was dropped or could not be made."""
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated or is_conflict(error):
        return True
    if not hasattr(error.orig, "sqlstate"):
        return False
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state is None:  # no server answered
        return type(error.orig).__name__ in {"OperationalError", "ConnectionTimeout"}
    return state in _SERVER_DOWN | _SUSPENDED or state.startswith("08")


def clock_of(engine: Engine) -> Clock:
    """The time by which leases and pauses are counted: the database's, so that machines whose clocks differ agree.
    SQLite is used by one machine, whose clock it is."""
    return time.time if engine.dialect.name == "sqlite" else ServerClock(engine)


class ServerClock:
    """The server's clock as read with each new connection; what has passed since is counted here, whatever happens to
    the clock of this machine meanwhile."""

    def __init__(self, engine: Engine) -> None:
        self._read, self._at = time.time(), _elapsed()
        event.listen(engine, "connect", self._measure)

    def _measure(self, connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
            self._read, self._at = float(cursor.fetchone()[0]), _elapsed()
        connection.commit()

    def __call__(self) -> float:
        return self._read + _elapsed() - self._at


def _elapsed() -> float:
    """Seconds that never jump; on Linux they go on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
