"""Ctrl-C, SIGTERM and SIGHUP end a command within five seconds, say in one line how to go on, and leave nothing behind.

The slow tests hold it to the five seconds, with the machine for themselves; the others wait as long as it takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.flows.cli.test_own_server import wait_until_none_is_left
from tests.support.growing_worlds import World
from tests.support.prefect_home import prefect_home
from tests.support.review_site import free_port, wait_for_page
from twothirds.flows.cli.signals import GRACE_SECONDS
from twothirds.store import Store

ROOT = Path(__file__).parents[4]
SECONDS, PATIENCE = 5.0, 100.0
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
GO_ON = "interrupted: every answer that came is kept; run the same command again to go on"
CROWD, SLOW_CROWD = "simulated?latency=0.05&width=4&price=0.001", "simulated?latency=60&width=4&price=0.001"
# As `twothirds`, but an orderly end may take as long as it needs.
UNHURRIED = """
import runpy
from twothirds.flows.cli import signals as interruption
from twothirds.models import cached
assert cached.DRAIN_SECONDS > 0
interruption.GRACE_SECONDS = cached.DRAIN_SECONDS = 600.0
runpy.run_module("twothirds", run_name="__main__", alter_sys=True)
"""
# The import of a module that does not end.
HELD = """
import sys, time
class Held:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            print("held", file=sys.stderr, flush=True)
            exec("time.sleep(600)", {{"time": time}})
sys.meta_path.insert(0, Held())
"""
# A model that computes in a thread while the command ends.
COMPUTING = """
import sys, threading, time, torch
from twothirds.flows.cli.signals import Interruption
interruption = Interruption()
interruption.listen()
def compute():
    numbers = torch.rand(400, 400, requires_grad=True)
    while True:
        (numbers @ numbers).sum().backward()
threading.Thread(target=compute, daemon=True).start()
print("listening", file=sys.stderr, flush=True)
try:
    time.sleep(600)
except KeyboardInterrupt:
    interruption.end()
interruption.leave_at_once(interruption.status)
sys.exit(interruption.status)
"""
STUBBORN = """
import sys, time
from twothirds.flows.cli import signals as interruption
interruption.GRACE_SECONDS = 0.2
interruption.Interruption().listen()
print("listening", file=sys.stderr, flush=True)
while True:
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        pass
"""
SIGNALS = pytest.mark.parametrize("how", list(STATUS), ids=lambda number: number.name)


class Ended(NamedTuple):
    status: int
    seconds: float
    errors: list[str]


@pytest.fixture(autouse=True)
def _no_signal_is_ignored() -> Iterator[None]:
    """As those are that a test run has which was started by `nohup` or with `&`."""
    ignored = [how for how in STATUS if signal.getsignal(how) is signal.SIG_IGN]
    for how in ignored:
        signal.signal(how, signal.SIG_DFL)
    yield
    for how in ignored:
        signal.signal(how, signal.SIG_IGN)


@dataclass
class Command:
    """A command in a process of its own, with folders of its own."""

    folder: Path
    process: subprocess.Popen[str]

    def wait_until(self, answers: int) -> None:
        """Until so many answers are kept."""
        while True:
            assert self.process.poll() is None, (self.folder / "errors").read_text()
            if (self.folder / "store.sqlite").exists():
                with Store.open(str(self.folder / "store.sqlite")) as store:
                    if store.requests.count() >= answers and (answers or store.runs.overview()):
                        return
            time.sleep(0.1)

    def wait_for_word(self, word: str) -> None:
        while word not in (self.folder / "errors").read_text():
            assert self.process.poll() is None, (self.folder / "errors").read_text()
            time.sleep(0.05)

    def end(self, how: signal.Signals) -> Ended:
        began = time.monotonic()
        self.process.send_signal(how)
        status = self.process.wait(PATIENCE)
        return Ended(status, time.monotonic() - began, (self.folder / "errors").read_text().splitlines())

    def assert_nothing_is_left(self) -> None:
        wait_until_none_is_left(str(self.folder))
        assert list((self.folder / "tmp").iterdir()) == []
        assert [path for path in self.folder.rglob(".*") if path.name != ".lock"] == [], (
            "unfinished files are hidden ones"
        )
        with Store.open(str(self.folder / "store.sqlite")) as store:
            assert store.check.problems() == []


@contextmanager
def started(
    folder: Path, *words: str, prefect: str | None = None, program: tuple[str, ...] = ("-m", "twothirds"), **more: str
) -> Iterator[Command]:
    (folder / "tmp").mkdir()
    own = {
        "PREFECT_HOME": prefect_home(folder / "prefect"),
        "XDG_STATE_HOME": folder / "state",
        "TMPDIR": folder / "tmp",
    }
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    clean |= {name: str(path) for name, path in own.items()}
    if prefect:
        clean |= {"PREFECT_API_URL": prefect, "PREFECT_API_AUTH_STRING": os.environ["PREFECT_API_AUTH_STRING"]}
    clean |= more
    command = [sys.executable, *program, *words, "--store", str(folder / "store.sqlite")]
    with (
        (folder / "errors").open("w") as errors,
        subprocess.Popen(command, cwd=ROOT, env=clean, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            yield Command(folder, process)
        finally:
            process.kill()


def discovering(folder: Path, oracle: str = CROWD) -> list[str]:
    return ["discover", "datasets/faces", "--oracle", oracle, "--queries", "30", "--yes", "--out", str(folder / "run")]


def enriching(folder: Path) -> list[str]:
    world = World(folder / "world", 2000)
    return [
        "enrich",
        world.spec,
        "--features",
        world.features,
        "--oracle",
        CROWD,
        "--yes",
        "--out",
        str(folder / "out"),
    ]


def assert_it_ended_well(ended: Ended, how: signal.Signals, within: float = SECONDS) -> None:
    assert ended.seconds < within
    assert ended.status == STATUS[how]
    assert ended.errors[-1] == GO_ON
    assert not [line for line in ended.errors if "Traceback" in line or "Error" in line], ended.errors


def test_a_discovery_ends_when_it_is_told_to_and_loses_nothing_that_was_under_way(
    prefect_url: str, tmp_path: Path
) -> None:
    with started(tmp_path, *discovering(tmp_path), prefect=prefect_url, program=("-c", UNHURRIED)) as command:
        command.wait_until(answers=30)
        assert_it_ended_well(command.end(signal.SIGTERM), signal.SIGTERM, PATIENCE)
        command.assert_nothing_is_left()
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        answers = store.requests.count()
        assert sum(line.unknown_calls for line in store.costs.lines()) == 0
        assert [store.runs.spent(run["scope"]) for run in store.runs.overview()] == [(1000 * answers, 0)]


@pytest.mark.parametrize(
    ("module", "how"),
    [
        ("twothirds.flows.cli.app", signal.SIGINT),
        ("twothirds.flows.cli.app", signal.SIGTERM),
        ("cyclopts", signal.SIGINT),
    ],
)
def test_while_the_program_is_being_imported_it_ends_without_a_traceback(
    tmp_path: Path, module: str, how: signal.Signals
) -> None:
    (tmp_path / "sitecustomize.py").write_text(HELD.format(module=module))
    with started(tmp_path, *discovering(tmp_path), PYTHONPATH=str(tmp_path)) as command:
        command.wait_for_word("held")
        ended = command.end(how)
    assert (ended.status, ended.errors) == (STATUS[how], ["held"])
    assert not (tmp_path / "store.sqlite").exists()


@SIGNALS
def test_what_a_command_imports_later_does_not_change_its_status(tmp_path: Path, how: signal.Signals) -> None:
    """Python itself would end by SIGINT: the interruption passes through `exec`, as in the import of a dataclass."""
    (tmp_path / "sitecustomize.py").write_text(HELD.format(module="twothirds.flows.discover.preparation"))
    with started(tmp_path, *discovering(tmp_path), PYTHONPATH=str(tmp_path)) as command:
        command.wait_for_word("held")
        ended = command.end(how)
    assert (ended.status, ended.errors) == (STATUS[how], ["held", GO_ON])


def test_a_command_that_does_not_end_when_it_is_told_to_is_ended(tmp_path: Path) -> None:
    assert GRACE_SECONDS < SECONDS
    with started(tmp_path, program=("-c", STUBBORN)) as command:
        command.wait_for_word("listening")
        ended = command.end(signal.SIGTERM)
    assert (ended.status, ended.errors[-1]) == (STATUS[signal.SIGTERM], GO_ON)


@pytest.mark.slow
def test_a_model_that_computes_does_not_abort_a_command_that_ends(tmp_path: Path) -> None:
    with started(tmp_path, program=("-c", COMPUTING)) as command:
        command.wait_for_word("listening")
        time.sleep(0.5)
        ended = command.end(signal.SIGTERM)
    assert (ended.status, ended.errors[-1]) == (STATUS[signal.SIGTERM], GO_ON)


@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_the_page_ends_and_says_how_to_go_on(tmp_path: Path, how: signal.Signals) -> None:
    port = free_port()
    with started(tmp_path, "review", "--port", str(port)) as command:
        wait_for_page(command.process, port)
        ended = command.end(how)
        command.assert_nothing_is_left()
    assert (ended.status, ended.errors[-1]) == (
        0,
        "the page has ended: every answer is kept; run the same command again to go on",
    )


@pytest.mark.slow
@SIGNALS
@pytest.mark.parametrize("answers", [pytest.param(0, id="at the start"), pytest.param(40, id="in the middle")])
def test_a_discovery_ends_and_the_server_that_it_started_when_idle(
    tmp_path: Path, how: signal.Signals, answers: int
) -> None:
    with started(tmp_path, *discovering(tmp_path)) as command:
        command.wait_for_word("starting Prefect")
        if answers:
            command.wait_until(answers)
        assert_it_ended_well(command.end(how), how)
        command.assert_nothing_is_left()


@pytest.mark.slow
@SIGNALS
def test_an_oracle_that_takes_a_minute_is_not_waited_for(tmp_path: Path, how: signal.Signals) -> None:
    with started(tmp_path, *discovering(tmp_path, SLOW_CROWD)) as command:
        command.wait_until(answers=0)
        time.sleep(1.0)
        assert_it_ended_well(command.end(how), how)
        command.assert_nothing_is_left()


@pytest.mark.slow
@SIGNALS
def test_an_enrichment_ends_when_it_is_told_to(tmp_path: Path, how: signal.Signals) -> None:
    with started(tmp_path, *enriching(tmp_path)) as command:
        command.wait_until(answers=40)
        assert_it_ended_well(command.end(how), how)
        command.assert_nothing_is_left()
