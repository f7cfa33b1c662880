"""Asking again for a changed feature, with oracles that are more than one simulated crowd."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.discover.flow import run_discovery
from flows.discover.preparation import prepare
from flows.discover.settings import DiscoverSettings
from flows.runs.curate import CurationRequest, curate
from reports.finished_run import Run
from store import Store
from tests.support.fake_openai import FakeOpenAI, Mind
from tests.support.growing_worlds import TRAITS, World


@pytest.mark.parametrize("labeller", [None, "simulated?price=0.002"])
def test_labels_are_asked_again_and_every_cost_is_booked(tmp_path: Path, labeller: str | None) -> None:
    world, store = World(tmp_path / "world", 8), str(tmp_path / "store.sqlite")
    world.texts = {name: " ".join(TRAITS[: 1 + number % 3]) for number, name in enumerate(world.texts)}
    world.texts |= {name: f"{text}, {name}" for name, text in world.texts.items()}
    world.write()
    with FakeOpenAI(Mind(TRAITS)) as server:
        settings = DiscoverSettings(
            dataset=world.spec,
            oracle=f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1",
            labeller=labeller,
            queries=4,
            store=store,
            out=str(tmp_path / "run"),
        )
        run_discovery(prepare(settings), run_id="discovery")
        run = Run(tmp_path / "run")
        name = str(run.features["name"][0])
        shown = curate(run, CurationRequest("define", [name, "It is red."]))
        assert not shown.data["done"]
        done = curate(run, CurationRequest("define", [name, "It is red."], confirmed=True))
        assert done.data["done"]
    with Store.open(store) as opened:
        statuses = [row["status"] for row in opened.runs.overview() if row["flow"] == "features"]
        assert sorted(statuses) == ["done", "not confirmed"]
        assert opened.check.problems() == []
