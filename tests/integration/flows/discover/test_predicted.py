"""The rest of a discovery, predicted where that is certified: marked in the run folder, and the same when repeated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.support.growing_worlds import TellingWorld
from twothirds.flows.discover.forecast import forecast_discovery
from twothirds.flows.discover.outcome import Outcome
from twothirds.flows.discover.preparation import Prepared, prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.reports import Run
from twothirds.reports.export import export_run
from twothirds.reports.label_table import LabelTable, Source
from twothirds.sources import load_dataset

pytestmark = pytest.mark.usefixtures("sampling_number")

ROWS = 900


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TellingWorld:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return TellingWorld(tmp_path / "world", ROWS)


def prepared(world: TellingWorld, **changed: Any) -> Prepared:
    settings = {
        "dataset": world.spec,
        "oracle": "simulated?price=0.001",
        "store": str(world.folder / "store.sqlite"),
        "out": str(world.folder / "run"),
        "elicit_on": 60,
        "queries": 8,
        "agree": 0.9,
    }
    return prepare(DiscoverSettings.model_validate(settings | changed))


def found(world: TellingWorld, **changed: Any) -> Outcome:
    return run_discovery(prepared(world, **changed), run_id=f"run {len(changed)}")


def predicted_in(folder: Path) -> pd.DataFrame:
    """A row per predicted label of a run."""
    table = LabelTable.from_arrow(pq.read_table(folder / "labels.parquet"))
    frame: pd.DataFrame = table.tidy(table.source == Source.PREDICTED).to_pandas()
    return frame.astype({"id": str, "feature": str})


def test_the_rest_is_predicted_where_certified_and_marked(world: TellingWorld) -> None:
    outcome = found(world)
    assert outcome.predicted is not None
    run = Run(world.folder / "run")
    said = run.summary.to_json()["predicted"]
    marked = predicted_in(world.folder / "run")
    assert len(marked) == said["predicted_labels"] > ROWS / 2
    labels = pd.read_csv(world.folder / "run" / "labels.csv").set_index("id")
    true = pd.read_csv(world.folder / "truth.csv").set_index("id")
    for feature, part in marked.groupby("feature"):
        here = labels.index.isin(part["id"])
        assert (labels[feature] == true[feature])[~here].all()
        assert (labels[feature] == true[feature])[here].mean() >= 0.9
    assert not set(marked["id"]) & set(run.summary.dataset.compared_ids or [])
    paid = outcome.crowd.ledger.paid_calls
    assert paid < 0.8 * len(outcome.progress.findings) * ROWS
    again = found(world, replace=True)
    assert (again.crowd.ledger.paid_calls, again.crowd.ledger.cost) == (0, 0)
    assert again.predicted is not None
    assert again.predicted.summary == outcome.predicted.summary


def test_a_budget_that_ends_it_leaves_what_was_asked_and_predicts_nothing(world: TellingWorld) -> None:
    outcome = found(world, budget="0.2")
    assert outcome.predicted is None
    assert outcome.progress.message.startswith("budget of 0.20 USD is used up")
    assert predicted_in(world.folder / "run").empty
    done = found(world, budget="5", replace=True)
    assert done.predicted is not None


class PartlyTold(TellingWorld):
    shares = (0.5, 0.3, 0.08)
    unnamed = ("red",)


def test_in_a_discovery_too_what_cannot_be_certified_is_left_on_request(tmp_path: Path) -> None:
    world = PartlyTold(tmp_path / "world", ROWS)
    outcome = found(world, uncertified="leave")
    assert outcome.predicted is not None
    said = outcome.predicted.summary
    assert said["left_labels"] > ROWS / 4
    labels = pd.read_csv(world.folder / "run" / "labels.csv")
    assert labels.drop(columns="id").isna().to_numpy().sum() == said["left_labels"]
    assert labels["red"].isna().any()
    Run(world.folder / "run").report()


def test_a_cheaper_oracle_labels_first_and_is_booked_to_the_run(tmp_path: Path) -> None:
    world = PartlyTold(tmp_path / "world", ROWS)
    cheap = "simulated?flip=0.02&price=0.00001"
    expected = forecast_discovery(prepared(world, cheap=cheap))
    outcome = found(world, cheap=cheap)
    assert outcome.predicted is not None
    assert outcome.predicted.summary["first"] == cheap
    features = len(outcome.progress.findings)
    first = features * ROWS * 0.00001
    run = Run(world.folder / "run").summary
    assert outcome.cheap is not None
    assert outcome.cheap.ledger is outcome.crowd.ledger
    assert run.cost_usd == pytest.approx(outcome.crowd.ledger.cost / 1e6)
    assert run.cost_usd > first
    assert run.cost_usd == pytest.approx(run.total_usd)
    assert 0 < run.cost_usd <= expected.at_most / 1e6
    assert "labels everything first" in expected.assumed
    labels = pd.read_csv(world.folder / "run" / "labels.csv").set_index("id")
    true = pd.read_csv(world.folder / "truth.csv").set_index("id")
    marked = predicted_in(world.folder / "run")
    assert (marked["feature"] == "red").any()
    for feature, part in marked.groupby("feature"):
        here = labels.index.isin(part["id"])
        assert (labels[feature] == true[feature])[here].mean() >= 0.9
        assert (labels[feature] == true[feature])[~here].all()
    again = found(world, cheap=cheap, replace=True)
    assert again.spent.cost == 0


def test_predicted_labels_are_marked_in_the_report_and_in_every_export(world: TellingWorld) -> None:
    found(world)
    folder = world.folder / "run"
    run, dataset = Run(folder), load_dataset(world.spec)
    marked = predicted_in(folder).set_index(["feature", "id"])["probability"]
    page = run.report().path.read_text(encoding="utf-8")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    carried = {
        (data["features"][number]["name"], data["ids"][int(place)])
        for number, of_one in enumerate(data["predicted"])
        for place in of_one
    }
    assert carried == set(marked.index)
    assert f"{len(marked):,} of " in page
    assert "labels are predicted and were not put to the oracle" in page
    assert page.count("<dt>Predicted</dt>") == marked.index.get_level_values(0).nunique()
    told = " ".join(page.replace("&nbsp;", " ").split())
    assert "together at least 90 % are what the oracle would say" in told
    assert "agree (95 % interval " in told
    for _ in range(2):  # the second time over what the first has written
        export_run(run, ["all"], dataset)
    tidy = pd.read_parquet(folder / "export" / "tidy.parquet").set_index(["feature", "id"])
    assert set(tidy.index[tidy["source"] == "predicted"]) == set(marked.index)
    assert (tidy["yes"] + tidy["no"])[tidy["source"] == "predicted"].max() == 0
    assert set(tidy["source"]) == {"asked", "predicted"}
    hub = next((folder / "export" / "huggingface" / "data").glob("*.parquet"))
    for wide in (pd.read_parquet(folder / "export" / "wide.parquet"), pd.read_parquet(hub)):
        sources = wide.set_index("id").filter(like=" (source)")
        predicted = {
            (column.removesuffix(" (source)"), name)
            for column in map(str, sources.columns)
            for name in sources.index[sources[column] == "predicted"]
        }
        assert predicted == set(marked.index)
    lines = [json.loads(line) for line in (folder / "export" / "labels.jsonl").read_text().splitlines()]
    assert {(name, line["id"]) for line in lines for name in line["predicted"]} == set(marked.index)
    tasks = json.loads((folder / "export" / "label-studio" / "tasks.json").read_text())
    said = {(name, task["data"]["id"]) for task in tasks for name in task["data"]["predicted labels"]}
    assert said == set(marked.index)
    assert f"**{len(marked):,} of " in (folder / "export" / "README.md").read_text()
