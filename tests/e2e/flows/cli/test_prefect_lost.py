"""The Prefect server dies or hangs in mid-run: the run goes on without it, says so in a line and writes its folder."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from flows.discover import DiscoverSettings, prepare
from flows.discover.flow import run_discovery
from tests.e2e.flows.cli.test_own_server import wait_until_none_is_left
from tests.e2e.flows.cli.test_signals import Command, started

CROWD = "simulated?latency=0.02&width=4"
TOLD = "no longer answers"
DEAD_SECONDS, HUNG_SECONDS = 40.0, 120.0  # within which it is told on a busy machine; else it takes 14 s and 54 s


def server_of(command: Command) -> int:
    """The process id of the Prefect server that a command has started."""
    for listed in Path(f"/proc/{command.process.pid}/task").glob("*/children"):
        for child in listed.read_text(encoding="ascii").split():
            if b"server" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    raise AssertionError("no server was started")


def ended_without_prefect(command: Command, how: signal.Signals, answers: int = 40) -> list[str]:
    """Take the server away when so many answers are kept; the lines about it, when the command has ended well."""
    command.wait_until(answers)
    os.kill(server_of(command), how)
    began, patience = time.monotonic(), DEAD_SECONDS if how == signal.SIGKILL else HUNG_SECONDS
    while TOLD not in (command.folder / "errors").read_text() and command.process.poll() is None:
        assert time.monotonic() - began < patience, "nothing is said"
        time.sleep(0.1)
    status = command.process.wait(300)
    errors = (command.folder / "errors").read_text()
    assert status == 0, errors
    assert "Traceback" not in errors
    assert "Error" not in errors
    wait_until_none_is_left(str(command.folder))
    return [line for line in errors.splitlines() if "Prefect" in line and "starting" not in line]


HOW = [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.slow)]


@pytest.mark.parametrize("how", HOW)
def test_a_discovery_goes_on_and_finds_what_it_would_have_found(tmp_path: Path, how: signal.Signals) -> None:
    words = ["discover", "datasets/faces", "--oracle", CROWD, "--queries", "12", "--out", str(tmp_path / "run")]
    with started(tmp_path, *words) as command:
        [line] = ended_without_prefect(command, how)
    assert TOLD in line
    undisturbed = DiscoverSettings(
        dataset="datasets/faces",
        oracle=CROWD,
        queries=12,
        store=str(tmp_path / "other.sqlite"),
        out=str(tmp_path / "other"),
    )
    run_discovery(prepare(undisturbed), run_id="undisturbed")
    lost, kept = (json.loads((tmp_path / name / "run.json").read_text()) for name in ("run", "other"))
    for key in ("queries", "features", "g_curve", "stopped_because", "paid_calls", "cost_usd", "truth"):
        assert lost[key] == kept[key], key
    for name in ("features.csv", "labels.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert (tmp_path / "run" / "report.html").exists()
