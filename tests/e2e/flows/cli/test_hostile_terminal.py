"""Names, ids and paths that would clear a screen, rename a window or turn a line around are printed as escapes; files
keep them as they are."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest

from twothirds.flows.cli.app import main
from twothirds.flows.cli.terminal import PlainConsole, as_json
from twothirds.flows.events import Events, Waiting
from twothirds.flows.subscribers.terminal import TerminalProgress
from twothirds.sources.printable import printable

CLEARS = "\x1b[2J\x1b]0;owned\x07"
TURNS = "\u202egpj.exe\u2066\u200f"  # these and what follows may be part of an id: no file and no table minds them
COLOURS = "\x9b31m\x85"
MARKUP = "[/red] [bold]x [link=http://h]"
NAME = f"{TURNS}{COLOURS}{MARKUP}"
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Texts, with truth, in a folder and under ids of that kind; some rows cannot be used."""
    folder = tmp_path / f"texts {CLEARS}{NAME.replace('/', '')}"
    folder.mkdir()
    ids = [f"{number}{NAME}" for number in range(12)]
    rows = [{"id": name, "text": f"text {name}"} for name in ids] + [{"id": f"{CLEARS}\n{NAME}", "text": "x"}]
    pd.DataFrame(rows).to_json(folder / "t.jsonl", orient="records", lines=True)
    truth = {"id": ids, f"odd {NAME}": [n & 1 for n in range(12)], f"two {NAME}": [n >> 1 & 1 for n in range(12)]}
    pd.DataFrame(truth).to_csv(folder / "truth.csv", index=False)
    return folder / "t.jsonl"


def assert_harmless(printed: Printed) -> str:
    caught = printed.readouterr()
    assert "Traceback" not in caught.err
    for line in (caught.out + caught.err).split("\n"):
        assert printable(line) == line
    return caught.out + caught.err


@pytest.mark.usefixtures("prefect_url")
def test_no_command_prints_what_a_terminal_would_obey_and_files_keep_it(
    dataset: Path, tmp_path: Path, capsys: Printed
) -> None:
    run, store = tmp_path / f"run{CLEARS}[/x]", ["--store", str(tmp_path / f"s{CLEARS}.sqlite")]
    crowd = ["--oracle", "simulated", "--queries", "4"]
    assert main(["discover", str(dataset), *crowd, *store, "--out", str(run)]) == 0
    said = assert_harmless(capsys)
    assert "\\x1b[2J\\x1b]0;owned\\x07" in said
    assert "left out" in said
    assert "\\u202egpj.exe\\u2066\\u200f\\x9b31m\\x85[/red] [bold]x [link=http://h]" in said.replace("\n", "")
    labels = pd.read_parquet(run / "labels.parquet")
    assert labels["id"].tolist() == [f"{number}{NAME}" for number in range(12)]
    left_out = json.loads((run / "run.json").read_text())["dataset"]["left_out"]
    assert [one["id"] for one in left_out] == [f"{CLEARS}\n{NAME}"]
    assert main(["features", str(run), "list", "--json"]) == 0
    listed = json.loads(assert_harmless(capsys))
    assert {one["name"] for one in listed} == {f"odd {NAME}", f"two {NAME}"}
    columns = [" ".join(one["name"].split()) for one in listed]  # a column's name is one line
    assert list(labels) == ["id", "digest", *columns]

    tables = ["--features", str(run), "--out", str(tmp_path / f"table{CLEARS}"), *store]
    both = ["--oracles", "simulated", "simulated?flip=0.1", "--queries", "2", "--out", str(tmp_path / f"both{CLEARS}")]
    for command in (
        ["enrich", str(dataset), "--oracle", "simulated", *tables],
        ["compare", str(dataset), *both, *store],
    ):
        assert main(command) == 0
        assert_harmless(capsys)
    given = ["--features", f"{NAME}: has {CLEARS}", "--out", str(tmp_path / "new"), *store]
    commands = [
        (75, ["enrich", str(dataset), "--oracle", f"human:{MARKUP}", *given]),
        (0, ["estimate", str(dataset), *crowd, *store]),
        (0, ["costs", *store]),
        (2, ["costs", CLEARS, *store]),
        (0, ["tree", str(run)]),
        (0, ["features", str(run), "list"]),
        (0, ["export", str(run), "--to", "wide-csv", "--out", str(tmp_path / f"export{CLEARS}")]),
        (0, ["review", "status", *store]),
        (0, ["review", "invite", f"Ann {TURNS}", "Bob", *store]),
        (2, ["review", "revoke", CLEARS, *store]),
        (2, ["review", CLEARS, *store]),
        (0, ["store", "check", *store]),
        (2, [CLEARS]),
        (2, ["discover", str(dataset), "--oracle", f"openai:{CLEARS}"]),
        (5, ["discover", f"gone{CLEARS}", "--oracle", "simulated"]),
    ]
    for status, command in commands:
        for more in ([], ["--json"])[: 1 if status == 75 else 2]:
            assert main([*command, *more]) == status, command
            assert_harmless(capsys)


@pytest.mark.parametrize("text", [CLEARS, NAME, MARKUP, "[/]", "\ud800", "\n\n", "😀[", "\x00"])
def test_a_live_display_obeys_nothing_in_what_it_shows(text: str) -> None:
    written = io.StringIO()
    console = PlainConsole(file=written, force_terminal=True, width=200)
    shown = Events(TerminalProgress(console))
    with shown.waiting(f"reading {text}"):
        pass
    with shown.counting(3, "things") as show:
        show(1, text)
        shown.emit(Waiting("people", text))
    shown.say(text)
    seen = written.getvalue()
    assert "\x1b[2J" not in seen
    assert not set("\x07\x9b\x85\u202e\u2066\u200f\ud800\x00") & set(seen)


def test_what_several_scripts_need_is_printed_as_it_is() -> None:
    for text in ("می\u200cخواهم", "क्\u200dष", "東京\u3000タワー", "naïve\xa0café", "עברית", "👩\u200d🔬"):
        assert printable(text) == text


@pytest.mark.parametrize("value", [NAME, [CLEARS], {"\u202e": "\U000e0001\ud800\x7f\n\\"}, "plain"])
def test_json_on_a_terminal_is_the_same_value(value: object) -> None:
    text = as_json(value)
    assert json.loads(text) == value
    assert all(printable(line) == line for line in text.split("\n"))
