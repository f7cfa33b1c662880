"""What can be opened and what is refused, and with which settings."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import create_engine

from tests.support.postgres import PostgresServer
from tests.support.store_steps import begin, claim, pay
from twothirds.flows.settings import open_store
from twothirds.store import Store, StoreError
from twothirds.store.engine import connect, journal_mode, sqlite_library


def test_parent_folders_are_made_and_a_plain_path_is_a_store(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder with ? and %20" / "store.sqlite"
    with Store.open(str(path)) as store:
        begin(store)
    assert path.is_file()
    with Store.open(f"sqlite:///{path}") as store:
        assert len(store.runs.overview()) == 1


@pytest.mark.parametrize("library", [sqlite_library(), sqlite3], ids=["wheel", "standard"])
def test_every_sqlite_connection_has_the_settings_that_durability_needs(tmp_path: Path, library: ModuleType) -> None:
    engine = connect(str(tmp_path / "store.sqlite"), library=library)
    with ExitStack() as stack:
        for _ in range(3):
            connection = stack.enter_context(engine.connect())
            read = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                for name in ("synchronous", "foreign_keys", "busy_timeout", "journal_mode")
            }
            wanted = {"synchronous": 3, "foreign_keys": 1, "busy_timeout": 30_000}
            assert read == {**wanted, "journal_mode": journal_mode(library.sqlite_version_info)}
    engine.dispose()


def test_a_write_locks_the_file_before_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    library = sqlite_library()
    with (
        Store.open(str(path)) as store,
        store.engine.execution_options(writes=True).begin(),
        closing(library.connect(str(path), timeout=0, isolation_level=None)) as other,
        pytest.raises(library.OperationalError, match="database is locked"),
    ):
        other.execute("BEGIN IMMEDIATE")


def test_a_library_in_which_wal_is_unsafe_turns_wal_off(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store.open(str(path)) as store:
        begin(store)
    engine = connect(str(path), library=old_library())
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "delete"
    engine.dispose()
    with Store.open(str(path)) as store:
        pay(store, ["a"])


def old_library() -> ModuleType:
    old = ModuleType("old_sqlite")
    old.__dict__.update({**sqlite_library().__dict__, "sqlite_version_info": (3, 40, 1)})
    return old


def test_a_setting_that_does_not_hold_is_refused(tmp_path: Path) -> None:
    library = sqlite_library()

    class Deaf(library.Connection):  # type: ignore[misc, name-defined]
        def execute(self, statement: str, *arguments: Any) -> Any:
            return super().execute("SELECT 1" if "foreign_keys=" in statement else statement, *arguments)

    deaf = ModuleType("deaf_sqlite")
    deaf.__dict__.update(library.__dict__)
    deaf.__dict__["connect"] = lambda *arguments, **options: library.connect(*arguments, factory=Deaf, **options)
    engine = connect(str(tmp_path / "store.sqlite"), library=deaf)
    with pytest.raises(StoreError, match="keeps foreign_keys at 0, but only 1 loses no answer"):
        engine.connect()


def test_postgresql_commits_are_on_disk_before_they_are_acknowledged(postgres: PostgresServer) -> None:
    careless = postgres.fresh_schema().replace("options=", "options=-csynchronous_commit%3Doff%20")
    with Store.open(careless) as store, store.engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda _good: b"no database at all" * 400, id="something else"),
        pytest.param(lambda _good: b"short", id="a few bytes"),
        pytest.param(lambda good: good[: len(good) // 2], id="cut in half"),
        pytest.param(lambda good: good[:8000] + bytes(255 for _ in range(9000)) + good[17000:], id="overwritten"),
    ],
)
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, damage: Any) -> None:
    path = tmp_path / "store.sqlite"
    with Store.open(str(path)) as store:
        begin(store)
        pay(store, [(f"key {number}",) for number in range(200)])
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"store\.sqlite is damaged or not a store .* it was left as it is") as refused:
        Store.open(str(path))
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["store.sqlite"]


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("trigger", "CREATE TRIGGER added AFTER INSERT ON requests BEGIN DELETE FROM requests; END"),
        ("view", "CREATE VIEW added AS SELECT * FROM requests"),
    ],
)
def test_a_store_with_a_trigger_or_a_view_is_refused_and_left_as_it_is(
    tmp_path: Path, kind: str, statement: str
) -> None:
    path = tmp_path / "store.sqlite"
    Store.open(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"has the {kind} 'added', which no version creates: it was left as it is"):
        Store.open(str(path))
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (title TEXT)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"is the database of another program \(table bookmarks\)"):
        Store.open(str(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "is empty: give a path"),
        ("mysql://me:secret@host/db", r"mysql://me:\*\*\*@host/db is of an unknown kind"),
        ("sqlite:store.sqlite", "is of an unknown kind: give a path, sqlite:///path"),
        ("sqlite://", "is of an unknown kind"),
        ("sqlite:///:memory:", "has no file"),
        ("postgresql://me:secret@127.0.0.1:1/db", r"me:\*\*\*@127.0.0.1:1/db cannot be reached .* start the server"),
        ("postgresql://me:secret@127.0.0.1:port/db", r"me:\*\*\*@127.0.0.1:port/db is not a URL"),
        ("postgresql://me:se@cret@127.0.0.1/db", r"me:\*\*\*@127.0.0.1/db has more than one @"),
        ("postgresql://me@127.0.0.1:1/db?password=secret", r"password=\*\*\* cannot be reached"),
        ("postgresql://127.0.0.1:1/db?colour=red", "has an unknown option"),
    ],
)
def test_an_address_that_leads_nowhere_is_one_line_without_secrets(url: str, says: str) -> None:
    with pytest.raises(StoreError, match=says) as refused:
        Store.open(url)
    assert "\n" not in str(refused.value)
    assert "cret" not in str(refused.value)


def test_a_folder_and_a_path_below_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder: give a file in it"):
        Store.open(str(tmp_path))
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open(str(tmp_path / "file" / "store.sqlite"))


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    path.touch()
    with Store.open(str(path)) as store:
        begin(store)
        assert claim(store, ["a"]).granted


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE twothirds_schema SET version = version + 1", r"\d+"),
        ("UPDATE twothirds_schema SET version = version - 1", r"\d+"),
        ("DELETE FROM twothirds_schema", "unknown"),
    ],
    ids=["newer", "older", "none"],
)
def test_a_store_of_another_schema_is_refused(store: Store, store_url: str, statement: str, found: str) -> None:
    with store.engine.execution_options(writes=True).begin() as connection:
        connection.exec_driver_sql(statement)
    with pytest.raises(StoreError, match=rf"has schema {found}, this program has \d+: use the program") as refused:
        Store.open(store_url)
    assert "\n" not in str(refused.value)


def test_a_table_of_ours_that_someone_else_made_is_refused(store_url: str) -> None:
    url = store_url.replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE requests (x INTEGER)")
    engine.dispose()
    with pytest.raises(StoreError, match=r"is the database of another program \(table requests\)"):
        Store.open(store_url)


def test_opening_a_store_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        open_store(str(tmp_path / "store.sqlite")).close()
    assert capfd.readouterr() == ("", "")
