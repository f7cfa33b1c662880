"""New features are proposed from what the features of a table leave unresolved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.fake_openai.lifelike import Failings, LifelikeServer
from tests.support.growing_worlds import World, night
from twothirds.flows.discover.settings import WORKING_SET
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.forecast import forecast_enrichment
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models.prices import parse_price
from twothirds.sources import load_dataset
from twothirds.store import Store

PRICE = parse_price("0.15,0.60,0.075")
TRAITS = ("red", "round", "heavy", "shiny", "old")


def settings_of(world: World, **changed: Any) -> EnrichSettings:
    values = {
        "dataset": world.spec,
        "features": "red; round",
        "out": str(world.folder / "out"),
        "oracle": "simulated",
        "store": str(world.folder / "store.sqlite"),
    }
    return EnrichSettings.model_validate(values | changed)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 40, TRAITS)


def test_what_is_proposed_is_what_the_table_lacks_and_the_table_is_as_without_it(world: World) -> None:
    enrich_with(settings_of(world))
    before = (world.folder / "out" / "labels.parquet").read_bytes()
    summary = enrich_with(settings_of(world, propose=20))
    assert set(summary.proposed) <= {"heavy", "shiny", "old"}
    assert len(summary.proposed) >= 2
    assert pd.read_csv(world.folder / "out" / "proposals.csv")["name"].tolist() == summary.proposed
    assert (world.folder / "out" / "labels.parquet").read_bytes() == before
    assert any(line.startswith("proposed, in proposals.csv: ") for line in summary.lines())


def test_a_first_night_labels_and_proposes(world: World) -> None:
    summary = enrich_with(settings_of(world, propose=20))
    assert (summary.added, summary.stopped_because) == (40, "done")
    assert len(summary.proposed) >= 2


def test_proposals_can_be_enriched_as_they_are(world: World) -> None:
    enrich_with(settings_of(world, propose=20))
    again = settings_of(world, features=str(world.folder / "out" / "proposals.csv"), backfill=True)
    assert enrich_with(again).filled == 40


def test_a_budget_that_ends_the_questions_leaves_the_labels_and_is_said(world: World) -> None:
    settings = settings_of(world, oracle="simulated?price=0.001", propose=20, budget="0.09")
    summary = enrich_with(settings)
    assert (summary.added, summary.partial, summary.stopped_because) == (40, False, "budget")
    assert summary.cost_usd <= 0.09


def test_a_data_set_of_two_examples_is_labelled_and_nothing_is_proposed(tmp_path: Path) -> None:
    summary = enrich_with(settings_of(World(tmp_path / "small", 2, TRAITS), propose=5))
    assert (summary.added, summary.proposed, summary.stopped_because) == (2, [], "done")


def test_a_model_paid_by_the_token_labels_a_few_examples_with_several_features_at_a_time(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 200, TRAITS)
    with LifelikeServer(load_dataset(world.spec), Failings(slow=0.0), price=PRICE) as server:
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60,0.075&retry_delay=0.01"
        given = settings_of(world, oracle=oracle, features="red: It is red.")
        enrich_with(given)
        settings = given.model_copy(update={"propose": 8})
        expected = forecast_enrichment(settings)
        found = enrich_with(settings, run_id="cheap")
        assert found.proposed
        run_id = "cheap-2"
        with Store.open(str(world.folder / "store.sqlite")) as store:
            asked = {one.kind: one for one in store.costs.lines(run_id)}
            assert asked["label"].paid_calls <= 8 * WORKING_SET
            assert asked["label"].requests < asked["label"].paid_calls / 8
            assert store.costs.totals(run_id).paid <= expected.at_most
        again = enrich_with(settings, run_id="again")
        assert (again.proposed, again.cost_usd) == (found.proposed, 0)


def test_a_night_that_did_not_end_proposes_nothing(world: World) -> None:
    summary = night(world, oracle="simulated?price=0.001", budget="0.03", features="red; round", propose=5)
    assert (summary["stopped_because"], summary["proposed"]) == ("budget", [])
