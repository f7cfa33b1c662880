"""Discoveries that are steered by code: something is done while the question of a certain number is asked, or with
every answer about an example that was not compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.growing_worlds import World
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.profiles import Profile
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.models import Answer, Asks, Elicited, LabelBatch, Votes, collect_answers, collect_votes
from twothirds.reports.curation.events import append_events
from twothirds.reports.finished_run import Run

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
    while_labelling: Callable[[int], None] | None = None,
    profile: Profile | None = None,
) -> Run:
    """What is asked is added to `seen`; `while_labelling` is called with the number of each answer. `profile` is asked
    in place of the usual one, but for the number of questions."""
    asked = answered = 0
    prepared = prepare(chosen)
    if profile is not None:
        prepared = replace(prepared, profile=replace(profile, queries=prepared.profile.queries))
    rest = {one.id for one in prepared.remaining}

    def compare(oracle: Asks, questions: list[Any]) -> Elicited:
        nonlocal asked
        asked += 1
        if seen is not None:
            seen.extend(questions)
        (at or {}).get(asked, lambda: None)()
        return collect_answers(oracle, questions)

    def label(oracle: Asks, batch: LabelBatch) -> Votes:
        heard = batch.on_answer

        def on_answer(answer: Answer) -> None:
            nonlocal answered
            answered += 1
            if while_labelling is not None:
                while_labelling(answered)
            if heard is not None:
                heard(answer)

        if any(one.id in rest for one in batch.examples):
            batch.on_answer = on_answer
        return collect_votes(oracle, batch)

    run_discovery(prepared, run_id=str(uuid4()), compare=compare, label=label)
    return Run(Path(str(chosen.out)))


def wishing(folder: Path, **command: Any) -> Callable[[], None]:
    def enter() -> None:
        append_events(folder / "steer.jsonl", lambda _: [{"by": "Ann", "at": "2026-11-17T12:00:00+00:00", **command}])

    return enter


def kill() -> None:
    raise Killed
