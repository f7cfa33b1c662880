"""What a run costs that predicts labels is estimated before it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.growing_worlds import TellingWorld, night
from twothirds.flows.cli.app import main
from twothirds.flows.discover.forecast import forecast_discovery
from twothirds.flows.discover.preparation import Prepared, prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.forecast import forecast_enrichment
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models.oracle import MICRO

pytestmark = pytest.mark.usefixtures("sampling_number")

ROWS, LABEL = 800, MICRO // 1000
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TellingWorld:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return TellingWorld(tmp_path / "world", ROWS)


def estimated(world: TellingWorld, capsys: Printed, *more: str) -> dict[str, Any]:
    where = ["--out", str(world.folder / "out"), "--store", str(world.folder / "store.sqlite")]
    oracle = ["--oracle", "simulated?price=0.001", "--features", world.features]
    assert main(["estimate", "enrich", world.spec, *oracle, *where, "--json", *more]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_an_enrichment_is_forecast_by_an_assumption_and_the_next_one_by_what_was_asked(
    world: TellingWorld, capsys: Printed
) -> None:
    asked = estimated(world, capsys)
    first = estimated(world, capsys, "--agree", "0.9")
    assert "20% of what is left (assumed)" in first["assumed"]
    assert first["usd_about"] < asked["usd_about"] == pytest.approx(3 * ROWS / 1000)
    assert first["usd"] == asked["usd"] >= asked["usd_about"]
    booked = night(world, agree=0.9)
    assert first["usd_about"] / 2 < booked["cost_usd"] <= first["usd"]
    world.add(ROWS)
    second = estimated(world, capsys, "--agree", "0.9")
    assert "as in the run before" in second["assumed"]
    assert second["usd_about"] == pytest.approx(night(world, agree=0.9)["cost_usd"], rel=0.25)


def test_a_cheaper_oracle_that_labels_first_is_part_of_the_price(world: TellingWorld) -> None:
    def price(**more: Any) -> int:
        given = {"dataset": world.spec, "features": world.features, "oracle": "simulated?price=0.001", "agree": 0.9}
        places = {"store": str(world.folder / "store.sqlite"), "out": str(world.folder / "out")}
        return forecast_enrichment(EnrichSettings.model_validate(given | places | more)).likely

    cheap = "simulated?price=0.0001&flip=0.05"
    assert price(cheap=cheap) - price() == 3 * ROWS * LABEL // 10
    assert price(cheap=cheap, agree=0.99) == price(agree=0.99), "too few for that: it is not asked"


def prepared(world: TellingWorld, **more: Any) -> Prepared:
    given = {"dataset": world.spec, "oracle": "simulated?price=0.001", "elicit_on": 60, "queries": 6}
    places = {"store": str(world.folder / "store.sqlite"), "out": str(world.folder / "run")}
    return prepare(DiscoverSettings.model_validate(given | places | more))


def test_a_discovery_that_predicts_costs_no_more_than_was_estimated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    world = TellingWorld(tmp_path / "world", 1_000)
    as_asked = forecast_discovery(prepared(world, label_rest=True))
    expected = forecast_discovery(prepared(world, agree=0.9))
    assert expected.likely < as_asked.likely <= expected.at_most == as_asked.at_most
    assert expected.most_questions == as_asked.most_questions
    outcome = run_discovery(prepared(world, agree=0.9), run_id="run")
    assert 0 < outcome.crowd.ledger.cost <= expected.at_most
