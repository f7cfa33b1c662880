"""Marked secrets, and a server that repeats them in every reply and every error: afterwards they are in no file, no
line and no traceback. Prefect's database is one of the files."""

from __future__ import annotations

import base64
import os
import traceback
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_openai import CHAT, Abilities, FakeOpenAI
from tests.support.written_files import written_files
from twothirds.flows.cli.app import main
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.prefect_api.executor import send_history

KEY = "sk-marked-8c1f27d0e5"
PASSWORD = "marked-p%40ss-41f7"  # as it stands in an address
PLAIN = "marked-p@ss-41f7"
SECRETS = (KEY, PASSWORD, PLAIN, base64.b64encode(f"me:{PLAIN}".encode()).decode())
PATIENCE = "price=0.1,0.4&retry_delay=0.01&attempts=2&batch_poll=0.01"
ORACLE = f"openai:gpt-4o-mini?{PATIENCE}"
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def server(server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> FakeOpenAI:
    """One that repeats everything it receives."""
    server.echo = SECRETS
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url.replace("http://", f"http://me:{PASSWORD}@"))
    return server


def found_in(text: str | bytes) -> list[str]:
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return [secret for secret in SECRETS if secret.encode() in content]


def leaks(*folders: Path) -> list[tuple[str, list[str]]]:
    found = [(str(path), found_in(content)) for path, content in written_files(*folders)]
    assert len(found) > 5
    return [(path, secrets) for path, secrets in found if secrets]


def test_what_a_server_repeats_reaches_no_record(server: FakeOpenAI, dataset: Path, tmp_path: Path) -> None:
    server.script(CHAT, [None, "500", "prose", "429"])
    for place, batch in enumerate((False, True)):
        folder = tmp_path / f"run{place}"
        settings = DiscoverSettings(
            dataset=str(dataset),
            oracle=ORACLE,
            queries=3,
            provider_batch=batch,
            store=str(folder / "s.sqlite"),
            out=str(folder),
        )
        outcome = run_discovery(prepare(settings), run_id=f"run {place}")
        assert outcome.progress.findings
        assert any('"echo": ["***"' in answer.raw for _, answer in outcome.progress.asked)
    assert leaks(tmp_path, Path(os.environ["XDG_CACHE_HOME"])) == []


@pytest.mark.usefixtures("prefect_url")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_no_error_line_and_no_traceback_repeats_them(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, capsys: Printed, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.abilities = Abilities(always=status)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = [
        "discover",
        str(dataset),
        "--oracle",
        ORACLE,
        "--queries",
        "2",
        "--yes",
        "--store",
        str(tmp_path / "s.sqlite"),
        "--out",
        str(tmp_path),
    ]
    assert main(command) == (4 if status in (429, 500) else 2)
    with pytest.raises(Exception, match=r".") as caught:
        main([*command, "--debug"])
    said = "".join(traceback.format_exception(caught.value))
    printed = capsys.readouterr()
    assert printed.err.count("error: ") == 1
    assert found_in(said + printed.out + printed.err) == []


HOLD_A_SECRET = [
    ("--oracle", f"openai:gpt-4o-mini?api_key={KEY}"),
    ("--oracle", f"openai:gpt-4o-mini?base_url=http://me:{PASSWORD}@host/v1"),
    ("--oracle", f"openai:gpt-4o-mini?base_url=http%3A%2F%2Fme%3A{PASSWORD}%40host"),
    ("--store", f"postgresql://me:{PASSWORD}@127.0.0.1:1/db"),
    ("--store", f"postgresql://127.0.0.1:1/db?password={PLAIN}"),
    ("", f"https://me:{PASSWORD}@127.0.0.1:1/data.csv"),
    ("", f"zip://data.csv::https://me:{PASSWORD}@127.0.0.1:1/data.zip"),
]
COMMANDS = [(command, *held) for command in ("discover", "enrich", "compare") for held in HOLD_A_SECRET]


@pytest.mark.parametrize(
    ("command", "option", "value"), [*COMMANDS, ("discover", "--labeller", f"openai:gpt-4o-mini?token={KEY}")]
)
def test_settings_that_hold_a_secret_are_refused_without_repeating_it(
    dataset: Path, capsys: Printed, command: str, option: str, value: str
) -> None:
    given = {"--oracles" if command == "compare" else "--oracle": "simulated"}
    if command == "enrich":
        given["--features"] = "hat: It wears a hat."
    if command == "compare" and option == "--oracle":
        option = "--oracles"
    if option:
        given[option] = value
    words = [word for pair in given.items() for word in pair]
    assert main([command, value if not option else str(dataset), *words]) == 2
    printed = capsys.readouterr()
    [line] = printed.err.splitlines()
    assert "instead" in line or "put it into a variable" in line
    assert found_in(printed.out + printed.err) == []


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_url")
def test_after_every_kind_of_run_they_are_found_nowhere(
    server: FakeOpenAI,
    dataset: Path,
    tmp_path: Path,
    capsys: Printed,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The key comes from a secret block, as a deployment gives it to its worker."""
    from prefect.blocks.system import Secret

    from twothirds.flows.discover.flow import discover_flow

    Secret(value=KEY).save("marked-key", overwrite=True)
    block: Any = Secret.load("marked-key")
    monkeypatch.setenv("OPENAI_API_KEY", block.get())
    store = ["--store", str(tmp_path / "s.sqlite")]
    run = tmp_path / "run"
    server.script(CHAT, [None, "500", "prose"])
    assert (
        main(["discover", str(dataset), "--oracle", ORACLE, "--queries", "4", "--yes", *store, "--out", str(run)]) == 0
    )
    table = ["--features", str(run), "--out", str(tmp_path / "table")]
    assert main(["enrich", str(dataset), "--oracle", ORACLE, "--yes", *table, *store]) == 0
    both = ["--oracles", ORACLE, f"{ORACLE}&temperature=1", "--votes", "1", "--features", str(run)]
    assert main(["compare", str(dataset), *both, "--yes", *store, "--out", str(tmp_path / "both")]) == 0
    settings = DiscoverSettings(dataset=str(dataset), oracle=ORACLE, queries=5, store=store[1], out=str(tmp_path / "f"))
    assert discover_flow(settings, return_state=True).is_completed()
    server.abilities = Abilities(key="another", always=401)
    died = discover_flow(settings.model_copy(update={"queries": 7}), return_state=True)
    assert died.is_failed()
    assert "does not accept the API key" in (died.message or "")
    assert found_in(repr(died) + (died.message or "")) == []
    send_history()  # Prefect writes logs down a moment later
    printed = capsys.readouterr()
    assert found_in(printed.out + printed.err) == []
    databases = [path.name for path in tmp_path_factory.getbasetemp().rglob("*.db")]
    assert databases  # Prefect's is among what is searched
    assert leaks(tmp_path_factory.getbasetemp()) == []
