"""A budget that is too small: questions are planned so that what they find can be labelled, and what lacks labels all
the same is said."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.growing_worlds import World
from tests.support.steered_runs import TRAITS, discovered, settings
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.reports.run import LIVE, LiveRun

EXAMPLES, COMPARED = 400, 20


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", EXAMPLES, TRAITS)


def of(world: World, **changed: Any) -> DiscoverSettings:
    return settings(world, **{"elicit_on": COMPARED, "label_rest": True} | changed)


def test_no_question_is_asked_whose_features_could_not_be_labelled(world: World) -> None:
    run = discovered(of(world, budget="1.3"))
    assert run.summary.stopped_because == "budget"
    assert 2 <= run.summary.queries < 6
    assert run.labels.notna().all(axis=None)
    assert run.summary.unlabelled is None
    assert 0.8 <= run.summary.cost_usd <= 1.3
    asked = f"{run.summary.queries} questions and all labels of what was found"
    line = f"the budget of 1.30 USD pays for {asked}, and not for more: raise --budget and run again"
    assert LiveRun(run.folder / LIVE).events()[-1]["message"] == line
    again = discovered(of(world, budget="1.3"))
    assert (again.summary.queries, again.summary.paid_calls) == (run.summary.queries, 0)
    more = discovered(of(world, budget="9"))
    assert more.summary.stopped_because == "queries"
    assert more.labels[list(run.labels)].equals(run.labels)
    elsewhere = {"store": f"{world.folder}/other.sqlite", "out": str(world.folder.parent / "undisturbed")}
    assert more.labels.equals(discovered(of(world, budget="9", **elsewhere)).labels)


def test_what_has_no_labels_is_said_with_what_they_cost(world: World) -> None:
    run = discovered(of(world, budget="0.25"))
    assert run.summary.queries == 1
    lacking = run.summary.unlabelled
    assert lacking is not None
    assert lacking.of == EXAMPLES
    assert lacking.examples == int(run.labels.isna().all(axis=1).sum()) > EXAMPLES / 4
    line = f"{lacking.examples} of 400 examples have no labels; about {lacking.usd_about:.2f} USD more labels them"
    assert line in run.summary.notices
    page = run.report().path.read_text(encoding="utf-8")
    assert line in page[: page.index("<dl")], "in the head"
    enough = Decimal(round(run.summary.total_usd + lacking.usd_about + 0.01, 2))
    done = discovered(of(world, budget=str(enough.quantize(Decimal("0.01")))))
    assert done.labels.notna().all(axis=None)
    assert done.summary.unlabelled is None
    assert done.summary.cost_usd == pytest.approx(lacking.usd_about, rel=0.05)


def test_of_examples_with_some_labels_that_is_said(world: World) -> None:
    run = discovered(of(world, budget="0.25", votes=1, elicit_on=None, label_rest=False, queries=2))
    lacking, missing = run.summary.unlabelled, run.labels.isna()
    assert lacking is not None
    assert (lacking.examples, lacking.partly) == (
        missing.all(axis=1).sum(),
        (missing.any(axis=1) & ~missing.all(axis=1)).sum(),
    )
    assert "have" in str(lacking)


def test_a_run_that_its_budget_pays_in_full_says_nothing(world: World) -> None:
    run = discovered(of(world, budget="9"))
    assert run.summary.stopped_because == "queries"
    assert "unlabelled" not in run.summary.to_json()
    assert not any("labels them" in line for line in run.summary.notices)
