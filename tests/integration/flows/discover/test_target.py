"""A discovery towards a target: its questions, what is held out, what it says of the target, and that it resumes."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from tests.support.heard import Heard
from tests.support.made import letters
from twothirds.discovery.questions import Kind
from twothirds.flows.discover.preparation import Prepared, prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.runs import forecast_control, report
from twothirds.flows.runs.report import unguided_control
from twothirds.reports import Run
from twothirds.reports.page import lacks_unguided
from twothirds.reports.run import RunError

N, M = 160, 40


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts with hidden attributes; `cause` is one of them with noise, `chance` a coin, `size` the sum of three."""
    folder = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(5)
    truth = (rng.random((N, M)) < rng.uniform(0.2, 0.6, M)).astype(int)
    names = [f"trait {letters(column)}" for column in range(M)]
    cause = truth[:, 30] ^ (rng.random(N) < 0.05)
    columns: dict[str, Any] = {
        "cause": np.where(cause, "ill", "well"),
        "chance": np.where(rng.random(N) < 0.5, "heads", "tails"),
        "size": np.round(truth[:, :3] @ [3, 2, 1] + rng.normal(0, 0.3, N), 3),
        "kind": np.array(["cat", "dog", "cow"])[rng.integers(0, 3, N)],
        "patient": [f"p{number % 20}" for number in range(N)],
        "day": [f"2026-{1 + number // 28:02}-{1 + number % 28:02}" for number in range(N)],
    }
    with (folder / "world.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("id", "text", *columns), *((f"e{r}", f"text {r}", *(c[r] for c in columns.values())) for r in range(N))]
        )
    with (folder / "truth.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", *names), *((f"e{row}", *truth[row]) for row in range(N))])
    return folder


def prepared(world: Path, folder: Path, **changed: Any) -> Prepared:
    given: dict[str, Any] = {
        "dataset": str(world / "world.csv"),
        "oracle": "simulated",
        "queries": 12,
        "store": str(folder / "store.sqlite"),
        "out": str(folder / "run"),
    }
    return prepare(DiscoverSettings.model_validate(given | changed))


def discovered(world: Path, folder: Path, **changed: Any) -> Run:
    made = prepared(world, folder, **changed)
    run_discovery(made, run_id=str(uuid4()))
    return Run(made.folder)


def test_it_finds_what_predicts_the_target_and_says_so(world: Path, tmp_path: Path) -> None:
    run = discovered(world, tmp_path, target="cause")
    score = run.summary.target
    assert score is not None
    assert score.predicts
    assert score.score > 0.85
    assert len(score.curve) == run.summary.queries == 12
    assert score.trained_on + score.held_out == N
    groups = [asked for asked in run.findings.comparisons if asked.kind is Kind.GROUPS]
    assert len(groups) >= 5
    page = run.report(dataset=str(world / "world.csv")).path.read_text()
    assert '<section id="aim">' in page
    assert "What do clearly more of one group have than of the other?" in page


def test_no_question_shows_a_held_out_example_in_a_group(world: Path, tmp_path: Path) -> None:
    made = prepared(world, tmp_path, target="cause", hold_out_by="patient")
    assert made.target is not None
    held_out = {made.dataset.examples[row].id for row in np.flatnonzero(made.target.held_out)}
    patients = {name: int(name[1:]) % 20 for name in (example.id for example in made.dataset.examples)}
    assert not {patients[name] for name in held_out} & {patients[name] for name in patients if name not in held_out}
    run_discovery(made, run_id=str(uuid4()))
    for asked in Run(made.folder).findings.comparisons:
        if asked.kind is Kind.GROUPS:
            assert held_out.isdisjoint({*asked.examples, *asked.without})


def test_the_last_ones_are_held_out_where_the_column_is_a_time(world: Path, tmp_path: Path) -> None:
    target = prepared(world, tmp_path, target="cause", hold_out_by="day").target
    assert target is not None
    assert np.flatnonzero(target.held_out).tolist() == list(range(120, N))


def test_of_a_coin_it_says_that_nothing_predicts_it(world: Path, tmp_path: Path) -> None:
    run = discovered(world, tmp_path, target="chance")
    score = run.summary.target
    assert score is not None
    assert not score.predicts
    assert "do not predict it" in str(score)
    assert "do not predict" in run.report(dataset=str(world / "world.csv")).path.read_text()


def test_a_number_and_two_values_of_a_column_are_targets(world: Path, tmp_path: Path) -> None:
    number = discovered(world, tmp_path / "number", target="size").summary.target
    assert number is not None
    assert (number.measure, number.classes) == ("R²", [])
    between = prepared(world, tmp_path / "between", between="kind=cat,dog").target
    assert between is not None
    assert between.classes == ("cat", "dog")
    assert set(between.values[between.known]) == {0, 1}


def test_an_unguided_control_asks_no_group_and_is_scored(world: Path, tmp_path: Path) -> None:
    guided = discovered(world, tmp_path, target="cause")
    out = str(guided.folder / "unguided")
    control = discovered(world, tmp_path, target="cause", unguided=True, out=out)
    assert control.summary.target is not None
    assert not [asked for asked in control.findings.comparisons if asked.kind is Kind.GROUPS]
    assert "unguided strategy (" in guided.report(dataset=str(world / "world.csv")).path.read_text()


@pytest.mark.slow
def test_a_report_on_the_target_makes_the_unguided_control_within_its_budget(world: Path, tmp_path: Path) -> None:
    run = discovered(world, tmp_path, target="cause", oracle="simulated?price=0.001", queries=3)
    heard = Heard()
    both, tags = (forecast_control(run, column, None) for column in ("cause", "kind"))
    assert unguided_control(run, None, None, heard.stream) is None
    assert "no unguided control: it will likely cost" in heard.said[-1]
    assert lacks_unguided(run.folder, run.summary, "cause")
    page = report(run, target="cause", budget="2").path.read_text()
    assert "unguided strategy (" in page
    control = Run(run.folder / "unguided").summary
    assert (control.queries, control.settings["unguided"], control.settings["target"]) == (3, True, "cause")
    assert not lacks_unguided(run.folder, run.summary, "cause")
    spent = [one.total_usd or 0 for one in (control, Run(run.folder / "tagging").summary)]
    assert 0 < sum(spent) <= 2
    assert 0 < spent[0] * 1_000_000 <= both.at_most - tags.at_most, "the estimate held both controls"


def test_a_repetition_pays_for_nothing_and_without_a_target_nothing_is_another_run(world: Path, tmp_path: Path) -> None:
    first = discovered(world, tmp_path, target="cause", oracle="simulated?price=0.001").summary
    again = discovered(world, tmp_path, target="cause", oracle="simulated?price=0.001").summary
    assert (again.paid_calls, first.paid_calls > 0) == (0, True)
    assert again.target == first.target
    with pytest.raises(RunError, match="holds another run"):
        discovered(world, tmp_path, oracle="simulated?price=0.001")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"target": "cause", "between": "kind=cat,dog"}, "two targets"),
        ({"between": "kind=cat"}, "is not COLUMN=VALUE,VALUE"),
        ({"between": "kind=cat,horse"}, "names a value that column 'kind' lacks"),
        ({"hold_out_by": "day"}, "needs a target"),
        ({"target": "cause", "hold_out_by": "week"}, "has no column 'week'"),
        ({"target": "price"}, "has no column 'price'"),
    ],
)
def test_what_is_wrong_with_a_target_is_said_before_anything_is_asked(
    world: Path, tmp_path: Path, given: dict[str, Any], problem: str
) -> None:
    with pytest.raises((UsageError, RunError), match=problem):
        prepared(world, tmp_path, **given)
