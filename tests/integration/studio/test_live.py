"""A discovery is followed while it runs: what a viewer sees is what the run did, now, later and after a kill."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.growing_worlds import World
from tests.support.review_site import Visitor
from tests.support.run_folders import HOSTILE
from tests.support.steered_runs import Killed, discovered, kill, settings
from tests.support.studio_site import StudioSite
from twothirds.flows.discover.flow import run_discovery
from twothirds.flows.discover.preparation import prepare
from twothirds.models import Elicited, Oracle, collect_answers
from twothirds.reports.finished_run import Run
from twothirds.reports.run import LiveRun
from twothirds.studio.catalog import key_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 20)


def seen(visitor: Visitor, key: str, after: int = 0) -> list[dict[str, Any]]:
    """All events until the stream ends."""
    reply = visitor.get(f"/live/{key}/events?after={after}")
    assert reply.status_code == 200
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines]


def test_what_is_shown_is_what_the_run_did(world: World, studio: StudioSite) -> None:
    run_discovery(prepare(settings(world)), run_id=str(uuid4()))
    run = Run(world.folder.parent / "runs" / "one")
    editor, key = studio.staff("Ann", "editor"), studio.key(run)
    *events, over = seen(editor, key)
    assert over == {"finished": True, "runs": False, "state": "ended"}
    assert events[0]["kind"] == "begun"
    assert "settings" not in events[0], "paths of the machine stay here"
    answers = [one for one in events if one["kind"] == "answer"]
    assert len(answers) == run.summary.queries
    assert [one["examples"] for one in answers] == [list(one.examples) for one in run.findings.comparisons]
    features = [one for one in events if one["kind"] == "feature"]
    assert [one["name"] for one in features] == run.features["name"].tolist()
    assert [one["yes"] for one in features] == [one.positives for one in run.findings.found]
    last = [one for one in events if one["kind"] == "state"][-1]
    assert (last["queries"], last["features"]) == (run.summary.queries, run.summary.features)
    assert last["usd"] == pytest.approx(run.summary.cost_usd)
    assert last["g"] == pytest.approx(run.summary.g, abs=1e-5)
    assert seen(editor, key, after=3)[:-1] == events[3:], "who was cut off goes on from there"
    assert f"/runs/{key}" in editor.get(f"/live/{key}").text


def test_a_viewer_who_joins_late_sees_the_same_as_one_who_was_there(world: World, studio: StudioSite) -> None:
    folder, go_on, held = world.folder.parent / "runs" / "one", threading.Event(), threading.Event()
    asked = 0

    def compare(oracle: Oracle, questions: list[Any]) -> Elicited:
        nonlocal asked
        asked += 1
        if asked == 3:
            held.set()
            assert go_on.wait(60)
        return collect_answers(oracle, questions)

    thread = threading.Thread(
        target=run_discovery, args=(prepare(settings(world)),), kwargs={"run_id": str(uuid4()), "compare": compare}
    )
    thread.start()
    assert held.wait(60)
    live, editor = LiveRun(folder / "live.jsonl"), studio.staff("Ann", "editor")
    try:
        assert live.goes_on
        assert live.events()[-1]["kind"] == "asking", "the question is shown before it is answered"
        key = key_of(folder.resolve())
        page = editor.get("/runs").text
        assert f'href="/live/{key}"' in page, "what goes on is in the list"
        assert editor.get(f"/live/{key}").status_code == 200
        assert editor.get(f"/runs/{key}").status_code == 404, "there is no result yet"
        early: list[dict[str, Any]] = []
        viewer = threading.Thread(target=lambda: early.extend(seen(studio.staff("Bob", "editor"), key)))
        viewer.start()
    finally:
        go_on.set()
        thread.join()
    viewer.join()
    assert not live.goes_on
    assert early == seen(editor, key)


def test_a_stream_ends_seconds_after_its_reader_was_revoked(world: World, studio: StudioSite) -> None:
    go_on, held = threading.Event(), threading.Event()

    def compare(oracle: Oracle, questions: list[Any]) -> Elicited:
        held.set()
        assert go_on.wait(60)
        return collect_answers(oracle, questions)

    prepared = prepare(settings(world))
    thread = threading.Thread(target=run_discovery, args=(prepared,), kwargs={"run_id": "r", "compare": compare})
    thread.start()
    assert held.wait(60)
    ann, bob = (studio.staff(name, "editor") for name in ("Ann", "Bob"))
    address = f"/live/{key_of((world.folder.parent / 'runs' / 'one').resolve())}/events"
    try:
        with ann.client.stream("GET", address) as stream, bob.client.stream("GET", address) as other:
            lines, others = stream.iter_lines(), other.iter_lines()
            assert next(lines) == next(others) == "id: 1"
            studio.store.queue.people.revoke("Ann")
            revoked = time.monotonic()
            for _ in lines:
                pass
            assert time.monotonic() - revoked < 10
            assert thread.is_alive(), "the run goes on"
            assert ann.get(address).status_code == 403
            go_on.set()
            assert any(line == "event: over" for line in others), "and so does everybody else's stream"
    finally:
        go_on.set()
        thread.join()


def test_a_run_that_is_killed_and_goes_on_shows_each_thing_once(world: World, studio: StudioSite) -> None:
    with pytest.raises(Killed):
        discovered(settings(world), {4: kill})
    key_folder = world.folder.parent / "runs" / "one"
    editor, key = studio.staff("Ann", "editor"), key_of(key_folder.resolve())
    assert seen(editor, key)[-1] == {"finished": False, "runs": False, "state": "not running"}
    discovered(settings(world))
    answers = [one["number"] for one in seen(editor, key) if one.get("kind") == "answer"]
    assert answers == list(range(1, 7))


def test_hostile_names_arrive_as_data(world: World, studio: StudioSite) -> None:
    world.texts = {name: HOSTILE[number % len(HOSTILE)] + str(number) for number, name in enumerate(world.texts)}
    world.write()
    run_discovery(prepare(settings(world)), run_id=str(uuid4()))
    editor, key = studio.staff("Ann", "editor"), key_of((world.folder.parent / "runs" / "one").resolve())
    events = seen(editor, key)
    shown = {text for one in events for text in one.get("texts", {}).values()}
    assert any("<script>" in text for text in shown)
    assert "<script>document" not in editor.get(f"/live/{key}").text
