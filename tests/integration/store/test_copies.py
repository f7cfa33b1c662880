"""Copies of an SQLite store: of the file alone, with its journal, cut short, of another version."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.filled_stores import keep
from tests.support.slow import slow
from tests.support.store_steps import answers as stored
from tests.support.store_steps import begin, claim, pay
from tests.support.stored_answers import every_answer
from twothirds.flows.cli.app import main
from twothirds.store import Store, StoreError
from twothirds.store.engine import connect, sqlite_library

WAL_ONLY = pytest.mark.skipif(sqlite_library() is sqlite3, reason="Python's own SQLite keeps no WAL journal")
pytestmark = WAL_ONLY


def check(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = main(["store", "check", "--store", str(path), "--json"])
    return status, json.loads(capsys.readouterr().out)


def killed(path: Path, *works: str) -> None:
    """A process keeps answers and is killed: they are in the journal, as in the middle of a run."""
    code = f"""
import os, signal, sys
from twothirds.store import Store
from tests.support.filled_stores import keep
store = Store.open(sys.argv[1])
{"; ".join(works)}
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL


def copied(path: Path, name: str, *, journal: bool) -> Path:
    to = path.with_name(name)
    shutil.copyfile(path, to)
    if journal:
        shutil.copyfile(f"{path}-wal", f"{to}-wal")
    return to


def test_a_store_that_nobody_uses_is_one_complete_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.sqlite"
    with Store.open(str(path)) as store:
        keep(store, 12)
    assert [entry.name for entry in tmp_path.iterdir()] == ["store.sqlite"]
    status, found = check(copied(path, "copy.sqlite", journal=False), capsys)
    assert (status, found["answers"], found["problems"]) == (0, 12, [])


def test_also_if_nobody_closes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.sqlite"
    for ends in ("sys.exit(0)", "raise ValueError"):
        path.unlink(missing_ok=True)
        code = f"""
import sys
from twothirds.store import Store
from tests.support.filled_stores import keep
opened = Store.open(sys.argv[1])
keep(opened, 12)
{ends}
"""
        subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60, capture_output=True)
        assert [entry.name for entry in tmp_path.iterdir()] == ["store.sqlite"], ends
        assert check(path, capsys)[1]["answers"] == 12


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that a killed process has left, with all of it in the journal."""
    path = tmp_path_factory.mktemp("left") / "store.sqlite"
    killed(path, "keep(store, 12)")
    assert Path(f"{path}-wal").stat().st_size
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["costs"],  # reads
        ["review", "invite", "Ann"],  # writes
        *slow(["review", "status"], ["store", "check"]),
    ],
)
def test_every_command_leaves_one_file(left: Path, tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "store.sqlite"
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{left}{suffix}", f"{path}{suffix}")
    words = [*command, "--store", str(path)]
    subprocess.run([sys.executable, "-m", "twothirds", *words], check=True, timeout=60, capture_output=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["store.sqlite"]


def test_a_copy_without_the_journal_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.sqlite"
    for before, answers in ((0, 12), (12, 20)):
        killed(path, f"keep(store, {answers})")
        behind = copied(path, f"behind-{answers}.sqlite", journal=False)
        for _ in range(2):  # it is not forgotten by looking
            status, found = check(behind, capsys)
            assert (status, found["answers"]) == (1, before)
            assert found["problems"][0].startswith("file: it was copied from a store in use")
        assert main(["costs", "--store", str(behind)]) == 0
        assert "was in use when it was copied: its latest answers may be missing" in capsys.readouterr().err
        whole = copied(path, f"whole-{answers}.sqlite", journal=True)
        _, found = check(whole, capsys)
        assert (found["answers"], found["problems"]) == (answers, [])
        assert found["notes"] == [f"other users of this machine can open it (mode 644): chmod 600 {whole}"]
        Store.open(str(path)).close()
        assert check(copied(path, f"alone-{answers}.sqlite", journal=False), capsys)[1]["answers"] == answers
    backup = tmp_path / "backup.sqlite"
    assert main(["store", "backup", str(backup), "--store", str(path)]) == 0
    assert check(backup, capsys)[1]["answers"] == 20
    assert check(path, capsys)[0] == 0


def test_a_copy_of_a_journal_that_holds_everything_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As earlier versions left a store: all of it, its tables included, is in the journal."""
    path = tmp_path / "store.sqlite"
    with closing(sqlite_library().connect(str(path))) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    before = path.read_bytes()
    status, found = check(path, capsys)
    assert status == 1
    assert "is a copy without its latest commits, which are in store.sqlite-wal" in found["problems"][0]
    with pytest.raises(StoreError, match="copy that file too, or copy stores with `twothirds store backup`"):
        Store.open(str(path))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["store.sqlite"]


def test_a_copy_that_is_cut_short_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.sqlite"
    with Store.open(str(path)) as store:
        keep(store, 200)
        kept = {one.key: one.answer for one in every_answer(store)}
    whole = path.read_bytes()
    for length in (0, 1, 99, 100, 4096, len(whole) // 2, len(whole) - 4096):
        cut = tmp_path / f"cut-{length}.sqlite"
        cut.write_bytes(whole[:length])
        status, found = check(cut, capsys)
        assert status == 1, length
        assert found["problems"], length
        assert cut.read_bytes() == whole[:length]
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(whole[:-1])
    status, found = check(cut, capsys)
    if status == 0:  # no row had the last byte
        with Store.open(str(cut)) as store:
            assert {one.key: one.answer for one in every_answer(store)} == kept
    else:
        assert found["problems"]


def test_a_store_in_use_by_another_is_left_in_use(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store.open(str(path)) as first:
        begin(first)
        with Store.open(str(path)) as second:
            pay(second, ["a"])
        assert Path(f"{path}-wal").stat().st_size == 0, "what could be moved to the file was"
        pay(first, ["b"])
        engine = connect(str(path))
        with engine.connect() as reader, reader.begin():
            reader.exec_driver_sql("SELECT count(*) FROM requests").all()
            pay(first, ["c"])
            with Store.open(str(path)) as third:
                assert claim(third, ["d"]).granted
        engine.dispose()
        assert stored(first, "abc").keys() == {"a", "b", "c"}
    assert os.listdir(tmp_path) == ["store.sqlite"]


def test_a_journal_that_is_cut_short_leaves_what_was_committed_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a crash of the machine leaves it: which commits are missing cannot be told, and what is there adds up."""
    path = tmp_path / "store.sqlite"
    killed(path, "keep(store, 12)", "keep(store, 20)")
    journal = Path(f"{path}-wal").read_bytes()
    seen = set()
    for part in range(9):
        cut = copied(path, f"cut-{part}.sqlite", journal=False)
        Path(f"{cut}-wal").write_bytes(journal[: len(journal) * part // 8])
        status, found = check(cut, capsys)
        if found["answers"]:
            assert (status, found["problems"]) == (0, []), part
        seen.add(found["answers"])
    assert {0, 20} <= seen
    assert len(seen) > 2
