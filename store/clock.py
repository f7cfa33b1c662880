"""The time by which leases and pauses are counted: the database's, so that machines whose clocks differ agree."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Engine, event

from store.transactions import Clock


def clock_of(engine: Engine) -> Clock:
    """SQLite is used by one machine, whose clock it is."""
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
