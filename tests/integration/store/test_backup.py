"""Backups taken while a run writes: as of one moment, sound, and nothing that they hold is paid for again."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.filled_stores import PRICE, SCOPE, keep, labels, recorded
from tests.support.postgres import PostgresServer
from tests.support.store_steps import begin, granted, send
from twothirds.flows.cli.app import main
from twothirds.flows.cli.store_check import check
from twothirds.store import Store, StoreError
from twothirds.store.backup import back_up, restore
from twothirds.store.engine import sqlite_library

ASKED = 400


def silent(_done: int, _total: int) -> None:
    pass


@contextmanager
def writing(store: Store) -> Iterator[None]:
    """A run that asks and answers on the same store while the block lasts, and finishes after it."""
    oracle = recorded(store, latency=0.01, width=4)
    failed: list[BaseException] = []
    over = threading.Event()

    def ask() -> None:
        try:
            for answered, _ in enumerate(oracle.ask(labels(ASKED)), start=1):
                if answered == ASKED - 100:
                    over.wait()
            assert answered == ASKED
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while store.requests.count() < 20:
        time.sleep(0.01)
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert not failed


@pytest.fixture(params=["sqlite", "postgresql"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a backup is restored to."""
    if request.param == "sqlite":
        return str(tmp_path / "elsewhere" / "store.sqlite")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.fresh_schema()


def test_a_backup_in_the_middle_of_a_run_is_sound_and_nothing_in_it_is_paid_again(
    store_url: str, elsewhere: str, tmp_path: Path
) -> None:
    copy = tmp_path / "backup.sqlite"
    with Store.open(store_url) as store:
        with writing(store):
            back_up(store, copy, silent)
        assert store.requests.count() == ASKED
        assert check(store).problems == []
    restore(copy, elsewhere, silent)
    with Store.open(elsewhere) as store:
        held = store.requests.count()
        assert 20 <= held < ASKED
        found = check(store)
        assert (found.problems, found.notes) == ([], [])
        spent, reserved = store.runs.spent(SCOPE)
        assert reserved == 0
        assert held * PRICE <= spent <= (held + 4 * 16) * PRICE
        again = keep(store, ASKED)
        assert (again.ledger.cached_calls, again.ledger.paid_calls) == (held, ASKED - held)
        assert check(store).problems == []


def test_a_copy_never_starts_over_and_shows_one_moment_only(tmp_path: Path) -> None:
    """While pages are copied, somebody writes between any two steps."""
    seen: list[int] = []
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        keep(store, 400)

        def write(done: int, total: int) -> None:
            seen.append(done)
            begin(store, f"run {len(seen)}", scope=f"scope {len(seen)}")
            assert total < 5000

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("twothirds.store.backup.PAGES", 10)
            back_up(store, tmp_path / "copy.sqlite", write)
        assert len(seen) > 5
        assert seen == sorted(seen)
        assert len(store.runs.overview()) == 1 + len(seen)
    with Store.open(str(tmp_path / "copy.sqlite")) as copied:
        assert len(copied.runs.overview()) == 1
        assert check(copied).answers == 400


def test_what_was_under_way_is_ended_and_what_was_sent_stays_booked(store_url: str, tmp_path: Path) -> None:
    with Store.open(store_url) as store:
        begin(store)
        _, sent = granted(store, ["a", "b"])
        send(store, [sent])
        back_up(store, tmp_path / "backup.sqlite", silent)
    restore(tmp_path / "backup.sqlite", str(tmp_path / "store-2.sqlite"), silent)
    with Store.open(str(tmp_path / "store-2.sqlite")) as restored:
        assert restored.runs.spent(SCOPE) == (100_000, 0)
        assert granted(restored, ["a", "b"])


def test_nothing_is_overwritten_and_nothing_is_left_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, taken = str(tmp_path / "store.sqlite"), tmp_path / "taken.sqlite"
    with Store.open(url) as store:
        keep(store, 5)
    taken.write_bytes(b"something dear")
    assert main(["store", "backup", str(taken), "--store", url]) == 2
    assert main(["store", "restore", url, "--store", str(taken)]) == 2
    assert main(["store", "restore", str(taken), "--store", str(tmp_path / "new.sqlite")]) == 2
    assert main(["store", "restore", str(tmp_path / "none"), "--store", str(tmp_path / "new.sqlite")]) == 2
    assert main(["store", "backup", str(taken / "below.sqlite"), "--store", url]) == 2
    assert capsys.readouterr().err.count("\n") == 5
    assert taken.read_bytes() == b"something dear"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["store.sqlite", "taken.sqlite"]


def test_a_backup_whose_books_are_wrong_is_not_restored(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        keep(store, 5)
        with store.engine.execution_options(writes=True).begin() as connection:
            connection.exec_driver_sql("UPDATE runs SET booked = 1")
        back_up(store, tmp_path / "backup.sqlite", silent)
    with pytest.raises(StoreError, match=r"is damaged \(run .* nothing was restored"):
        restore(tmp_path / "backup.sqlite", str(tmp_path / "new.sqlite"), silent)
    assert not (tmp_path / "new.sqlite").exists()


def test_a_database_with_runs_in_it_is_not_restored_into(store: Store, store_url: str, tmp_path: Path) -> None:
    keep(store, 5)
    back_up(store, tmp_path / "backup.sqlite", silent)
    with pytest.raises(StoreError, match=r"exists already and|holds runs already"):
        restore(tmp_path / "backup.sqlite", store_url, silent)
    assert check(store).answers == 5


def test_a_dump_of_postgresql_restores_to_the_same_store(postgres: PostgresServer) -> None:
    """What docs/store.md says for PostgreSQL."""
    if shutil.which("pg_dump") is None or shutil.which("psql") is None:
        pytest.skip("pg_dump and psql are not installed")
    url = postgres.fresh_schema()
    schema = url.rpartition("search_path%3D")[2]
    with Store.open(url) as store:
        keep(store, 30)
    dumped = subprocess.run(["pg_dump", "--schema", schema, postgres.url], capture_output=True, check=True, timeout=500)
    subprocess.run(["psql", "-q", "-c", f"DROP SCHEMA {schema} CASCADE", postgres.url], capture_output=True, check=True)
    loading = ["psql", "-q", "-v", "ON_ERROR_STOP=1", postgres.url]
    subprocess.run(loading, input=dumped.stdout, capture_output=True, check=True, timeout=500)
    with Store.open(url) as store:
        assert check(store).answers == 30
        assert check(store).problems == []
        assert keep(store, 31).ledger.paid_calls == 1


def test_a_backup_is_one_file_that_any_sqlite_reads(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        keep(store, 5)
        back_up(store, tmp_path / "copies" / "copy.sqlite", silent)
    assert [entry.name for entry in (tmp_path / "copies").iterdir()] == ["copy.sqlite"]
    raw = sqlite_library().connect(str(tmp_path / "copies" / "copy.sqlite"))
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert raw.execute("SELECT sum(answered) FROM requests").fetchone() == (5,)
    raw.close()
