"""A database that fails at its Nth write: the disk is full or broken, a lock stays, the connection drops."""

from __future__ import annotations

import itertools
from typing import Any

import psycopg

from tests.crash.boundaries import Moment

SQLITE = {
    "disk full": "database or disk is full",
    "input/output error": "disk I/O error",
    "locked": "database is locked",
}
POSTGRESQL: dict[str, type[psycopg.Error]] = {
    "disk full": psycopg.errors.DiskFull,
    "input/output error": psycopg.errors.IoError,
    "locked": psycopg.errors.LockNotAvailable,
    "connection dropped": psycopg.OperationalError,
    "acknowledgement lost": psycopg.OperationalError,  # of a commit that took place
}
KINDS = {"sqlite": tuple(SQLITE), "postgresql": tuple(POSTGRESQL)}


class Fault:
    """Fails the Nth write of this process, or every one from the Nth on."""

    def __init__(self, kind: str, at: int, for_ever: bool) -> None:
        self._kind = kind
        self._at = at
        self._for_ever = for_ever
        self._count = itertools.count(1)
        self.passed = 0  # writes

    def __call__(self, moment: Moment) -> None:
        if moment[:2] != ("after", "COMMIT") if self._kind == "acknowledgement lost" else not moment.starts_a_write:
            return
        self.passed = number = next(self._count)
        if number == self._at or (self._for_ever and number > self._at):
            self._fail(moment.connection)

    def _fail(self, connection: Any) -> None:
        if not isinstance(connection, psycopg.Connection):
            raise _library_of(connection).OperationalError(SQLITE[self._kind])
        if self._kind in ("connection dropped", "acknowledgement lost"):
            connection.close()  # as when the server has hung up
        raise POSTGRESQL[self._kind](f"server closed the connection or could not write: {self._kind}")


def _library_of(connection: Any) -> Any:
    import sqlite3

    from twothirds.store.engine import sqlite_library

    return sqlite3 if isinstance(connection, sqlite3.Connection) else sqlite_library()
