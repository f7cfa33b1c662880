"""The history of a table as the readers of docs/enrich.md see it, night after night."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.support.growing_worlds import TellingWorld, World, night, table
from twothirds.flows.enrich import flow
from twothirds.flows.enrich import summary as written_summary
from twothirds.reports.versions import CorrectedCell

pytestmark = pytest.mark.usefixtures("sampling_number")

PAGE = Path(__file__).parents[4] / "docs" / "enrich.md"
RECIPES = re.findall(r"^```(sql|python)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 30)


def recipes(kind: str, world: World) -> list[str]:
    return [text.replace("enriched/faces", str(world.folder / "out")) for one, text in RECIPES if one == kind]


def query(text: str, world: World) -> pd.DataFrame:
    """In a process of its own, which ends before DuckDB complains of Python at exit."""
    found = world.folder / "found.parquet"
    copied = f"COPY ({text}) TO '{found}' (FORMAT parquet)"
    code = "import sys, os, duckdb; duckdb.connect().execute(sys.argv[1]); os._exit(0)"
    subprocess.run([sys.executable, "-c", code, copied], check=True)
    return pd.read_parquet(found)


def by_duckdb(world: World) -> pd.DataFrame:
    return query(recipes("sql", world)[0], world).set_index("id")


def by_pandas(world: World) -> pd.DataFrame:
    names: dict[str, Any] = {}
    exec(recipes("python", world)[0], names)
    found: pd.DataFrame = names["labels"]
    return found


def provenance(world: World) -> pd.DataFrame:
    files = str(world.folder / "out" / "provenance" / "*" / "*.parquet")
    return query(f"SELECT * FROM read_parquet('{files}', hive_partitioning = true) ORDER BY ALL", world)


def assert_same(world: World) -> None:
    """The history read by others, and the table."""
    whole = table(world)
    features = [name for name in whole.columns if name not in ("digest", "version") and not name.endswith(")")]
    for read in (by_duckdb(world), by_pandas(world)):
        assert sorted(read.index) == sorted(whole.index)
        assert (read["digest"].loc[whole.index] == whole["digest"]).all()
        for name in features:
            theirs = read[name].astype("boolean").loc[whole.index].astype("float").to_numpy()
            assert np.array_equal(theirs, whole[name].astype("float").to_numpy(), equal_nan=True)


def test_whatever_happens_to_rows_the_history_is_the_table(world: World) -> None:
    night(world, features="red: It is red.")
    assert_same(world)
    world.add(5)
    world.texts["r000003"] = world.texts.pop("e000003")
    world.texts["e000007"] = "rewritten"
    world.texts.pop("e000009")
    world.write()
    night(world, features="red: It is red.; round: It is round.")
    assert_same(world)
    dropped = night(world, drop_gone=True, backfill=True)
    assert (dropped["gone"], dropped["dropped"], dropped["rows"]) == (1, 1, 34)
    assert "e000009" not in table(world).index
    assert_same(world)
    night(world, features="red: It is reddish.", backfill=True)
    assert_same(world)
    world.texts["e000009"] = "text of number 9"  # it is back
    world.write()
    assert night(world, features="red: It is reddish.; round: It is round.; heavy: It is heavy.")["added"] == 1
    assert_same(world)


def test_files_of_earlier_nights_are_never_touched(world: World) -> None:
    night(world)
    before = {path: path.stat().st_mtime_ns for path in (world.folder / "out").glob("*/version=*/*")}
    assert len(before) == 2
    world.add(3)
    night(world)
    night(world)  # nothing new: no partition
    after = {path: path.stat().st_mtime_ns for path in (world.folder / "out").glob("*/version=*/*")}
    assert len(after) == 4
    assert {path: after[path] for path in before} == before


def test_each_label_is_reported_with_who_gave_it_in_which_run(world: World) -> None:
    night(world, "night one")
    world.add(2)
    night(world, "night two")
    labels = provenance(world)
    assert len(labels) == 32 * 3
    assert set(labels["source"]) == {"asked"}
    assert labels["by"].str.startswith("simulated").all()
    assert labels.groupby("run").size().to_dict() == {"night one-1": 90, "night two-2": 6}
    whole = table(world)
    for name in world.traits:
        here = labels[labels["feature"] == name].set_index("id")["label"]
        assert (here.loc[whole.index] == whole[name].astype(bool)).all()
    counted = query(recipes("sql", world)[1], world)
    assert counted["labels"].sum() == 96


def test_predicted_labels_are_told_apart_with_their_probability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    world = TellingWorld(tmp_path / "world", 800)
    summary = night(world, agree=0.9)
    labels = provenance(world)
    assert summary["predicted_labels"] == (labels["source"] == "predicted").sum() > 0
    predicted = labels[labels["source"] == "predicted"]
    assert predicted["probability"].notna().all()
    surely = predicted[(predicted["probability"] - 0.5).abs() > 0.001]
    assert ((surely["probability"] > 0.5) == surely["label"]).all()
    assert set(predicted["by"]) != set(labels[labels["source"] == "asked"]["by"])
    assert len(labels) == 2_400


def test_what_people_correct_is_reported_with_who_did_it_and_reaches_the_history(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    night(world)
    kept = table(world)
    other = not kept["red"]["e000004"]
    cell = CorrectedCell("red", kept["digest"]["e000004"], int(other), "Ann", "2026-11-17")
    monkeypatch.setattr(flow, "corrected_cells", lambda _features: [cell])
    night(world, "corrected")
    assert bool(table(world)["red"]["e000004"]) == other
    assert_same(world)
    labels = provenance(world)
    now = labels[labels["version"] == 2]
    assert now[["id", "feature", "source", "by", "run"]].to_numpy().tolist() == [
        ["e000004", "red", "corrected", "Ann", "corrected-2"]
    ]
    assert bool(now["label"].iloc[0]) == other
    world.add(1)
    night(world, "later", backfill=True)
    later = provenance(world)
    assert set(later[later["version"] == 3]["id"]) == {"e000030"}
    monkeypatch.setattr(flow, "corrected_cells", lambda _features: [replace(cell, label=None)])
    night(world)
    assert bool(table(world)["red"]["e000004"]) != other, "taken back, and asked again"
    assert_same(world)


def test_a_run_that_is_killed_before_its_history_is_written_is_made_up_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    night(world, "one")
    world.add(4)
    world.texts["r000003"] = world.texts.pop("e000003")
    world.write()
    with monkeypatch.context() as patch:
        patch.setattr(written_summary, "write_history", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            night(world, "two")
    assert len(table(world)) == 34
    assert len(by_duckdb(world)) == 30
    assert night(world, "three")["added"] == 0
    assert_same(world)
    labels = provenance(world)
    assert labels[labels["version"] == 2]["run"].isna().all()
    assert sorted(set(labels[labels["version"] == 2]["id"])) == [f"e{number:06}" for number in range(30, 34)]
    assert "e000003" not in by_duckdb(world).index
