"""The Prefect server dies or hangs in mid-run: the run goes on without it, says so in a line and writes its folder."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path

import pandas as pd
import pytest
from pydantic import SecretStr

from tests.e2e.flows.cli.test_own_server import wait_until_none_is_left
from tests.e2e.flows.cli.test_signals import Command, started
from tests.support.growing_worlds import World
from twothirds.flows.cli.app import main
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.prefect_api import connection
from twothirds.flows.prefect_api.servers import LocalServer

CROWD = "simulated?latency=0.02&width=4"
TOLD = "no longer answers"
DEAD_SECONDS, HUNG_SECONDS = 40.0, 120.0  # within which it is reported on a busy machine; else it takes 14 s and 54 s


def server_of(folder: Path) -> int:
    """The process id of the Prefect server that a command has started."""
    [note] = folder.glob("state/twothirds/servers/*/note.json")
    return int(json.loads(note.read_text(encoding="utf-8"))["pid"])


def ended_without_prefect(command: Command, how: signal.Signals = signal.SIGKILL, within: float = 300.0) -> list[str]:
    """Take the server away when some answers are kept; the lines about it, when the command has ended well."""
    command.wait_until(answers=40)
    server = server_of(command.folder)
    os.kill(server, how)
    began = time.monotonic()
    while TOLD not in (command.folder / "errors").read_text() and command.process.poll() is None:
        assert time.monotonic() - began < within, "nothing is said"
        time.sleep(0.1)
    status = command.process.wait(300)
    errors = (command.folder / "errors").read_text()
    assert status == 0, errors
    assert "Traceback" not in errors
    assert "error" not in errors.lower(), errors
    if how is signal.SIGSTOP:
        os.kill(server, signal.SIGCONT)
    wait_until_none_is_left(str(command.folder))
    return [line for line in errors.splitlines() if "Prefect" in line and "starting" not in line]


HOW = [
    (signal.SIGKILL, "1", DEAD_SECONDS),  # the user's own patience counts
    (signal.SIGKILL, "3", DEAD_SECONDS),
    (signal.SIGSTOP, "3", HUNG_SECONDS),
]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "retries", "within"), HOW)
def test_a_discovery_goes_on_and_finds_what_it_would_have_found(
    tmp_path: Path, how: signal.Signals, retries: str, within: float
) -> None:
    words = ["discover", "datasets/faces", "--oracle", CROWD, "--queries", "10", "--out", str(tmp_path / "run")]
    with started(tmp_path, *words, PREFECT_CLIENT_MAX_RETRIES=retries) as command:
        [line] = ended_without_prefect(command, how, within)
    assert TOLD in line
    undisturbed = DiscoverSettings(
        dataset="datasets/faces",
        oracle="simulated",
        queries=10,
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


@pytest.mark.slow
def test_an_enrichment_goes_on_in_threads_of_its_own(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 600)
    words = ["enrich", world.spec, "--features", world.features, "--oracle", CROWD, "--out", str(tmp_path / "out")]
    with started(tmp_path, *words) as command:
        [line] = ended_without_prefect(command)
    assert TOLD in line
    table = pd.read_parquet(tmp_path / "out" / "labels.parquet")
    assert len(table) == 600
    assert table[list(world.traits)].notna().all().all()
    assert json.loads((tmp_path / "out" / "enrich.json").read_text())["stopped_because"] == "done"


@pytest.mark.slow
def test_a_comparison_and_proposals_go_on(tmp_path: Path) -> None:
    compared = tmp_path / "compared"
    compared.mkdir()
    oracles = ["--oracles", CROWD, f"{CROWD}&flip=0.1", "--queries", "8", "--out", str(compared / "out")]
    with started(compared, "compare", "datasets/faces", *oracles) as command:
        [line] = ended_without_prefect(command)
    assert TOLD in line
    assert (compared / "out" / "compare.html").exists()
    again = tmp_path / "again"
    again.mkdir()
    table = str(tmp_path / "table")
    words = ["enrich", "datasets/faces", "--features", "glasses; smile", "--out", table, "--oracle", CROWD]
    words += ["--propose", "12"]
    with started(again, *words) as command:
        [line] = ended_without_prefect(command)
    assert TOLD in line
    assert (tmp_path / "table" / "proposals.csv").exists()


def test_a_server_that_is_lost_before_the_run_begins_changes_nothing(
    prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it does between the question whether it answers and the first request of the flow."""
    assert prefect_url
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        gone = LocalServer(f"http://127.0.0.1:{deaf.getsockname()[1]}/api", SecretStr("a:b"))
        monkeypatch.setattr(connection, "kept_server", lambda *_: gone)
        words = ["discover", "datasets/faces", "--oracle", "simulated", "--queries", "3"]
        places = ["--store", str(tmp_path / "store.sqlite"), "--out", str(tmp_path / "run")]
        assert main([*words, *places]) == 0
    printed = capsys.readouterr()
    assert len([line for line in printed.err.splitlines() if TOLD in line]) == 1, printed.err
    assert json.loads((tmp_path / "run" / "run.json").read_text())["queries"] == 3
