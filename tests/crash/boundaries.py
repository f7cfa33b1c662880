"""Where a process can be stopped or a database can fail: around every statement, every commit and every paid call.

The hook sits in the database driver, below the store, so it sees whatever the store does with its connections."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import Dialect, Engine, event

WRITES = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "CREATE", "COMMIT")


class Moment(NamedTuple):
    """Before or after a statement, `COMMIT`, `ROLLBACK` or a paid call."""

    when: str
    what: str
    connection: Any = None

    @property
    def starts_a_write(self) -> bool:
        return self.when == "before" and self.what.lstrip().upper().startswith(WRITES)


Hook = Callable[[Moment], None]


PAID_CALL = "a paid call"


class KillAt:
    """Counts the boundaries, or those of one kind, and ends its own process at one of them as SIGKILL does."""

    def __init__(self, at: int | None, kind: str | None = None) -> None:
        self._at = at
        self._kind = kind
        self._count = itertools.count(1)
        self.passed = 0

    def __call__(self, moment: Moment) -> None:
        if self._kind is not None and moment.what != self._kind:
            return
        self.passed = next(self._count)
        if self.passed == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


def watch(hook: Hook) -> None:
    """Tell the hook of every boundary of every connection that this process opens from now on."""

    def connect(dialect: Dialect, _record: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
        if dialect.name == "sqlite":
            options["factory"] = _sqlite_connection(dialect.loaded_dbapi, hook)
            return None
        options["cursor_factory"] = _psycopg_cursor(hook)
        return _psycopg_connection(hook).connect(*arguments, **options)

    event.listen(Engine, "do_connect", connect)


def _around(hook: Hook, what: str, connection: Any, work: Callable[[], Any]) -> Any:
    hook(Moment("before", what, connection))
    done = work()
    hook(Moment("after", what, connection))
    return done


def _sqlite_connection(library: Any, hook: Hook) -> Any:
    class Cursor(library.Cursor):  # type: ignore[misc]
        def execute(self, statement: str, *values: Any) -> Any:
            return _around(hook, statement, self.connection, lambda: super(Cursor, self).execute(statement, *values))

        def executemany(self, statement: str, rows: Any) -> Any:
            return _around(hook, statement, self.connection, lambda: super(Cursor, self).executemany(statement, rows))

    class Connection(library.Connection):  # type: ignore[misc]
        def cursor(self, *_factory: Any) -> Any:
            return super().cursor(Cursor)

        def execute(self, statement: str, *values: Any) -> Any:
            return _around(hook, statement, self, lambda: super(Connection, self).execute(statement, *values))

        def commit(self) -> None:
            _around(hook, "COMMIT", self, super().commit)

        def rollback(self) -> None:
            _around(hook, "ROLLBACK", self, super().rollback)

    return Connection


def _psycopg_cursor(hook: Hook) -> Any:
    class Cursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, *values: Any, **options: Any) -> Any:
            work = lambda: super(Cursor, self).execute(query, *values, **options)  # noqa: E731
            return _around(hook, str(query), self.connection, work)

        def executemany(self, query: Any, *rows: Any, **options: Any) -> None:
            work = lambda: super(Cursor, self).executemany(query, *rows, **options)  # noqa: E731
            _around(hook, str(query), self.connection, work)

    return Cursor


def _psycopg_connection(hook: Hook) -> Any:
    class Connection(psycopg.Connection[Any]):
        def commit(self) -> None:
            _around(hook, "COMMIT", self, super().commit)

        def rollback(self) -> None:
            _around(hook, "ROLLBACK", self, super().rollback)

    return Connection
