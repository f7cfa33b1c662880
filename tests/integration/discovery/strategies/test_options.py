"""What the command line says about strategies, on whole discoveries with a real store and without a server."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.made import letters, random_truth
from twothirds.flows.cli.app import main
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.reports.finished_run import Run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(tmp_path / "table", 40)


def written(folder: Path, n: int) -> Path:
    """A table of n texts with its truth."""
    folder.mkdir()
    truth = random_truth(n, 12)
    with (folder / "texts.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *([f"e{i}", f"text {i}"] for i in range(n))])
    with (folder / "truth.csv").open("w", newline="") as file:
        names = [f"feature {letters(column)}" for column in range(12)]
        csv.writer(file).writerows([["id", *names], *([f"e{i}", *row] for i, row in enumerate(truth.tolist()))])
    return folder / "texts.csv"


def discovered(table: Path, **settings: Any) -> Run:
    places = {"store": str(table.parent / "store.sqlite"), "out": str(table.parent / "run")}
    wanted = {"queries": 10, "oracle": "simulated"} | places | settings
    prepared = prepare(DiscoverSettings.model_validate({"dataset": str(table)} | wanted))
    run_discovery(prepared, run_id=str(uuid4()))
    return Run(prepared.folder)


def kinds_asked(run: Run) -> list[str]:
    questions = [json.loads(line)["question"] for line in (run.folder / "answers.jsonl").read_text().splitlines()]
    return [question["kind"] for question in questions if question["kind"] != "label"]


def labels_of(run: Run) -> list[dict[str, str]]:
    with (run.folder / "labels.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_auto_is_what_discover_does_when_nothing_else_is_said(table: Path) -> None:
    run = discovered(table)
    assert run.summary.settings["strategy"] == "auto"
    assert run.summary.truth is not None
    assert run.summary.truth.matched == run.summary.features > 5


@pytest.mark.parametrize("options", [{"theta": 3}, {"degree": 2, "delta": 0.5}])
def test_a_hybrid_on_noisy_labels_ends(tmp_path: Path, options: dict[str, Any]) -> None:
    table = written(tmp_path / "small", 12)
    run = discovered(table, strategy="adaptive-hybrid", oracle="simulated?flip=0.2", queries=5000, **options)
    assert run.summary.stopped_because == "nothing-unresolved"


@pytest.mark.parametrize("strategy", ["auto", "adaptive-triple", "adaptive-pair", "adaptive-hybrid", "tagging"])
def test_each_of_several_voters_is_a_query_and_how_far_they_agree_is_reported(table: Path, strategy: str) -> None:
    run = discovered(table, strategy=strategy, voters=2, queries=9)
    assert run.summary.queries == 9
    assert run.summary.voters_agree is not None
    assert 0 <= run.summary.voters_agree <= 1


def test_voters_of_a_crowd_that_shares_one_order_of_preference_always_agree(table: Path) -> None:
    summary = discovered(table, oracle="simulated:homogeneous", strategy="adaptive-triple", voters=3).summary
    assert summary.voters_agree == 1


def test_people_are_shown_three_examples_and_a_crowd_more_where_three_show_too_little(table: Path) -> None:
    assert set(kinds_asked(discovered(table, queries=40))) == {"two-of-three", "shared"}


def test_only_the_chosen_subset_is_labelled_unless_the_rest_is_asked_for(table: Path) -> None:
    run = discovered(table, elicit_on=15, votes=1)
    compared = run.summary.dataset.compared_ids
    assert compared is not None
    assert len(compared) == 15
    known = {row["id"] for row in labels_of(run) if any(value for name, value in row.items() if name != "id")}
    assert known == set(compared)

    whole = discovered(table, elicit_on=15, votes=1, label_rest=True)
    assert whole.summary.dataset.compared_ids == compared
    assert whole.summary.cached_calls == run.summary.paid_calls
    assert all(all(row.values()) for row in labels_of(whole))
    assert whole.summary.truth is not None
    assert whole.summary.truth.mean_balanced_accuracy == 1.0


def test_a_budget_that_ends_while_the_rest_is_labelled_is_the_reason_to_stop(table: Path) -> None:
    options = {"elicit_on": 10, "queries": 3, "oracle": "simulated?price=0.001", "budget": "0.06"}
    assert discovered(table, **options).summary.stopped_because == "queries"
    run = discovered(table, **options, label_rest=True)
    assert run.summary.stopped_because == "budget"
    assert run.summary.cost_usd <= 0.06
    assert any(not all(row.values()) for row in labels_of(run))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--strategy", "adaptive-hybrid", "--theta", "0"], "--theta '0'"),
        (["--strategy", "adaptive-hybrid", "--degree", "1"], "--degree '1'"),
        (["--strategy", "adaptive-hybrid", "--delta", "1.5"], "--delta '1.5'"),
        (["--strategy", "adaptive-hybrid", "--theta", "3", "--degree", "3"], "give either theta or those two"),
        (["--strategy", "adaptive-triple", "--theta", "3"], "has no option 'theta'"),
        (["--strategy", "tagging", "--beyond"], "has no option 'beyond'"),
        (["--beyond"], "has no option 'beyond'"),
        (["--voters", "0"], "--voters '0'"),
        (["--elicit-on", "2"], "--elicit-on '2'"),
    ],
)
def test_the_impossible_is_one_line_and_status_2(
    table: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--store", str(table.parent / "store.sqlite"), "--out", str(table.parent / "run")]
    assert main(["discover", str(table), "--oracle", "simulated", *options, *places]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.endswith("…")]
    assert len(lines) == 1
    assert said in lines[0]


@pytest.mark.parametrize("strategy", ["auto", "adaptive-triple", "random-triple", "adaptive-hybrid"])
def test_fewer_than_three_examples_are_refused(
    tmp_path: Path, strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(tmp_path / "two", 2)
    places = ["--store", str(tmp_path / "store.sqlite"), "--out", str(tmp_path / "run")]
    assert main(["discover", str(table), "--oracle", "simulated", "--strategy", strategy, *places]) == 2
    assert "at least 3 examples, and there are 2" in capsys.readouterr().err


def test_the_same_settings_ask_the_same_questions(table: Path) -> None:
    def questions(store: str) -> list[dict[str, Any]]:
        run = discovered(table, store=str(table.parent / store))
        return [json.loads(line)["question"] for line in (run.folder / "answers.jsonl").read_text().splitlines()]

    assert questions("one.sqlite") == questions("another.sqlite")
