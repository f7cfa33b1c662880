"""docs/deploy.md, command by command, against a real Prefect server on PostgreSQL and a real worker."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import psycopg
import pytest

from tests.support.drive_by import basic
from tests.support.postgres import PostgresMissing, PostgresServer, start_postgres
from tests.support.webhook import listening

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LONG_RUNNING = ("twothirds server", "twothirds worker")
PATIENCE = 400.0
ENDING_WITH_US = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []

SLOW = "simulated?price=0.001&latency=1.5&width=4&flip=0"  # a minute for 300 labels, on two threads
THREE = "beard; glasses; smile"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1750)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(happened: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := happened():
            return found
        time.sleep(0.5)
    raise AssertionError(f"{what} did not happen within {PATIENCE:.0f} s")


@dataclass
class Terminal:
    """Runs the lines of a page as a reader would, with this test's addresses for those of the page."""

    folder: Path
    port: int
    addresses: dict[str, str]
    environment: dict[str, str]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)  # by the first words of their command
    said: list[str] = field(default_factory=list)

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    def run_page(self, page: str) -> None:
        for kind, text in BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8")):
            if kind == "python":
                self.run_line([sys.executable, "-c", text])
                continue
            for line in text.splitlines():
                self.line(line)

    def line(self, line: str) -> str:
        for shown, real in self.addresses.items():
            line = line.replace(shown, real)
        words = shlex.split(line)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            shell = ["sh", "-c", f'printf %s "{value}"']
            said = subprocess.run(shell, cwd=self.folder, capture_output=True, text=True, check=True)
            self.environment[name] = said.stdout
            return ""
        if line.startswith(LONG_RUNNING):
            self.start(words)
            return ""
        return self.run_line(words)

    def start(self, words: list[str]) -> None:
        name = next(name for name in LONG_RUNNING if name in shlex.join(words))
        with (self.folder / f"{words[1]}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [*ENDING_WITH_US, *self._program(words)],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if "server" in words:
            until(self.answers, "the server's answer")

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.api}/health", timeout=5) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def run_line(self, words: list[str]) -> str:
        done = subprocess.run(
            self._program(words),
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,  # no terminal: nothing may ask
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
        self.said.append(done.stdout)
        return done.stdout

    def _program(self, words: list[str]) -> list[str]:
        if words[0] == "prefect":
            return [sys.executable, "-m", "prefect", *words[1:]]
        return [sys.executable, *words[1:]] if words[0] == "python" else words

    def ask(self, path: str, **content: Any) -> Any:
        body = json.dumps(content).encode()
        password = basic(self.environment["PREFECT_API_AUTH_STRING"])
        headers = {"Content-Type": "application/json", "Authorization": password}
        request = urllib.request.Request(f"{self.api}{path}", body, headers)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    def end(self, name: str, how: signal.Signals = signal.SIGINT) -> None:
        process = self.running.pop(name)
        if process.poll() is None:
            os.killpg(process.pid, how)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def close(self) -> None:
        for name in reversed(list(self.running)):
            self.end(name)


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    try:
        server = start_postgres()
    except PostgresMissing as missing:
        pytest.skip(str(missing))
    yield server
    server.close()


@pytest.fixture
def terminal(tmp_path: Path, postgres: PostgresServer) -> Iterator[Terminal]:
    clone = tmp_path / "clone"
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(".venv", ".git", "enriched", ".*cache", "docs"))
    shutil.rmtree(clone / "runs", ignore_errors=True)
    port = free_port()
    create_databases(postgres)
    addresses = {
        "postgresql+asyncpg://prefect:prefect@localhost:5432/prefect": database_of_page(postgres, "prefect").replace(
            "postgresql:", "postgresql+asyncpg:", 1
        ),
        "postgresql://twothirds:twothirds@localhost:5432/twothirds": database_of_page(postgres, "twothirds"),
        "4200": str(port),
        "~/.local/state": str(tmp_path / "state"),
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= {"PREFECT_HOME": str(tmp_path / "prefect"), "XDG_STATE_HOME": str(tmp_path / "state")}
    environment |= {"OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    # A slot of a run that died is free after a minute, and not after five as on the page.
    environment |= {"PREFECT_SERVER_CONCURRENCY_INITIAL_DEPLOYMENT_LEASE_DURATION": "60"}
    made = Terminal(clone, port, addresses, environment)
    yield made
    made.close()


def database_of_page(server: PostgresServer, name: str) -> str:
    """Of the role and with the name that the page creates."""
    return server.url.replace("tests@", f"{name}:{name}@").replace("/postgres?", f"/{name}?")


def create_databases(server: PostgresServer) -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    [statements] = re.findall(r"^```sql\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    with psycopg.connect(server.url, autocommit=True) as connection:
        for statement in statements.splitlines():
            connection.execute(statement.encode())


def test_the_page_takes_a_newcomer_to_a_scheduled_run_that_survives_restarts(
    terminal: Terminal, postgres: PostgresServer
) -> None:
    terminal.run_page("deploy.md")
    said = "\n".join(terminal.said)
    assert "0 3 * * *" in said
    assert "twothirds: a run failed" in said
    labels = pd.read_parquet(terminal.folder / "enriched" / "faces" / "labels.parquet")
    assert len(labels) == 100
    assert labels["glasses"].notna().all()
    a_scheduled_run_happens(terminal)
    a_used_up_budget_is_reported(terminal)
    a_violated_contract_is_reported_and_the_table_stays(terminal)
    database_and_server_are_restarted_in_the_middle(terminal, postgres)
    the_worker_is_killed_in_the_middle(terminal)
    a_scheduled_run_happens(terminal)
    terminal.line("twothirds store check")


def a_scheduled_run_happens(terminal: Terminal) -> None:
    """The night is not waited for: another schedule, every few seconds, starts the same deployment."""

    def completed() -> int:
        runs = runs_of(terminal, "enrich")
        return len([run for run in runs if run["auto_scheduled"] and run["state_type"] == "COMPLETED"])

    before = completed()
    terminal.line("prefect deployment schedule create enrich/enrich --interval 15")
    until(lambda: completed() > before, "a scheduled run")
    terminal.line("prefect deployment schedule clear enrich/enrich -y")


@contextmanager
def ears(terminal: Terminal) -> Iterator[list[str]]:
    """What the automations of automations.yaml tell, as a chat program would get it."""
    with listening() as (address, heard):
        saved = (
            "from prefect.blocks.notifications import CustomWebhookNotificationBlock as B; "
            f"B(name='ear', url='{address}', "
            "json_data={'text': '{{body}}'}).save('ear', overwrite=True); "
            "from pathlib import Path; template = Path('automations.yaml').read_text(); "
            "Path('ears.yaml').write_text(template.replace('BLOCK_ID', str(B.load('ear')._block_document_id)))"
        )
        terminal.run_line([sys.executable, "-c", saved])
        terminal.line("prefect automation create --from-file ears.yaml")
        yield heard


def a_used_up_budget_is_reported(terminal: Terminal) -> None:
    with ears(terminal) as heard:
        enrich(terminal, oracle="simulated?price=0.01", budget="0.05", out="enriched/dear")
        until(lambda: any("raise --budget" in one for one in heard), "the notification")


def a_violated_contract_is_reported_and_the_table_stays(terminal: Terminal) -> None:
    table = terminal.folder / "enriched" / "faces" / "labels.parquet"
    before = table.read_bytes()
    (terminal.folder / "expect.json").write_text('{"rows": {"max": 10}}')
    with ears(terminal) as heard:
        enrich(
            terminal, features="glasses: The person wears glasses.; smile: The mouth is smiling.", expect="expect.json"
        )
        until(lambda: any("at most 10 are expected" in one for one in heard), "the notification")
    assert table.read_bytes() == before
    assert any(run["state_name"] == "ContractViolated" for run in runs_of(terminal, "enrich"))


def database_and_server_are_restarted_in_the_middle(terminal: Terminal, postgres: PostgresServer) -> None:
    """Each while answers come in; the run goes on, and its table is whole."""
    enrich(terminal, oracle=SLOW, features=THREE, out="enriched/restarted")
    until(lambda: answered(terminal, "restarted") > 20, "some answers")
    postgres.stop()
    time.sleep(2)
    postgres.start()
    so_far = answered(terminal, "restarted")
    until(lambda: answered(terminal, "restarted") > so_far + 20, "answers after the database is back")
    terminal.end("twothirds server")
    terminal.line("twothirds server --port 4200")
    assert until(lambda: summary_of(terminal, "restarted"), "the table")["rows"] == 100
    assert whole(terminal, "restarted")


def the_worker_is_killed_in_the_middle(terminal: Terminal) -> None:
    """With its run. The next one pays only for what had not arrived."""
    enrich(terminal, oracle=SLOW.replace("flip=0", "flip=0.001"), features=THREE, out="enriched/killed")
    until(lambda: answered(terminal, "killed") > 20, "some answers")
    terminal.end("twothirds worker", signal.SIGKILL)
    before = answered(terminal, "killed")
    terminal.line("twothirds worker --pool twothirds")

    def done() -> bool:
        if not summary_of(terminal, "killed"):  # a run that comes while the slot is taken is cancelled
            enrich(terminal, oracle=SLOW.replace("flip=0", "flip=0.001"), features=THREE, out="enriched/killed")
            time.sleep(20)
        return bool(summary_of(terminal, "killed"))

    until(done, "the run after the worker was killed")
    assert whole(terminal, "killed")
    assert 20 < before < 300
    assert answered(terminal, "killed") == 300, "each label is paid for once, over all runs"


def enrich(terminal: Terminal, **changed: str) -> None:
    """Start the deployment with other settings than its own, and do not wait for it."""
    settings = {"dataset": "datasets/faces", "features": "beard", "oracle": "simulated", "out": "enriched/faces"}
    given = shlex.quote(f"settings={json.dumps(settings | changed)}")
    terminal.line(f"prefect deployment run enrich/enrich --param {given}")


def answered(terminal: Terminal, table: str) -> int:
    """How many labels of a table the store has."""
    url = terminal.environment["TWOTHIRDS_STORE"]
    query = (
        "SELECT coalesce(sum(paid_calls), 0) FROM cost_totals JOIN runs ON runs.id = cost_totals.run WHERE name = %s"
    )
    try:
        with psycopg.connect(url) as connection:
            return int((connection.execute(query, (table,)).fetchone() or (0,))[0])
    except psycopg.OperationalError:
        return 0


def summary_of(terminal: Terminal, table: str) -> dict[str, Any]:
    path = terminal.folder / "enriched" / table / "enrich.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {} if found.get("partial") else found


def whole(terminal: Terminal, table: str) -> bool:
    labels = pd.read_parquet(terminal.folder / "enriched" / table / "labels.parquet")
    return len(labels) == 100 and bool(labels.notna().all(axis=None))


def runs_of(terminal: Terminal, flow: str, **filters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = terminal.ask("/flow_runs/filter", flows={"name": {"any_": [flow]}}, **filters)
    return found
