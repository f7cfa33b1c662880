"""A table that grows: only what is new is asked, and what is there stays as it is."""

from __future__ import annotations

import json
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.support.growing_worlds import World, night, table
from tests.support.heard import Heard
from twothirds.flows import api
from twothirds.flows.enrich import batches
from twothirds.flows.enrich.batches import Labeller, Resources
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.events import Progressed
from twothirds.models import Feature, LabelBatch
from twothirds.reports.run import RunError, TableBusy, locked
from twothirds.sources import Example, iter_examples
from twothirds.store import Store


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 60)


def truth(world: World) -> pd.DataFrame:
    return pd.read_csv(world.folder / "truth.csv").set_index("id")


def test_labels_are_those_of_the_oracle_and_the_cost_is_booked(world: World) -> None:
    summary = night(world)
    assert (summary["added"], summary["paid_calls"], summary["rows"]) == (60, 180, 60)
    assert summary["cost_usd"] == pytest.approx(0.18)
    assert (table(world)[list(world.traits)] == truth(world)).all(axis=None)


def test_a_second_night_asks_only_about_what_is_new_and_leaves_the_rest_byte_for_byte(world: World) -> None:
    night(world)
    before = pq.read_table(world.folder / "out" / "labels.parquet")
    new = world.add(10)
    summary = night(world)
    assert (summary["added"], summary["unchanged"], summary["paid_calls"]) == (10, 60, 30)
    assert summary["ids"] == {"added": new}
    after = pq.read_table(world.folder / "out" / "labels.parquet")
    assert after.slice(0, 60).equals(before)
    assert pq.read_table(world.folder / "out" / "labels.previous.parquet").equals(before)
    assert (table(world)[list(world.traits)] == truth(world)).all(axis=None)


def test_a_table_is_exported_as_a_run_is(world: World) -> None:
    night(world)
    written = {path.name for path in api.export(world.folder / "out", out=world.folder / "export")}
    assert {"wide.parquet", "tidy.csv", "labels.jsonl", "README.md", "features.csv", "tree.json"} <= written
    assert "doubtful.csv" not in written, "a table keeps no votes"
    wide = pd.read_parquet(world.folder / "export" / "wide.parquet").set_index("id")
    assert (wide[list(world.traits)] == truth(world)).all(axis=None)
    with pytest.raises(RunError, match="doubtful needs votes, which a table does not keep"):
        api.export(world.folder / "out", ["doubtful"])
    with pytest.raises(UsageError, match="are for runs"):
        api.export(world.folder / "out", only=["interesting"])


def test_a_night_without_news_changes_nothing(world: World) -> None:
    night(world)
    written = (world.folder / "out" / "labels.parquet").stat()
    summary = night(world)
    assert (summary["paid_calls"], summary["cached_calls"], summary["version"]) == (0, 0, 1)
    assert (world.folder / "out" / "labels.parquet").stat().st_mtime_ns == written.st_mtime_ns
    assert not (world.folder / "out" / "labels.previous.parquet").exists()


def test_a_renamed_example_is_not_new_and_a_changed_one_is(world: World) -> None:
    night(world)
    before = table(world)
    world.texts["r000003"] = world.texts.pop("e000003")
    world.texts["e000007"] = "rewritten"
    world.write()
    summary = night(world)
    assert (summary["renamed"], summary["changed"], summary["added"], summary["gone"]) == (1, 1, 0, 0)
    assert summary["paid_calls"] == 3
    assert summary["rows"] == len(table(world)) == len(world.texts)
    assert (table(world).loc["r000003"] == before.loc["e000003"]).all()
    assert sorted(table(world).index) == sorted(world.texts)


def test_a_feature_added_later_is_asked_of_new_examples_and_of_old_ones_only_with_backfill(world: World) -> None:
    night(world, features="red: It is red.")
    world.add(5)
    summary = night(world, features="red: It is red.; round: It is round.")
    assert (summary["paid_calls"], summary["new_features"]) == (10, ["round"])
    assert table(world)["round"].notna().sum() == 5
    world.add(1)
    assert night(world, features="red: It is red.; round: It is round.")["paid_calls"] == 2
    filled = night(world, features="red: It is red.; round: It is round.", backfill=True)
    assert (filled["paid_calls"], filled["filled"]) == (60, 60)
    assert (table(world)["round"] == truth(world)["round"]).all()
    assert night(world, features="red: It is red.; round: It is round.")["paid_calls"] == 0


def test_labels_of_two_meanings_are_never_mixed(world: World) -> None:
    night(world, features="red: It is red.")
    with pytest.raises(RunError, match="'red' is defined otherwise"):
        night(world, features="red: It is reddish.")
    with pytest.raises(RunError, match="another voter: ask everything again with --backfill"):
        night(world, features="red: It is red.", votes=3)
    again = night(world, features="red: It is reddish.", backfill=True)
    assert again["paid_calls"] == 60
    assert night(world, features="red: It is reddish.", votes=3, backfill=True)["rows"] == 60


def test_a_budget_stops_it_and_the_next_night_goes_on(world: World) -> None:
    stopped = night(world, budget="0.1")
    assert stopped["stopped_because"] == "budget"
    assert "raise --budget" in stopped["message"]
    assert stopped["paid_calls"] <= 100
    done = night(world)
    assert done["stopped_because"] == "done"
    assert stopped["paid_calls"] + done["paid_calls"] == 180
    assert (table(world)[list(world.traits)] == truth(world)).all(axis=None)


def test_a_flow_that_is_tried_again_may_make_the_next_version(world: World) -> None:
    stopped, done = night(world, "one flow run", budget="0.1"), night(world, "one flow run")
    assert (stopped["version"], done["version"]) == (1, 2)
    assert stopped["paid_calls"] + done["paid_calls"] == 180


def test_a_label_whose_votes_are_not_all_in_is_left_to_the_next_night(world: World, tmp_path: Path) -> None:
    crowd: dict[str, Any] = {"oracle": "simulated?flip=0.3&price=0.001", "votes": 5}
    whole, cut = World(tmp_path / "whole", 60), world
    night(whole, **crowd)
    night(cut, **crowd, budget="0.35")
    assert table(cut)[list(world.traits)].isna().any(axis=None), "some were not decided"
    night(cut, **crowd)
    pd.testing.assert_frame_equal(table(cut)[list(world.traits)].sort_index(), table(whole)[list(world.traits)])


def test_a_lost_table_is_written_again_for_nothing(world: World) -> None:
    night(world)
    before = table(world)
    (world.folder / "out" / "labels.parquet").unlink()
    assert night(world)["paid_calls"] == 0
    assert table(world).equals(before)


def test_votes_decide_as_in_discover(world: World) -> None:
    summary = night(world, oracle="simulated?flip=0.1", votes=5)
    assert 3 * 180 <= summary["paid_calls"] < 5 * 180
    right = table(world)[list(world.traits)].to_numpy() == truth(world).to_numpy()
    assert right.mean() > 0.95


def test_a_feature_that_has_become_frequent_is_marked(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 200)
    night(world)
    world.add(100)
    truth = pd.read_csv(world.folder / "truth.csv")
    truth.loc[200:, "red"] = 1
    truth.to_csv(world.folder / "truth.csv", index=False)
    drift = {one["feature"]: one for one in night(world)["drift"]}
    assert drift["red"]["moved"]
    assert drift["red"]["now"] == 1.0
    assert 0 < drift["red"]["low"] < drift["red"]["high"]
    assert not drift["round"]["moved"]
    assert not drift["heavy"]["moved"]


def test_two_enrichments_do_not_write_one_table_at_once(world: World) -> None:
    writing = locked(world.folder / "out", "enrichment", TableBusy)
    with writing, pytest.raises(RunError, match="another enrichment is writing"):
        night(world)


def test_rows_that_cannot_be_read_are_reported_and_left_out(world: World) -> None:
    world.texts["e000005"] = " "
    world.write()
    summary = night(world)
    assert (summary["added"], summary["left_out"]) == (59, [{"id": "e000005", "reason": "empty text"}])


def test_hostile_names_survive(world: World) -> None:
    name = '=cmd"<script>\u202e👩, ' + "x" * 200
    world.traits = (name, "digest")
    world.write()
    features = world.folder / "features.csv"
    pd.DataFrame({"name": [name, "digest"], "definition": ["=1+1", ""]}).to_csv(features, index=False)
    night(world, features=str(features))
    got = table(world)
    assert (got[name] == truth(world)[name]).all()
    assert (got["digest (feature)"] == truth(world)["digest"]).all()
    assert json.loads((world.folder / "out" / "enrich.json").read_text())["features"] == [name, "digest"]


def test_a_damaged_table_is_reported_in_one_line(world: World) -> None:
    night(world)
    (world.folder / "out" / "labels.parquet").write_bytes(b"no parquet")
    with pytest.raises(RunError, match=r"restore labels\.previous\.parquet"):
        night(world)


def test_a_process_of_a_cluster_opens_its_oracle_once_however_many_batches_it_labels(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    really = batches.open_oracle

    def counting(settings: EnrichSettings, *rest: Any) -> Any:
        opened.append(settings.oracle)
        time.sleep(0.05)  # a model takes longer, and others come meanwhile
        return really(settings, *rest)

    monkeypatch.setattr(batches, "open_oracle", counting)
    monkeypatch.setattr(batches, "_OF_THIS_WORKER", Resources())  # of a process that has just started
    settings = EnrichSettings(
        dataset=world.spec,
        features=world.features,
        oracle="simulated?price=0.001",
        store=str(world.folder / "store.sqlite"),
    )
    with Store.open(str(world.folder / "store.sqlite")) as store:
        store.runs.begin("run", "scope", name="n", flow="enrich", dataset="d", oracle="o", settings={})
    examples = [one for one in iter_examples(world.spec) if isinstance(one, Example)]
    parts = [LabelBatch(examples[start : start + 10], [Feature("red", "It is red.")], 1) for start in range(0, 60, 10)]
    sent = [pickle.dumps(Labeller(settings, "run", "scope", Resources())) for _ in parts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: pickle.loads(one[0])(one[1]), zip(sent, parts, strict=True)))
    assert sum(one.votes.asked for one in found) == 60
    assert opened == ["simulated?price=0.001"]


def test_answers_are_counted_as_they_come_not_only_when_a_batch_is_done(world: World) -> None:
    heard = Heard()
    summary = night(world, events=heard.stream, oracle="simulated?price=0.001&latency=0.05&width=8")
    answers = [int(counted.detail.split()[0]) for counted in heard.of(Progressed)]
    assert any(0 < so_far < summary["paid_calls"] for so_far in answers), "all is one batch"
    assert heard.of(Progressed)[0].done == 60
