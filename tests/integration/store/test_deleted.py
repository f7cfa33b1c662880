"""A store file that is deleted, moved or replaced while it is in use: the next commit says so, and nothing is sent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.support.filled_stores import SCOPE, TRUTH, labels
from tests.support.made import texts
from tests.support.store_steps import begin, claim, pay
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import Meter, Reply, Request
from twothirds.models.people.simulated import Behaviour, SimulatedOracle
from twothirds.store import Store, StoreUnavailable, back_up, restore
from twothirds.store.engine import journal_mode, sqlite_library

Loss = Callable[[Path], None]


def delete(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)


def replace_by_a_copy(path: Path) -> None:
    shutil.copyfile(path, f"{path}-2")
    os.replace(f"{path}-2", path)


def replace_by_a_backup(path: Path) -> None:
    backup = path.with_name("backup.sqlite")
    with Store.open(str(path)) as store:
        back_up(store, backup, lambda _done, _total: None)
    delete(path)
    restore(backup, str(path), lambda _done, _total: None)


LOSSES: dict[str, Loss] = {
    "deleted": delete,
    "the file alone": Path.unlink,
    "moved": lambda path: os.rename(path, path.with_name("moved.sqlite")),
    "replaced by a copy": replace_by_a_copy,
    "restored meanwhile": replace_by_a_backup,
}
if journal_mode(sqlite_library().sqlite_version_info) == "wal":
    LOSSES["the journal"] = lambda path: os.unlink(f"{path}-wal")


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES.keys())
def test_the_next_commit_notices(tmp_path: Path, lose: Loss) -> None:
    path = tmp_path / "store.sqlite"
    with Store.open(str(path)) as store:
        begin(store)
        pay(store, ["a"])
        lose(path)
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match=r"was deleted, moved or replaced while it was in use") as lost:
                claim(store, ["b"])
            assert "\n" not in str(lost.value)


def test_a_new_connection_creates_no_file_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store.open(str(path)) as store, store.engine.connect():
        delete(path)
        with pytest.raises(StoreUnavailable), store.engine.connect():
            pass
    assert not path.exists()


class Vanishing(SimulatedOracle):
    """A crowd that counts what it is asked, and deletes the store after a while."""

    path: Path
    after, asked = 0, 0

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
        def counted() -> Iterator[Request]:
            for request in requests:
                self.asked += 1
                if self.asked == self.after:
                    delete(self.path)
                yield request

        yield from super().send(counted(), meter)


def vanishing(path: Path, after: int) -> Vanishing:
    columns = [f"feature {name}" for name in "abcdef"]
    made = Vanishing(texts(len(TRUTH)), TRUTH, columns, behaviour=Behaviour(price=1))
    made.path, made.after = path, after
    return made


def test_a_run_stops_with_the_number_of_answers_that_are_lost_and_sends_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store.open(str(path)) as store:
        store.runs.begin("r", SCOPE, name="t", flow="test", dataset="d", oracle="o", settings={})
        oracle = vanishing(path, after=40)
        with pytest.raises(StoreUnavailable, match="nothing more is sent"):
            list(CachedOracle(oracle, RunLedger(store, "r", SCOPE)).ask(labels(400)))
        assert oracle.asked <= 40 + 3 * oracle.traits.width
    assert not path.exists()
