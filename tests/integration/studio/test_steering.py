"""A discovery is steered while it runs: what people want is in its log, is applied once, and is not lost by a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.growing_worlds import World
from tests.support.steered_runs import TRAITS, discovered, settings, wishing
from tests.support.studio_site import StudioSite
from twothirds.reports.curation.events import read_events
from twothirds.reports.curation.log import read_log
from twothirds.studio.catalog import key_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 24, TRAITS)


def test_a_vetoed_feature_is_dropped_and_never_named_again(world: World) -> None:
    chosen = settings(world)
    folder = Path(str(chosen.out))
    first = str(discovered(settings(world, out=str(folder.parent / "before"))).features["name"][0])
    run = discovered(chosen, {2: wishing(folder, action="veto", name=first)})
    assert first not in run.features["name"].tolist()
    assert first in run.found_features["name"].tolist(), "what was discovered stays as it is"
    assert [(one.action, one.by) for one in read_log(folder)] == [("drop", "Ann")]
    comparisons = [
        one["question"]
        for one in map(json.loads, (folder / "answers.jsonl").read_text().splitlines())
        if "examples" in one["question"]
    ]
    named = [name for one in run.findings.comparisons for name in [one.feature] if name]
    assert named.count(first) == 1
    assert len(comparisons) == 6


def test_a_log_that_nobody_of_ours_wrote_steers_nothing(world: World) -> None:
    chosen = settings(world)
    folder = Path(str(chosen.out))
    folder.mkdir(parents=True)
    lines = ["nonsense", "[]", '{"action": "veto"}', '{"action": "stop", "by": 7}', '{"action": "explode", "by": "x"}']
    for line in lines:
        (folder / "steer.jsonl").write_text(line + "\n")
        assert discovered(chosen).summary.stopped_because == "queries"


def test_what_a_person_enters_on_the_page_is_heeded_with_their_name(world: World, studio: StudioSite) -> None:
    chosen = settings(world)
    folder = Path(str(chosen.out))
    editor, key, replies = studio.staff("Ann", "editor"), key_of(folder.resolve()), []

    def enter() -> None:
        editor.get(f"/runs/{key}/discovery")
        for command in ({"action": "explode"}, {"action": "veto", "name": " "}, {"action": "stop"}):
            replies.append(editor.post(f"/runs/{key}/steer", command).status_code)

    run = discovered(chosen, {2: enter})
    assert replies == [422, 422, 303]
    assert run.summary.queries == 2
    [stop] = [one for one in read_events(folder / "steer.jsonl") if one["action"] == "stop"]
    assert stop["by"] == "Ann"
    late = editor.post(f"/runs/{key}/steer", {"action": "stop"})
    assert late.status_code == 409, "it is over"
    assert "CommandApplied" in (folder / "live.jsonl").read_text()
