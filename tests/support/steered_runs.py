"""Discoveries that are steered by code: something is done while the question of a certain number is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from flows.discover.flow import run_discovery
from flows.discover.preparation import prepare
from flows.discover.settings import DiscoverSettings
from models import Elicited, Panel
from reports.curation.events import append_events
from reports.finished_run import Run
from tests.support.growing_worlds import World

TRAITS = ("red", "round", "heavy", "old", "loud", "warm", "wet")


class Killed(BaseException):
    pass


def settings(world: World, **changed: Any) -> DiscoverSettings:
    chosen = {
        "dataset": world.spec,
        "oracle": "simulated:salience?price=0.001",
        "queries": 6,
        "store": str(world.folder / "store.sqlite"),
        "out": str(world.folder.parent / "runs" / "one"),
    }
    return DiscoverSettings.model_validate(chosen | changed)


def discovered(
    chosen: DiscoverSettings,
    at: Mapping[int, Callable[[], None]] | None = None,
    seen: list[Any] | None = None,
) -> Run:
    """What is asked is added to `seen`."""
    asked = 0

    def compare(panel: Panel, questions: list[Any]) -> Elicited:
        nonlocal asked
        asked += 1
        if seen is not None:
            seen.extend(questions)
        (at or {}).get(asked, lambda: None)()
        return panel.compare(questions)

    run_discovery(prepare(chosen), run_id=str(uuid4()), compare=compare)
    return Run(Path(str(chosen.out)))


def wishing(folder: Path, **wish: Any) -> Callable[[], None]:
    def enter() -> None:
        append_events(folder / "steer.jsonl", lambda _: [{"by": "Ann", "at": "2026-11-17T12:00:00+00:00", **wish}])

    return enter


def kill() -> None:
    raise Killed
