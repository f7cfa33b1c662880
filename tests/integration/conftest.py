"""Stores of both kinds for the tests that need one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.postgres import PostgresMissing, PostgresServer, start_postgres
from twothirds.store import Store


@dataclass
class Clock:
    """Time that passes when a test says so."""

    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server per test process, started by the first test that needs it."""
    try:
        server = start_postgres()
    except PostgresMissing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that does not exist yet, once for each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.fresh_schema()


@pytest.fixture
def store(store_url: str, clock: Clock) -> Iterator[Store]:
    with Store.open(store_url, clock=clock, patience=60) as opened:
        yield opened
