"""A discovery is followed while it runs: what a viewer sees is what the run did, now, later and after a kill."""

from __future__ import annotations

import fcntl
import json
import re
import threading
import time
from html import unescape
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.growing_worlds import World
from tests.support.review_site import Visitor
from tests.support.run_folders import HOSTILE
from tests.support.steered_runs import Killed, discovered, kill, settings
from tests.support.studio_site import StudioSite
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.models import Asks, Elicited, collect_answers
from twothirds.reports.finished_run import Run
from twothirds.reports.run import LiveRun
from twothirds.studio.catalog import key_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 20)


def seen(visitor: Visitor, key: str, after: int = 0) -> list[str]:
    """The HTML of all changes until the stream ends."""
    reply = visitor.client.get(f"/runs/{key}/events?after={after}")
    assert reply.status_code == 200
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: ")]
    assert lines.pop() == "over"
    return lines


def features_in(*parts: str) -> dict[int, str]:
    """By their number: the latest that is said of each."""
    found = re.findall(r'<li id="found-(\d+)".*?<bdi title="[^"]*">(.*?)</bdi>', " ".join(parts), re.DOTALL)
    return {int(number): unescape(name) for number, name in found}


def answers_in(*parts: str) -> dict[int, int]:
    """The number of each question by its row."""
    found = re.findall(r'<li id="asked-(\d+)"[^>]*><span class="n">(\d*)</span>', " ".join(parts))
    return {int(row): int(number or 0) for row, number in found}


def test_what_is_shown_is_what_the_run_did(world: World, studio: StudioSite) -> None:
    run_discovery(prepare(settings(world)), run_id=str(uuid4()))
    run = Run(world.folder.parent / "runs" / "one")
    editor, key = studio.staff("Ann", "editor"), studio.key(run)
    parts, page = seen(editor, key), editor.get(f"/runs/{key}/discovery").text
    names = run.features["name"].tolist()
    assert list(features_in(page).values()) == names, "the latest last: nothing moves under a cursor"
    assert [features_in(*parts)[number] for number in range(len(names))] == names
    numbers = list(range(1, run.summary.queries + 1))
    assert list(answers_in(page).values()) == numbers[::-1]
    assert sorted(answers_in(*parts).values()) == numbers
    assert "look at its features" in parts[-1], "who watches is told where the results are"
    assert "not running" not in parts[-1]
    assert f"{run.summary.queries} <small>of" in page
    later = seen(editor, key, after=len(LiveRun(run.folder / "live.jsonl").events()) - 1)
    assert not features_in(*later), "who was cut off goes on from there"


def test_a_run_that_nobody_could_follow_shows_the_same_from_its_results(world: World, studio: StudioSite) -> None:
    run_discovery(prepare(settings(world)), run_id=str(uuid4()))
    run = Run(world.folder.parent / "runs" / "one")
    editor, key = studio.staff("Ann", "editor"), studio.key(run)
    followed = editor.get(f"/runs/{key}/discovery").text
    (run.folder / "live.jsonl").unlink()
    read = editor.get(f"/runs/{key}/discovery").text
    assert features_in(read) == features_in(followed)
    assert answers_in(read) == answers_in(followed)


def test_a_viewer_who_joins_late_sees_the_same_as_one_who_was_there(world: World, studio: StudioSite) -> None:
    folder, go_on, held = world.folder.parent / "runs" / "one", threading.Event(), threading.Event()
    asked = 0

    def compare(oracle: Asks, questions: list[Any]) -> Elicited:
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
        assert live.events()[-1]["kind"] == "QuestionAsked", "the question is shown before it is answered"
        key = key_of(folder.resolve())
        page = editor.get("/runs").text
        assert f'href="/runs/{key}/discovery"' in page, "what goes on is in the list"
        assert "2 of 6 questions" in page
        page = editor.get(f"/runs/{key}/discovery").text
        assert "Continue" not in page, "it runs"
        assert editor.get(f"/runs/{key}").headers["location"] == f"/runs/{key}/discovery", "there is no result yet"
        early: list[str] = []
        viewer = threading.Thread(target=lambda: early.extend(seen(studio.staff("Bob", "editor"), key)))
        viewer.start()
    finally:
        go_on.set()
        thread.join()
    viewer.join()
    assert not live.goes_on
    late = seen(editor, key)
    assert features_in(*early) == features_in(*late)
    assert answers_in(*early) == answers_in(*late)
    assert all("not running" not in part for part in early)


def test_a_stream_ends_seconds_after_its_reader_was_revoked(world: World, studio: StudioSite) -> None:
    go_on, held = threading.Event(), threading.Event()

    def compare(oracle: Asks, questions: list[Any]) -> Elicited:
        held.set()
        assert go_on.wait(60)
        return collect_answers(oracle, questions)

    prepared = prepare(settings(world))
    thread = threading.Thread(target=run_discovery, args=(prepared,), kwargs={"run_id": "r", "compare": compare})
    thread.start()
    assert held.wait(60)
    ann, bob = (studio.staff(name, "editor") for name in ("Ann", "Bob"))
    address = f"/runs/{key_of((world.folder.parent / 'runs' / 'one').resolve())}/events"
    try:
        with ann.client.stream("GET", address) as stream, bob.client.stream("GET", address) as other:
            lines, others = stream.iter_lines(), other.iter_lines()
            assert next(lines).startswith("id: ")
            assert next(others).startswith("id: ")
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
    assert "It is not running" in seen(editor, key)[-1]
    discovered(settings(world))
    assert list(answers_in(editor.get(f"/runs/{key}/discovery").text).values()) == list(range(6, 0, -1))


def test_hostile_names_arrive_as_data(world: World, studio: StudioSite) -> None:
    world.texts = {name: HOSTILE[number % len(HOSTILE)] + str(number) for number, name in enumerate(world.texts)}
    world.write()
    run_discovery(prepare(settings(world)), run_id=str(uuid4()))
    editor, key = studio.staff("Ann", "editor"), key_of((world.folder.parent / "runs" / "one").resolve())
    page = "".join(seen(editor, key)) + editor.get(f"/runs/{key}/discovery").text
    assert "&lt;script&gt;" in page
    assert "<script>document" not in page


def test_a_discovery_that_has_written_nothing_yet_has_a_page(world: World, studio: StudioSite) -> None:
    folder = world.folder.parent / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / "live.jsonl").write_text("")
    reply = studio.staff("Ann", "editor").get(f"/runs/{key_of(folder.resolve())}/discovery")
    assert reply.status_code == 200


def test_people_who_are_asked_are_waited_for_whatever_the_run_says(world: World, studio: StudioSite) -> None:
    folder = world.folder.parent / "runs" / "one"
    folder.mkdir(parents=True)
    begun = {"kind": "RunStarted", "run_id": "1", "name": "x", "oracle": "human", "queries": 3, "settings": {}}
    with (folder / "live.jsonl").open("w") as file:
        for event in (
            begun | {"budget_usd": None},
            {"kind": "QuestionAsked", "questions": [], "features": [["a", ""]]},
        ):
            file.write(json.dumps(event) + "\n")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        page = studio.staff("Ann", "editor").get(f"/runs/{key_of(folder.resolve())}/discovery").text
    assert "waiting for people" in page
    assert "People are asked." in page
    assert "nothing is known" not in page
