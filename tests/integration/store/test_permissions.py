"""Who can open the files of a store: whoever made them, and those whom they let. Run folders are as the umask says."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.run_folders import make_run, random_matrix
from twothirds.flows.cli.store_check import check
from twothirds.flows.reviewing.page import invite
from twothirds.reports.export.formats import export_run
from twothirds.sources.load import load_dataset
from twothirds.store import Store
from twothirds.store.backup import back_up, restore
from twothirds.store.engine import connect, sqlite_library

FILES = {"wal": {"s.sqlite", "s.sqlite-wal", "s.sqlite-shm"}, "delete": {"s.sqlite", "s.sqlite-journal"}}


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def quietly(_done: int, _of: int) -> None:
    pass


@pytest.fixture(autouse=True, params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """There already: its own mode is the user's choice."""
    made = tmp_path / "kept"
    made.mkdir()
    made.chmod(0o755)
    return made


def test_a_store_is_for_its_owner_alone_and_so_is_a_backup_and_what_is_restored_from_it(folder: Path) -> None:
    with Store.open(str(folder / "s.sqlite")) as store:
        invite(store, "Ann", days=1)
        assert store.engine.url.database == str(folder / "s.sqlite")
        back_up(store, folder / "b.sqlite", quietly)
        (folder / "b.sqlite").chmod(0o644)  # as a copy fetched from elsewhere is
        restore(folder / "b.sqlite", str(folder / "r.sqlite"), quietly)
        found = modes(folder)
    assert found.pop("b.sqlite") == 0o644
    assert {"s.sqlite", "r.sqlite"} <= found.keys()
    assert set(found.values()) == {0o600}


@pytest.mark.parametrize("library", [sqlite_library(), sqlite3], ids=["wheel", "python"])
def test_the_files_beside_it_are_created_likewise(folder: Path, library: object) -> None:
    engine = connect(str(folder / "s.sqlite"), library=library)  # type: ignore[arg-type]
    with engine.execution_options(writes=True).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (x)")
        journal = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
        found = modes(folder)
    engine.dispose()
    assert found == dict.fromkeys(FILES[journal], 0o600)


def test_a_mode_that_somebody_chose_is_kept_and_reported(folder: Path) -> None:
    with Store.open(str(folder / "s.sqlite")) as store:
        assert check(store).notes == []
    (folder / "s.sqlite").chmod(0o660)
    with Store.open(str(folder / "s.sqlite")) as store:
        invite(store, "Ann", days=1)
        [note] = check(store).notes
        assert set(modes(folder).values()) == {0o660}
    assert "mode 660" in note
    assert f"chmod 600 {folder / 's.sqlite'}" in note


def test_run_folders_and_exports_are_as_the_umask_says(tmp_path: Path, umask: int) -> None:
    (tmp_path / "t.csv").write_text("id,text\n" + "".join(f"{number},t{number}\n" for number in range(6)))
    run = make_run(tmp_path / "run", str(tmp_path / "t.csv"), list("012345"), ["a", "b"], random_matrix(2, 6))
    export_run(run, ["wide-csv", "huggingface"], load_dataset(str(tmp_path / "t.csv")), tmp_path / "export")
    made = [path for folder in ("run", "export") for path in (tmp_path / folder).rglob("*")]
    assert len(made) > 6
    for path in made:
        whole = 0o777 if path.is_dir() else 0o666
        assert stat.S_IMODE(path.stat().st_mode) == whole & ~umask, path
