"""Estimates of proposals and of report --target hold, and those of a store on PostgreSQL know what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.growing_worlds import World
from tests.support.postgres import PostgresServer
from twothirds.flows.cli.app import main
from twothirds.flows.discover.forecast import forecast_discovery
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.events import SILENT
from twothirds.flows.runs.report import budget_of, tagging_control
from twothirds.reports import Run

ORACLE = "simulated?price=0.001"


def estimated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["estimate", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_proposals_cost_about_what_was_estimated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(tmp_path / "world", 150, tuple(f"trait {number}" for number in range(12)))
    store = str(tmp_path / "store.sqlite")
    places = {"features": "trait 0: It is trait 0.", "out": str(world.folder / "out"), "store": store}
    given = places | {"oracle": "simulated", "propose": "6"}
    enrich_with(EnrichSettings.model_validate({"dataset": world.spec, **places, "oracle": ORACLE}))
    given["oracle"] = ORACLE
    options = [part for name, value in given.items() for part in (f"--{name}", value)]
    expected = estimated(capsys, "enrich", world.spec, *options)
    found = enrich_with(EnrichSettings.model_validate({"dataset": world.spec, **given}), run_id="again")
    proposals, booked = found.proposed, found.cost_usd
    assert booked <= expected["usd"]
    per_feature = booked / len(proposals)
    assert expected["usd_about"] / expected["features"] == pytest.approx(per_feature, rel=0.25)


def test_a_tagging_control_costs_about_what_was_estimated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(tmp_path / "world", 60, tuple(f"trait {number}" for number in range(8)))
    rows = pd.read_csv(world.spec)
    rows["weight"] = [sum(world.truth(name)) for name in rows["id"]]
    rows.to_csv(world.spec, index=False)
    places = {"store": str(tmp_path / "store.sqlite"), "out": str(tmp_path / "run")}
    given = {"dataset": world.spec, "oracle": ORACLE, "queries": 3}
    run_discovery(prepare(DiscoverSettings.model_validate(given | places)), run_id="run")
    expected = estimated(capsys, "report", places["out"], "--target", "weight")
    control = tagging_control(Run(tmp_path / "run"), None, budget_of("10"), SILENT)
    assert control is not None
    assert 0 < control.summary.cost_usd <= expected["usd"]
    assert main(["estimate", "report", places["out"], "--target", "height"]) == 2
    assert "height" in capsys.readouterr().err


def test_an_estimate_on_postgresql_leaves_out_what_is_kept(postgres: PostgresServer, tmp_path: Path) -> None:
    world, url = World(tmp_path / "world", 30), postgres.fresh_schema()
    given = {"dataset": world.spec, "oracle": ORACLE, "queries": 4, "store": url, "out": str(tmp_path / "run")}
    settings = DiscoverSettings.model_validate(given)
    before = forecast_discovery(prepare(settings))
    assert (before.stored, before.left) == (0, before.likely)
    cut_short = settings.model_copy(update={"queries": 2})
    outcome = run_discovery(prepare(cut_short), run_id="run")
    after = forecast_discovery(prepare(settings))
    assert after.stored == outcome.crowd.ledger.paid_calls
    assert after.left < before.left
    assert (after.spent, after.likely) == (outcome.crowd.ledger.cost, before.likely)
