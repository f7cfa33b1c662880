"""Databases that benchmarks make stores in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Database:
    name: str
    new_store: Callable[[Path], str]  # the address of one; files of SQLite are in the folder that is given
    served: Callable[[], float]  # processor seconds of its server


@contextmanager
def databases(*, postgresql: bool) -> Iterator[Database]:
    """SQLite, or a PostgreSQL server that is started for it."""
    if not postgresql:
        yield Database("SQLite", lambda folder: str(folder / f"store-{time.monotonic_ns()}.sqlite"), lambda: 0.0)
        return
    from tests.support.postgres import start_postgres

    server = start_postgres()
    try:
        yield Database("PostgreSQL", lambda _folder: server.fresh_schema(), server.processor_seconds)
    finally:
        server.close()
