"""Connections that break, commits whose acknowledgement is lost, locks that stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.postgres import PostgresServer
from tests.support.store_steps import PRICE, SCOPE, answers, begin, claim, granted, pay, reply, send
from twothirds.store import Store, StoreError
from twothirds.store.engine import sqlite_library


def lose_the_next_acknowledgement(store: Store, patch: pytest.MonkeyPatch) -> None:
    """The next commit happens, but the program is told that it failed."""
    dialect: Any = store.engine.dialect
    commit: Callable[[Any], None] = dialect.do_commit
    cut: Exception = psycopg.OperationalError("server closed the connection unexpectedly")
    if dialect.name == "sqlite":
        cut = dialect.dbapi.OperationalError("database is locked")

    def once(connection: Any) -> None:
        patch.setattr(dialect, "do_commit", commit)
        commit(connection)
        raise cut

    patch.setattr(dialect, "do_commit", once)


def test_a_commit_whose_acknowledgement_was_lost_is_not_done_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_next_acknowledgement(store, monkeypatch)
    begin(store)
    lose_the_next_acknowledgement(store, monkeypatch)
    first, second = granted(store, ["ab", "c"], budget=2 * PRICE)
    assert store.runs.spent(SCOPE) == (0, 2 * PRICE)
    lose_the_next_acknowledgement(store, monkeypatch)
    assert send(store, [first, second]) == {first, second}
    lose_the_next_acknowledgement(store, monkeypatch)
    store.requests.record("run-1", [reply(first, "ab", cost=30_000)])
    lose_the_next_acknowledgement(store, monkeypatch)
    store.requests.release("owner-1", [second])
    assert store.runs.spent(SCOPE) == (30_000 + PRICE, 0)
    assert store.check.problems() == []


def test_a_server_that_restarts_is_waited_for(postgres: PostgresServer) -> None:
    with Store.open(postgres.fresh_schema(), patience=30) as store:
        begin(store)
        pay(store, ["a"])
        postgres.stop()
        postgres.start()
        assert answers(store, "a") == {"a": "yes"}
        pay(store, ["b"])
        assert store.check.problems() == []


def test_a_server_that_stays_away_ends_in_one_line(postgres: PostgresServer) -> None:
    with Store.open(postgres.fresh_schema(), patience=0.2) as store:
        begin(store)
        postgres.stop()
        try:
            with pytest.raises(StoreError, match=r"cannot be reached .* start the server") as trouble:
                claim(store, ["a"])
        finally:
            postgres.start()
        assert "\n" not in str(trouble.value)
        assert granted(store, ["a"])


def test_a_file_that_stays_locked_ends_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.sqlite"
    monkeypatch.setattr("twothirds.store.engine.BUSY_MILLISECONDS", 10)
    monkeypatch.setattr("twothirds.store.engine._PRAGMAS", {"synchronous": 3, "foreign_keys": 1, "busy_timeout": 10})
    with Store.open(str(path), patience=0.1) as store:
        begin(store)
        other = sqlite_library().connect(str(path), isolation_level=None)  # locks do not hold between two libraries
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="stayed locked by another process"):
            claim(store, ["a"])
        other.execute("ROLLBACK")
        other.close()
        assert granted(store, ["a"])
