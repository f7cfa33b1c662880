"""The server that runs share in the background: one at a time, found by the next run, ended when idle."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.support import quick_server
from twothirds.flows.cli.app import main
from twothirds.flows.errors import ServerError
from twothirds.flows.prefect_api import background, servers
from twothirds.flows.prefect_api.background import BackgroundServer, stop_background_servers, terms_of_environment
from twothirds.flows.prefect_api.connection import starting_prefect
from twothirds.flows.prefect_api.environment import prefect_environment, state_folder
from twothirds.flows.prefect_api.servers import LocalServer, Terms, answers

ROOT = Path(__file__).parents[3]
LONG = 600.0  # idle seconds that no test waits for
TERMS = Terms(SecretStr("someone:secret"))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where servers that start at once are noted. None is left when the test ends."""
    program = Path(quick_server.__file__)
    monkeypatch.setattr(servers, "PROGRAM", program)
    monkeypatch.setattr(background, "PROGRAM", program)
    monkeypatch.setattr(background, "terms_of_settings", lambda: TERMS)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # no file of the clone has its say
    for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING"):  # of the server that other tests share
        monkeypatch.delenv(name, raising=False)
    for name, value in prefect_environment().items():
        monkeypatch.setenv(name, value)
    yield state_folder()
    stop_background_servers(state_folder())
    assert running(state_folder()) == []


def running(state: Path) -> list[int]:
    """The processes that were started for that folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(state) in command:
            found.append(int(folder.name))
    return found


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def shared(state: Path, idle: float = LONG) -> LocalServer:
    with BackgroundServer(state, idle) as lease:
        return lease.wait()


def test_the_next_run_finds_it_and_nobody_else_can_read_how(state: Path) -> None:
    first = shared(state)
    assert shared(state) == first
    assert len(running(state)) == 1
    [note] = state.glob("servers/*/note.json")
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert stat.S_IMODE(note.parent.stat().st_mode) == 0o700
    assert json.loads(note.read_text())["password"] == first.password.get_secret_value()


def test_it_is_nobodys_child_so_that_ctrl_c_does_not_reach_it(state: Path) -> None:
    shared(state)
    [pid] = running(state)
    assert int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) != os.getpid()
    assert os.getsid(pid) != os.getsid(0)


def test_it_ends_when_no_run_has_used_it_for_a_while_and_not_before(state: Path) -> None:
    with BackgroundServer(state, 0.5) as lease:
        url = lease.wait().url
        time.sleep(2)  # nothing is asked of it, as while a model takes its time
        assert answers(url)
    until(lambda: running(state) == [])
    assert list(state.glob("servers/*/note.json")) == []


START = """
import sys
from pathlib import Path
from pydantic import SecretStr
from twothirds.flows.prefect_api import background, servers
servers.PROGRAM = background.PROGRAM = Path(sys.argv[2])
background.terms_of_settings = lambda: servers.Terms(SecretStr("someone:secret"))
with background.BackgroundServer(Path(sys.argv[1]), 600.0) as lease:
    print(lease.wait().url)
"""


def test_processes_that_start_together_share_one(state: Path) -> None:
    command = [sys.executable, "-c", START, str(state), quick_server.__file__]
    started = [subprocess.Popen(command, cwd=state.parent, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = {process.communicate(timeout=120)[0] for process in started}
    assert len(printed) == 1
    assert printed != {""}
    assert len(running(state)) == 1


def test_one_that_was_killed_is_replaced_whatever_its_note_says(state: Path) -> None:
    killed = shared(state)
    [pid] = running(state)
    os.kill(pid, signal.SIGKILL)
    until(lambda: running(state) == [])
    assert list(state.glob("servers/*/note.json"))
    assert shared(state) != killed
    assert len(running(state)) == 1


@pytest.mark.parametrize("note", ["", "{}", '{"url": 1, "password": null, "pid": "x"}', "\xff"])
def test_a_note_that_cannot_be_read_is_replaced(state: Path, note: str) -> None:
    with BackgroundServer(state, LONG):
        pass
    [folder] = state.glob("servers/*")
    (folder / "note.json").write_text(note)
    assert answers(shared(state).url)


def test_one_that_cannot_start_is_one_line(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text("raise SystemExit(1)")
    monkeypatch.setattr(servers, "PROGRAM", tmp_path / "broken.py")
    with pytest.raises(ServerError, match=r"ended at once: see .*server.log"):
        shared(state)


def test_another_version_or_other_settings_have_a_server_of_their_own(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [shared(state)]
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "other"))
    found.append(shared(state))
    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.9.9")
    found.append(shared(state))
    (tmp_path / "prefect.toml").write_text("[server.database]\n")
    found.append(shared(state))
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "DEBUG")  # of clients: the same server will do
    assert shared(state) == found[-1]
    assert len(set(found)) == len(running(state)) == 4


def test_it_ends_when_its_folder_is_deleted(state: Path) -> None:
    shared(state)
    shutil.rmtree(state)
    until(lambda: running(state) == [])


def test_a_run_that_cannot_be_prepared_leaves_no_server(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOTHIRDS_SERVER_MINUTES", "10")
    with pytest.raises(ValueError, match="no such oracle"), starting_prefect():
        raise ValueError("no such oracle")
    until(lambda: running(state) == [])
    with starting_prefect():
        pass
    assert len(running(state)) == 1
    with pytest.raises(ValueError, match="no such oracle"), starting_prefect():
        raise ValueError("no such oracle")
    assert len(running(state)) == 1  # it was there before


def test_a_command_that_cannot_be_read_leaves_no_server(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started before the command is read."""
    monkeypatch.setenv("TWOTHIRDS_SERVER_MINUTES", "10")
    started: list[list[int]] = []
    monkeypatch.setattr("twothirds.flows.cli.app.build_app", lambda: started.append(running(state)))
    assert main(["discover", "datasets/faces", "--help"]) == 1
    assert main(["oracles"]) == 1
    assert started == [[], []]
    assert main(["discover", "datasets/faces"]) == 1
    assert len(started[-1]) == 1
    until(lambda: running(state) == [])


def test_nothing_is_started_where_runs_are_pointed_at_an_api(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with starting_prefect():
        assert running(state) == []
    monkeypatch.delenv("PREFECT_API_URL")
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    for profile, decides in {"PREFECT_API_URL": True, "PREFECT_SERVER_API_AUTH_STRING": True, "OTHER": False}.items():
        (tmp_path / "profiles.toml").write_text(f'active = "x"\n[profiles.x]\n{profile} = "a"\n[profiles.y]\nurl = "b"')
        assert (terms_of_environment() is None) == decides
    (tmp_path / ".env").write_text("PREFECT_API_URL=http://127.0.0.1:9/api")
    assert terms_of_environment() is None


@pytest.mark.parametrize("minutes", ["-1", "0", "soon", "nan", "1441"])
def test_minutes_that_make_no_sense_are_one_line(
    minutes: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TWOTHIRDS_SERVER_MINUTES", minutes)
    assert main(["discover", "datasets/faces", "--oracle", "simulated"]) == 2
    assert f"TWOTHIRDS_SERVER_MINUTES '{minutes}': give minutes" in capsys.readouterr().err


def test_a_command_stops_it_unless_a_run_uses_it(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", "stop"]) == 0
    assert capsys.readouterr().out == "no Prefect server runs in the background\n"
    with BackgroundServer(state, LONG) as lease:
        url = lease.wait().url
        assert main(["server", "stop"]) == 0
        assert capsys.readouterr().out == f"{url} goes on: a run uses it\n"
        assert answers(url)
    assert main(["server", "stop"]) == 0
    assert capsys.readouterr().out == f"stopped {url}\n"
    assert running(state) == []
