"""The power is cut at any moment: every acknowledged answer is there when it is back, and the file is sound.

All that a process writes and syncs is recorded; a cut keeps what was synced and drops the rest, in whole or in part.
Weaker settings than ours lose answers in this very test."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.power import FATES, Change, Disk, read_log
from twothirds.store import Store

ROOT = Path(__file__).parents[2]
ACKNOWLEDGED = "acknowledged"
WRITTEN = 20  # answers


@pytest.fixture(scope="session")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("the recorder of writes needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("recorder") / "power.so"
    source = Path(__file__).with_name("power.c")
    subprocess.run(
        [compiler, "-O1", "-Wall", "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True
    )
    return library


def recorded(recorder: Path, folder: Path, journal: str, syncing: str) -> list[Change]:
    """What a process that pays for answers does to its files."""
    files, log = folder / "files", folder / "log"
    files.mkdir()
    environment = os.environ | {"LD_PRELOAD": str(recorder), "POWER_FOLDER": str(files), "POWER_LOG": str(log)}
    command = [sys.executable, "-m", "tests.crash.power_writer", str(files), journal, syncing]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return list(read_log(log, files))


@dataclass
class Outage:
    """A cut: what is left on the disk, and what had been acknowledged."""

    left: dict[str, bytes]
    acknowledged: list[str]

    def lost(self, folder: Path) -> list[str]:
        """Open what is left, as the next run does; raises where it is not sound."""
        folder.mkdir()
        for name, content in self.left.items():
            (folder / name).write_bytes(content)
        with Store.open(str(folder / "store.sqlite")) as store:
            assert store.check.problems() == []
            kept = store.requests.answers(self.acknowledged)
        shutil.rmtree(folder)
        return [key for key in self.acknowledged if key not in kept]


def outages(changes: Iterable[Change], every: int, seed: int = 2015) -> Iterator[Outage]:
    """Cuts after every so-manieth call and after each acknowledgement, with each fate of what was not synced."""
    disk, acknowledged, dice = Disk(), list[str](), random.Random(seed)
    for number, change in enumerate(changes):
        is_acknowledged = change.name == ACKNOWLEDGED
        if is_acknowledged:
            acknowledged += change.data.decode().split()
        else:
            disk.apply(change)
        if is_acknowledged or number % every == 0:
            for fate in FATES:
                yield Outage(disk.after_a_cut(fate, dice), list(acknowledged))


@pytest.mark.parametrize(
    ("journal", "every"),
    [
        pytest.param("wal", 90, id="wal, sampled"),
        pytest.param("wal", 1, id="wal", marks=pytest.mark.slow),
        pytest.param("delete", 1, id="delete", marks=pytest.mark.slow),
    ],
)
def test_a_power_cut_loses_no_acknowledged_answer(recorder: Path, tmp_path: Path, journal: str, every: int) -> None:
    changes = recorded(recorder, tmp_path, journal, "ours")
    cuts, most = 0, 0
    for outage in outages(changes, every):
        assert outage.lost(tmp_path / "after") == []
        cuts, most = cuts + 1, max(most, len(outage.acknowledged))
    assert most == WRITTEN
    print(f"{journal}: {cuts} cuts of {len(changes)} calls, {WRITTEN} answers acknowledged: 0 lost")


@pytest.mark.parametrize(
    ("journal", "syncing"),
    [("wal", "normal"), pytest.param("delete", "full", marks=pytest.mark.slow)],
)
def test_weaker_settings_lose_an_acknowledged_answer_in_the_same_test(
    recorder: Path, tmp_path: Path, journal: str, syncing: str
) -> None:
    changes = recorded(recorder, tmp_path, journal, syncing)
    assert any(outage.lost(tmp_path / "after") for outage in outages(changes, 40))
