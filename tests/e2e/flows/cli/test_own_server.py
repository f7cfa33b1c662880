"""A run that is pointed at no Prefect API shares a server in the background: its history is kept, and the server ends
when it is idle."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from tests.support.question_path import PACKAGES
from twothirds.flows.cli.app import main
from twothirds.flows.errors import ServerError
from twothirds.flows.prefect_api.connection import prefect_api

ROOT = Path(__file__).parents[4]


def processes_with(mark: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().decode(errors="replace")
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in environment and command:
            found.append(command)
    return found


def wait_until_none_is_left(mark: str) -> None:
    """Who has been told to end may take a moment."""
    deadline = time.monotonic() + 60
    while left := processes_with(mark):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@pytest.mark.parametrize(("port", "why"), [("", "Address already in use"), ("65536", "must be 0-65535")])
def test_a_port_that_cannot_be_had_is_one_line(port: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert main(["server", "--port", port or str(other.getsockname()[1])]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: no server can listen at port ")
    assert why in line
    assert line.endswith(": give another --port")


def test_history_is_complete_and_no_process_is_left(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= {"PREFECT_HOME": str(tmp_path / "prefect"), "XDG_STATE_HOME": str(tmp_path / "state")}
    places = ["--store", str(tmp_path / "store.sqlite"), "--out", str(tmp_path / "run")]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "twothirds",
            "discover",
            "datasets/faces",
            "--oracle",
            "simulated",
            "--queries",
            "3",
            *places,
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "3 queries" in done.stdout
    assert not [line for line in done.stderr.splitlines() if "Error" in line or "Traceback" in line], done.stderr
    assert processes_with(str(tmp_path / "prefect"))
    wait_until_none_is_left(str(tmp_path / "prefect"))
    with sqlite3.connect(tmp_path / "prefect" / "prefect.db") as database:
        tasks = database.execute("select name, state_type from task_run").fetchall()
        flows = database.execute("select name, state_type from flow_run").fetchall()
        artifacts = {row[0] for row in database.execute("select type from artifact")}
        events = database.execute("select count(*) from events where event = 'twothirds.feature.found'").fetchone()[0]
    assert {state for _, state in tasks} == {"COMPLETED"}
    assert sum(name.startswith("elicit") for name, _ in tasks) == 3
    assert sum(name.startswith("publish") for name, _ in tasks) == 1
    assert flows == [("faces-simulated-seed0", "COMPLETED")]
    assert {"table", "progress"} <= artifacts
    assert events == sum(name.startswith("label") for name, _ in tasks)


SERVING = """
import sys, time
from pathlib import Path
from twothirds.flows.prefect_api.servers import own_server
with own_server(Path(sys.argv[1])):
    time.sleep(600)
"""


def test_a_server_that_is_kept_ends_with_its_command_even_while_it_starts(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment["PREFECT_HOME"] = str(tmp_path / "prefect")
    command = [sys.executable, "-c", SERVING, str(tmp_path / "state")]
    with subprocess.Popen(command, cwd=ROOT, env=environment) as run:
        while not any("server_program" in command for command in processes_with(str(tmp_path))):
            assert run.poll() is None
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
    wait_until_none_is_left(str(tmp_path))


def test_no_code_of_ours_runs_between_fork_and_exec() -> None:
    """There it may wait for a lock that a thread of the process that has forked held."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert [path for path in files if "preexec_fn" in path.read_text(encoding="utf-8")] == []


def test_a_server_that_asks_for_a_password_is_one_line(
    prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # it is none that we keep
    with (
        temporary_settings({PREFECT_API_URL: prefect_url}, restore_defaults={PREFECT_API_AUTH_STRING}),
        pytest.raises(ServerError, match="asks for a password: set PREFECT_API_AUTH_STRING"),
        prefect_api(),
    ):
        pass
