"""Asking again for a changed feature, with oracles that are more than one simulated crowd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_openai import FakeModel, FakeOpenAI
from tests.support.growing_worlds import TRAITS, World
from twothirds.flows.cli.store_check import check
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.runs.curate import CurationRequest, curate
from twothirds.reports.finished_run import Run
from twothirds.store import Store

MIXTURES: dict[str, dict[str, Any]] = {
    "alone": {},
    "labeller": {"labeller": "simulated?price=0.002"},
    "another model": {"labeller": "OPENAI&grouping=none"},
    "escalate": {"escalate": 0.5, "people": "simulated?price=0.003"},
    "spot check": {"spot_check": 0.5, "people": "simulated?price=0.003"},
    "votes": {"labeller": "OPENAI", "votes": 3, "escalate": 0.1, "people": "simulated?price=0.003"},
}


QUICK = ("alone", "escalate")


@pytest.mark.parametrize(
    "mixture", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MIXTURES]
)
def test_a_change_made_again_pays_for_nothing_that_is_kept(tmp_path: Path, mixture: str) -> None:
    """Who is asked again is who was asked by the discovery: the definition of before finds the labels of before."""
    world, store = World(tmp_path / "world", 8), str(tmp_path / "store.sqlite")
    world.texts = {name: f"{' '.join(TRAITS[: 1 + number % 3])}, {number}" for number, name in enumerate(world.texts)}
    world.write()
    with FakeOpenAI(FakeModel(TRAITS)) as server:
        openai = f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1"
        given = {name: str(value).replace("OPENAI", openai) for name, value in MIXTURES[mixture].items()}
        settings = {"dataset": world.spec, "oracle": openai, "queries": 8, "store": store, "out": str(tmp_path / "run")}
        run_discovery(prepare(DiscoverSettings.model_validate(settings | given)), run_id="discovery")
        run = Run(tmp_path / "run")
        (name, definition), (other, _) = run.features[["name", "definition"]].to_numpy().tolist()[:2]

        def change(action: str, names: list[str], **more: Any) -> tuple[int, int]:
            """What it asks and what it pays."""
            before = _paid(store)
            done = curate(Run(run.folder), CurationRequest(action, names, confirmed=True, **more)).data
            return sum(done["asked"].values()), _paid(store) - before

        def undo() -> None:
            curate(Run(run.folder), CurationRequest("undo", []))

        for action, names, more in (
            ("define", [name, "It is red."], {}),
            ("split", [name, "one of them", "the other"], {}),
            ("merge", [name, other], {"into": "both", "definitions": ["It is one of both."]}),
        ):
            asked, paid = change(action, names, **more)
            assert asked
            assert paid
            undo()
            assert change(action, names, **more) == (asked, 0)
            undo()
        change("define", [name, "It is red."])
        asked, paid = change("define", [name, definition])
        assert (asked, paid) == (8, 0)
    with Store.open(store) as opened:
        assert check(opened).problems == []


def _paid(store: str) -> int:
    with Store.open(store) as opened:
        return sum(line.paid for line in opened.costs.lines())
