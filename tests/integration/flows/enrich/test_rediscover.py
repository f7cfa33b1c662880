"""New features are proposed from what the features of a table leave unresolved."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from flows.enrich.flow import enrich_with
from flows.enrich.rediscover import rediscover_with
from flows.enrich.settings import EnrichSettings, RediscoverSettings
from reports.run.files import RunError
from tests.support.growing_worlds import World

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


def test_without_a_table_it_says_what_to_do(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 5)
    with pytest.raises(RunError, match="python -m flows enrich"):
        rediscover_with(settings_of(world))
