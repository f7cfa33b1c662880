"""`compare` as a person types it: what is printed, what bad input gets, and every command of its page."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.comparisons import feature_list, make_world
from tests.support.made import few_faces
from twothirds.flows.cli.app import main

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
CROWD = "simulated?flip=0.1"


@pytest.mark.parametrize("faces", [30, pytest.param(100, marks=pytest.mark.slow)])
def test_the_commands_of_the_page_work(
    prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], faces: int
) -> None:
    assert prefect_url
    monkeypatch.chdir(tmp_path)
    few_faces(tmp_path / "datasets" / "faces", faces)
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            words = shlex.split(line)
            assert words[:2] == ["twothirds", "compare"]
            assert main([*words[1:], "--store", str(tmp_path / "store.sqlite")]) == 0
    printed = capsys.readouterr().out
    assert "may replace" in printed
    assert "written to runs/replayed/compare.html" in printed
    first, again = (
        json.loads((tmp_path / "runs" / name / "comparison.json").read_text(encoding="utf-8"))
        for name in ("compare-faces", "replayed")
    )
    assert first["agreement"][0]["overall"] == again["agreement"][0]["overall"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--oracles", "nobody"], "'nobody'"),
        (["--oracles", CROWD, CROWD], "twice"),
        (["--oracles", CROWD, "--votes", "1,2"], "'1,2'"),
        (["--oracles", CROWD, "--votes", "many"], "'many'"),
        (["--oracles", CROWD, "--people", "human:team"], "'human:team'"),
        (["--oracles", "recorded"], "recorded:votes.csv"),
        (["--oracles", "recorded:nowhere.csv"], "nowhere.csv"),
        (["--oracles", f"{CROWD}&colour=1"], "'colour'"),
        (["--oracles", CROWD, "--accuracy", "95"], "--accuracy '95'"),
        (["--oracles", CROWD, "--features", "nowhere.csv"], "'nowhere.csv' is not there"),
        ([], "--oracles is missing"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    dataset = make_world(tmp_path, n=6)
    assert main(["compare", dataset, *arguments, "--store", str(tmp_path / "s.sqlite"), "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if not line.endswith("…")]
    assert len(lines) == 1, printed.err
    assert said in lines[0]
    assert printed.out == ""


def test_waiting_for_people_ends_with_75_and_one_line(
    prefect_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prefect_url
    monkeypatch.setattr(
        "twothirds.flows.subscribers.terminal.LINE_SECONDS", 600.0
    )  # no progress line, however slow the machine
    arguments = ["compare", make_world(tmp_path, n=5), "--oracles", CROWD, "human:team", "--votes", "1"]
    arguments += ["--features", feature_list(tmp_path / "f.csv"), "--store", str(tmp_path / "s.sqlite")]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 75
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len([line for line in printed.err.splitlines() if not line.endswith("…")]) == 1, printed.err
