"""The command line as a person meets it: results on stdout, one line per error, the right exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from twothirds.flows.cli.app import main

ROOT = Path(__file__).parents[4]
FACES = str(ROOT / "datasets" / "faces")
CROWD = ["--oracle", "simulated"]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "twothirds", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def bad_input(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that is printed; nothing else may be."""
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = [line for line in printed.err.splitlines() if not line.endswith("…")]
    assert len(lines) == 1, printed.err
    assert lines[0].startswith("error: ")
    return lines[0]


@pytest.fixture
def fresh(tmp_path: Path) -> list[str]:
    return ["--store", str(tmp_path / "store.sqlite"), "--out", str(tmp_path / "run")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["discover", FACES, "--oracle", "nobody"], "'nobody'"),
        (["discover", FACES, "--oracle", "simulated:mob"], "'mob'"),
        (["discover", FACES, "--oracle", "simulated?flip=often"], "'often'"),
        (["discover", FACES, "--oracle", "simulated?flip=2"], "flip=2"),
        (["discover", FACES, "--oracle", "simulated?colour=1"], "'colour'"),
        (["discover", FACES, *CROWD, "--strategy", "magic"], "'magic'"),
        (["discover", FACES, *CROWD, "--queries", "0"], "--queries '0'"),
        (["discover", FACES, *CROWD, "--queries", "many"], "--queries 'many'"),
        (["discover", FACES, *CROWD, "--votes", "-1"], "--votes '-1'"),
        (["discover", FACES, *CROWD, "--budget", "0"], "--budget '0'"),
        (["discover", FACES, *CROWD, "--budget", "-3"], "--budget '-3'"),
        (["discover", FACES, *CROWD, "--target-g", "7"], "--target-g '7'"),
        (["discover", FACES, *CROWD, "--provider-batch"], "--provider-batch is for openai:MODEL"),
        (["discover", *CROWD], "DATASET is missing"),
        (["discover", FACES], "--oracle is missing"),
        (["discover", "--config", "no.json"], "no.json"),
    ],
)
def test_bad_input_is_one_line_that_names_the_value(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], fresh: list[str]
) -> None:
    assert said in bad_input(capsys, *arguments, *fresh)


def test_a_folder_that_is_gone_or_empty_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fresh: list[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("gone", "empty"):
        assert main(["discover", str(tmp_path / name), *CROWD, *fresh]) == 5
        line = capsys.readouterr().err.splitlines()[-1]
        assert line.startswith("error: ")
        assert name in line
    assert not (tmp_path / "run").exists()


def test_an_output_folder_that_cannot_be_written_is_refused_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")  # a folder below a file cannot be made, not even by root
    places = ["--store", str(tmp_path / "store.sqlite"), "--out", str(tmp_path / "file" / "run")]
    assert "--out" in bad_input(capsys, "discover", FACES, *CROWD, *places)


def test_discover_writes_a_run_folder_and_a_repetition_pays_nothing(
    prefect_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], fresh: list[str]
) -> None:
    options = ["--oracle", "simulated?price=0.001", "--queries", "6", "--yes", "--json", *fresh]
    first = run("discover", FACES, *options, PREFECT_API_URL=prefect_url)
    assert first.returncode == 0, first.stderr
    summary = json.loads(first.stdout)
    assert "Traceback" not in first.stderr
    assert "CancelledError" not in first.stderr
    assert summary["queries"] == 6
    assert summary["paid_calls"] == 6 + 100 * summary["features"]
    assert summary["cost_usd"] == pytest.approx(summary["paid_calls"] * 0.001)
    labels = pd.read_parquet(tmp_path / "run" / "labels.parquet")
    columns = pd.read_csv(tmp_path / "run" / "features.csv")["column"]
    assert len(labels) == 100
    assert list(labels) == ["id", "digest", *columns]
    assert len(columns) == summary["features"]
    assert len((tmp_path / "run" / "answers.jsonl").read_text().splitlines()) == summary["paid_calls"]
    before = {name: (tmp_path / "run" / name).read_bytes() for name in ("labels.csv", "features.csv", "answers.jsonl")}

    again = run("discover", "--config", str(tmp_path / "run" / "run.json"), "--json", PREFECT_API_URL=prefect_url)
    assert again.returncode == 0, again.stderr
    assert f"{summary['paid_calls']} answers are stored already" in again.stderr
    repeated = json.loads(again.stdout)
    assert repeated["paid_calls"] == 0
    assert repeated["settings"] == summary["settings"]
    assert before == {name: (tmp_path / "run" / name).read_bytes() for name in before}

    assert main(["costs", str(tmp_path / "run"), "--json", "--store", str(tmp_path / "store.sqlite")]) == 0
    lines = json.loads(capsys.readouterr().out)
    assert sum(line["paid"] for line in lines) == summary["paid_calls"] * 1000
    assert sum(line["cached_worth"] for line in lines) == summary["paid_calls"] * 1000
    assert {line["kind"] for line in lines} == {"two-of-three", "label"}


def test_a_prefect_api_that_does_not_answer_is_one_line(fresh: list[str]) -> None:
    done = run("discover", FACES, *CROWD, *fresh, PREFECT_API_URL="http://127.0.0.1:9/api")
    assert done.returncode == 1
    assert "http://127.0.0.1:9/api does not answer" in done.stderr
    assert "Traceback" not in done.stderr
