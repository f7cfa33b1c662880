"""A budget over several nights: the nights of a month share it, and the next month has its own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.growing_worlds import World, night
from tests.support.heard import Heard
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.forecast import forecast_enrichment
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models.oracle import MICRO
from twothirds.store import Store

BUDGET: dict[str, Any] = {"budget": "0.1", "per": "month"}  # of 100 labels
MONTH = 32 * 86_400


def move_back(store: Path, seconds: int = MONTH) -> None:
    """As if all that ran had run so much earlier."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE runs SET started_at = started_at - ?, ended_at = ended_at - ?", (seconds, seconds))
        connection.commit()


def booked(store: Path) -> int:
    with Store.open(str(store)) as opened:
        return sum(line.paid + line.unknown for line in opened.costs.lines())


def test_the_nights_of_a_month_share_its_budget(tmp_path: Path) -> None:
    world, heard = World(tmp_path / "world", 20), Heard()
    store = world.folder / "store.sqlite"
    assert night(world, **BUDGET)["stopped_because"] == "done"  # 60 labels
    world.add(20)
    second = night(world, events=heard.stream, **BUDGET)
    assert any(
        "budget 0.1000 USD per month: 0.0400 USD is left, the next month begins on" in line for line in heard.said
    )
    assert second["stopped_because"] == "budget"
    assert "budget of 0.10 USD per month is used up" in second["message"]
    assert "the next month begins on " in second["message"]
    third = night(world, **BUDGET)
    assert (third["stopped_because"], third["paid_calls"]) == ("budget", 0)
    assert booked(store) == 0.1 * MICRO

    move_back(store)
    fourth = night(world, **BUDGET)
    assert (fourth["stopped_because"], fourth["paid_calls"]) == ("done", 20)


def test_an_estimate_says_what_is_left_of_the_month(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 20)
    night(world)  # counts too, although it has no budget
    world.add(5)
    settings: dict[str, Any] = {"dataset": world.spec, "features": world.features, "oracle": "simulated?price=0.001"}
    settings |= {"store": str(world.folder / "store.sqlite"), "out": str(world.folder / "out") + "/"}
    expected = forecast_enrichment(EnrichSettings.model_validate(settings | BUDGET))
    assert expected.lines()[-1].startswith("budget 0.1000 USD per month: 0.0400 USD is left")
    assert expected.to_json()["budget_left"] == expected.lines()[-1]
    elsewhere = {"out": str(tmp_path / "another")}
    expected = forecast_enrichment(EnrichSettings.model_validate(settings | BUDGET | elsewhere))
    assert "0.1000 USD is left" in expected.lines()[-1]


def test_a_period_without_a_budget_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 3)
    with pytest.raises(ValidationError, match="--per week goes with --budget: add --budget USD, or leave it out"):
        night(world, per="week")
    settings = EnrichSettings(
        dataset=world.spec, features=world.features, oracle="simulated", budget=Decimal(1), per="week"
    )
    assert settings.job.per == "week"
    assert enrich_with(settings.model_copy(update={"out": str(tmp_path / "t"), "store": str(tmp_path / "s")})).rows == 3
