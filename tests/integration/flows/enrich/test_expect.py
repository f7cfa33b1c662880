"""A night whose table is not as expected leaves the old one in place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.growing_worlds import World, night, table
from twothirds.flows.cli.errors import explain
from twothirds.reports.run.files import RunError
from twothirds.reports.versions import ContractViolated


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 60)


def expecting(world: World, **contract: Any) -> str:
    path = world.folder / "expect.json"
    path.write_text(json.dumps(contract), encoding="utf-8")
    return str(path)


def files(world: World) -> dict[str, bytes]:
    """All that a bad night must not touch."""
    out = world.folder / "out"
    kept = [out / "labels.parquet", out / "schema.json", *out.glob("*/version=*/*")]
    return {str(path): path.read_bytes() for path in kept}


def test_a_bad_night_leaves_the_table_and_its_history_as_they_are(world: World) -> None:
    night(world)
    before = files(world)
    world.add(40)
    bad = expecting(world, columns=[{"name": "red", "share": {"max": 0.01}}], rows={"max": 80})
    with pytest.raises(ContractViolated, match=r"red: 0\.\d+ of 100 rows have it, at most 0\.01 is expected") as caught:
        night(world, expect=bad)
    assert explain(caught.value) == (7, str(caught.value))
    assert files(world) == before
    said = json.loads((world.folder / "out" / "enrich.json").read_text(encoding="utf-8"))
    assert (said["stopped_because"], said["version"], said["rows"]) == ("contract", 1, 60)
    assert len(said["violations"]) == 2
    assert len(table(world, "labels.refused.parquet")) == 100


def test_the_next_night_pays_nothing_twice_once_it_is_mended(world: World) -> None:
    night(world)
    world.add(40)
    with pytest.raises(ContractViolated):
        night(world, expect=expecting(world, rows={"max": 80}))
    done = night(world, expect=expecting(world, rows={"min": 80}))
    assert (done["paid_calls"], done["cached_calls"], done["added"], done["violations"]) == (0, 120, 40, [])
    assert len(table(world)) == 100


def test_the_schema_that_is_written_holds_the_next_night_to_it(world: World) -> None:
    night(world, features="red: It is red.")
    schema = str(world.folder / "out" / "schema.json")
    world.add(5)
    assert night(world, features="red: It is red.", expect=schema)["added"] == 5
    with pytest.raises(ContractViolated, match="red: it is defined otherwise"):
        night(world, features="red: It is reddish.", backfill=True, expect=schema)
    assert table(world)["red"].notna().all()


def test_a_first_night_that_is_bad_leaves_no_table(world: World) -> None:
    with pytest.raises(ContractViolated):
        night(world, expect=expecting(world, rows={"min": 1000}))
    assert not (world.folder / "out" / "labels.parquet").exists()
    assert night(world)["rows"] == 60
    assert (pd.read_parquet(world.folder / "out" / "history" / "version=1").index >= 0).all()


def test_a_mount_that_is_away_does_not_empty_the_table(world: World) -> None:
    """Most examples are missing, and whoever drops what is gone is stopped by the least number of rows."""
    night(world)
    before = files(world)
    world.texts = dict(list(world.texts.items())[:3])
    world.write()
    with pytest.raises(ContractViolated, match="3 rows, at least 50 are expected"):
        night(world, drop_gone=True, expect=expecting(world, rows={"min": 50}))
    assert files(world) == before


def test_a_night_stopped_by_its_budget_may_violate_it_too(world: World) -> None:
    wanted = expecting(world, rows={"min": 60}, columns=[{"name": "red", "missing": {"max": 0}}])
    with pytest.raises(ContractViolated):
        night(world, expect=wanted, budget="0.05")
    assert night(world, expect=wanted)["paid_calls"] < 180


def test_people_are_waited_for_before_anything_is_expected(world: World) -> None:
    from twothirds.models import AnswersPending

    with pytest.raises(AnswersPending):
        night(world, oracle="human", expect=expecting(world, rows={"min": 60}))


def test_a_contract_that_cannot_be_read_is_reported_before_anything_is_asked(world: World) -> None:
    with pytest.raises(RunError, match="cannot read"):
        night(world, expect=str(world.folder / "missing.json"))
    assert not (world.folder / "store.sqlite").exists()
