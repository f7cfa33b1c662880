"""Whoever presses stop, or lowers the budget, while the other examples are labelled pays for little more."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.growing_worlds import World
from tests.support.steered_runs import TRAITS, discovered, settings, wishing
from twothirds.discovery import UNKNOWN
from twothirds.models.cached import UNCOMMITTED
from twothirds.reports.finished_run import Run
from twothirds.reports.run import LiveRun

COMPARED, EXAMPLES = 12, 400
WANTED = ("CommandApplied", "RunEnded")
WIDTH = 16
# When a command is applied, one group of answers may be committed and not yet seen, and as much again be on its way:
# the answers that wait to be committed, a group that is sent meanwhile, and one that the crowd has pulled.
UNSEEN = 2 * (UNCOMMITTED + 2) * WIDTH


@pytest.fixture(autouse=True)
def _looks_at_every_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twothirds.flows.discover.control.LOOK_SECONDS", 0)
    monkeypatch.setattr("twothirds.models.people.simulated.AT_ONCE", WIDTH)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", EXAMPLES, TRAITS)


def of(world: World, **changed: Any) -> Any:
    return settings(world, **{"elicit_on": COMPARED, "label_rest": True} | changed)


def at(number: int, folder: Path, **command: Any) -> Any:
    enter = wishing(folder, **command)
    return lambda answered: enter() if answered == number else None


def labelled(run: Run) -> int:
    return int((run.labels.to_numpy(float, na_value=UNKNOWN) != UNKNOWN).sum())


def test_stop_is_heeded_before_the_next_labels_are_sent_and_the_same_command_goes_on(world: World) -> None:
    whole = discovered(of(world, out=str(world.folder.parent / "runs" / "whole"), store=f"{world.folder}/other.sqlite"))
    chosen = of(world)
    folder = Path(str(chosen.out))
    run = discovered(chosen, while_labelling=at(100, folder, action="stop"))
    assert run.summary.stopped_because == "stopped"
    assert [one.words for one in run.summary.steered] == ["stops it"]
    paid = run.summary.paid_calls
    assert paid < 0.3 * whole.summary.paid_calls, "nearly all of the bill is saved"
    assert paid <= run.summary.queries + len(TRAITS) * COMPARED + 100 + UNSEEN
    events = LiveRun(folder / "live.jsonl").events()
    assert [one["kind"] for one in events if one["kind"] in WANTED] == list(WANTED)
    assert events[-1]["reason"] == "stopped"
    told = [one for one in events if one["kind"] == "Progressed" and one["unit"] == "other examples labelled"]
    assert told[-1]["usd"] > 0, "a page that follows it shows what labelling them costs"
    more = discovered(chosen)
    assert more.summary.stopped_because == "queries"
    assert more.labels.equals(whole.labels)
    assert paid + more.summary.paid_calls == whole.summary.paid_calls, "nothing is paid for twice"


def test_a_budget_is_lowered_and_raised_while_the_rest_is_labelled(world: World) -> None:
    low = of(world, budget="9")
    run = discovered(low, while_labelling=at(50, Path(str(low.out)), action="budget", usd="0.4"))
    assert run.summary.stopped_because == "budget"
    assert 0.3 < run.summary.cost_usd <= 0.4
    again = discovered(low)
    assert (again.summary.stopped_because, again.summary.paid_calls) == ("budget", 0), (
        "the same command applies it again"
    )
    more = discovered(low.with_budget(Decimal(8)))
    assert more.summary.stopped_because == "queries"
    high = of(world, budget="9", seed=2, out=str(world.folder.parent / "runs" / "high"))
    lower, raise_again = (at(n, Path(str(high.out)), action="budget", usd=usd) for n, usd in ((5, "0.4"), (20, "9")))

    def change_twice(answered: int) -> None:
        lower(answered)
        raise_again(answered)

    run = discovered(high, while_labelling=change_twice)
    assert run.summary.stopped_because == "queries"
    assert run.summary.cost_usd > 0.4


def test_a_veto_is_applied_when_the_rest_is_labelled_and_what_asks_more_waits(world: World) -> None:
    chosen = of(world)
    folder = Path(str(chosen.out))
    names = [str(name) for name in discovered(of(world, out=str(folder.parent / "before"))).features["name"]]
    commands = {
        3: wishing(folder, action="veto", name=names[0]),
        5: wishing(folder, action="ask", examples=[*world.texts][:3]),
    }
    run = discovered(chosen, while_labelling=lambda number: commands.get(number, lambda: None)())
    assert [str(name) for name in run.features["name"]] == names[1:]
    assert [one.words for one in run.summary.steered] == [f"vetoes {names[0]}"]
    marks = [json.loads(line) for line in (folder / "steer.jsonl").read_text().splitlines()]
    assert [one["event"] for one in marks if one["action"] == "applied" and one.get("while_labelling")] == [1, 0]
    longer = discovered(chosen.model_copy(update={"queries": 8}))
    assert any("asks about" in one.words for one in longer.summary.steered), "it was kept for when there are questions"


@pytest.mark.parametrize("kind", [{"agree": 0.9, "label_rest": False}, {"votes": 3}], ids=["predicted", "three votes"])
def test_stop_is_heeded_whatever_is_asked(world: World, kind: dict[str, Any]) -> None:
    chosen = of(world, **kind)
    run = discovered(chosen, while_labelling=at(10, Path(str(chosen.out)), action="stop"))
    assert run.summary.stopped_because == "stopped"
    assert labelled(run) < 0.4 * len(run.features) * EXAMPLES
