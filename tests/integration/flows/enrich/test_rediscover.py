"""New features are proposed from what the features of a table leave unresolved."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.support.fake_openai.lifelike import Failings, LifelikeServer
from tests.support.growing_worlds import World, night
from twothirds.flows.discover.settings import WORKING_SET
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.forecast import forecast_rediscovery
from twothirds.flows.enrich.rediscover import rediscover_with
from twothirds.flows.enrich.settings import EnrichSettings, RediscoverSettings
from twothirds.models.prices import parse_price
from twothirds.reports.run.files import RunError
from twothirds.sources import load_dataset
from twothirds.store import Store

PRICE = parse_price("0.15,0.60,0.075")
TRAITS = ("red", "round", "heavy", "shiny", "old")


def settings_of(world: World, **changed: object) -> RediscoverSettings:
    values = {
        "dataset": world.spec,
        "table": str(world.folder / "out"),
        "oracle": "simulated",
        "store": str(world.folder / "store.sqlite"),
    }
    return RediscoverSettings.model_validate(values | changed)


def enriched(folder: Path, features: str) -> World:
    world = World(folder, 40, TRAITS)
    enrich_with(
        EnrichSettings(
            dataset=world.spec,
            features=features,
            oracle="simulated",
            store=str(world.folder / "store.sqlite"),
            out=str(world.folder / "out"),
        )
    )
    return world


def test_what_is_proposed_is_what_the_table_lacks(tmp_path: Path) -> None:
    world = enriched(tmp_path / "world", "red; round")
    before = (world.folder / "out" / "labels.parquet").read_bytes()
    rows = rediscover_with(settings_of(world)).rows
    assert {str(row["name"]) for row in rows} <= {"heavy", "shiny", "old"}
    assert len(rows) >= 2
    assert pd.read_csv(world.folder / "out" / "proposals.csv")["name"].tolist() == [row["name"] for row in rows]
    assert (world.folder / "out" / "labels.parquet").read_bytes() == before


def test_proposals_can_be_enriched_as_they_are(tmp_path: Path) -> None:
    world = enriched(tmp_path / "world", "red; round")
    rediscover_with(settings_of(world))
    summary = enrich_with(
        EnrichSettings(
            dataset=world.spec,
            features=str(world.folder / "out" / "proposals.csv"),
            oracle="simulated",
            backfill=True,
            store=str(world.folder / "store.sqlite"),
            out=str(world.folder / "out"),
        )
    )
    assert summary.filled == 40


def test_a_smaller_sample_is_drawn_from_the_whole(tmp_path: Path) -> None:
    world = enriched(tmp_path / "world", "red")
    rows = rediscover_with(settings_of(world, examples=10, queries=3)).rows
    assert rows
    assert len({name for row in rows for name in str(row["examples"]).split()}) >= 3


def test_a_model_paid_by_the_token_labels_a_few_examples_with_several_features_at_a_time(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 200, TRAITS)
    with LifelikeServer(load_dataset(world.spec), Failings(slow=0.0), price=PRICE) as server:
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60,0.075&retry_delay=0.01"
        settings = settings_of(world, oracle=oracle, queries=8)
        night(world, features="red: It is red.")
        expected = forecast_rediscovery(settings)
        assert expected.examples == WORKING_SET
        found = rediscover_with(settings, run_id="cheap")
        assert found.rows
        with Store.open(str(world.folder / "store.sqlite")) as store:
            asked = {one.kind: one for one in store.costs.lines("cheap")}
            assert asked["label"].paid_calls <= 8 * WORKING_SET
            assert asked["label"].requests < asked["label"].paid_calls / 8
            assert store.costs.totals("cheap").paid <= expected.at_most
        assert rediscover_with(settings, run_id="again").rows == found.rows
        with Store.open(str(world.folder / "store.sqlite")) as store:
            assert store.costs.totals("again").paid == 0


def test_without_a_table_it_says_what_to_do(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 5)
    with pytest.raises(RunError, match="twothirds enrich"):
        rediscover_with(settings_of(world))
