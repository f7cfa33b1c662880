"""The rest of a discovery, predicted where that is certified: marked in the run folder, and the same when repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from flows.discover.flow import run_discovery
from flows.discover.outcome import Outcome
from flows.discover.preparation import prepare
from flows.discover.settings import DiscoverSettings
from reports import Run
from tests.support.telling_worlds import TellingWorld

ROWS = 900


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TellingWorld:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return TellingWorld(tmp_path / "world", ROWS)


def found(world: TellingWorld, **changed: Any) -> Outcome:
    settings = {
        "dataset": world.spec,
        "oracle": "simulated?price=0.001",
        "store": str(world.folder / "store.sqlite"),
        "out": str(world.folder / "run"),
        "elicit_on": 60,
        "queries": 8,
        "agree": 0.9,
    }
    return run_discovery(prepare(DiscoverSettings.model_validate(settings | changed)), run_id=f"run {len(changed)}")


def test_the_rest_is_predicted_where_certified_and_marked(world: TellingWorld) -> None:
    outcome = found(world)
    assert outcome.predicted is not None
    run = Run(world.folder / "run")
    said = run.summary.to_json()["predicted"]
    marked = pd.read_csv(world.folder / "run" / "predicted.csv")
    assert len(marked) == said["predicted_labels"] > ROWS / 2
    labels = pd.read_csv(world.folder / "run" / "labels.csv").set_index("id")
    true = pd.read_csv(world.folder / "truth.csv").set_index("id")
    for feature, part in marked.groupby("feature"):
        here = labels.index.isin(part["id"])
        assert (labels[feature] == true[feature])[~here].all()
        assert (labels[feature] == true[feature])[here].mean() >= 0.9
    assert not set(marked["id"]) & set(run.summary.dataset.compared_ids or [])
    paid = outcome.recorded.paid_calls
    assert paid < 0.8 * len(outcome.progress.findings) * ROWS
    again = found(world, replace=True)
    assert (again.recorded.paid_calls, again.recorded.cost) == (0, 0)
    assert again.predicted is not None
    assert again.predicted.to_json() == outcome.predicted.to_json()


def test_a_budget_that_ends_it_leaves_what_was_asked_and_predicts_nothing(world: TellingWorld) -> None:
    outcome = found(world, budget="0.5")
    assert outcome.predicted is None
    assert outcome.progress.message.startswith("budget of 0.50 USD is used up")
    assert not (world.folder / "run" / "predicted.csv").exists()
    done = found(world, budget="5", replace=True)
    assert done.predicted is not None
