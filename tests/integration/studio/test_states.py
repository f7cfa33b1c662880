"""What the studio says of a discovery that runs, waits, was killed or has ended; and what it has cost."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from tests.integration.studio.test_live import seen
from tests.support.growing_worlds import World
from tests.support.people import TruthfulPerson
from tests.support.review_site import Visitor
from tests.support.steered_runs import TRAITS, Killed, discovered, kill, settings
from tests.support.studio_site import StudioSite
from twothirds.flows.discover.outcome import Outcome
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.models.oracle import AnswersPending
from twothirds.reports.finished_run import Run
from twothirds.reports.run import LiveRun, RunError
from twothirds.store import Store
from twothirds.studio.catalog import key_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 20, TRAITS)


def unfinished(visitor: Visitor) -> list[str]:
    """The state of each discovery above the list of runs."""
    page = unescape(visitor.get("/runs").text)
    section = page.partition('<ul class="going">')[2].partition("</ul>")[0]
    return re.findall(r"UTC, ([a-z ]+)</span>", section)


def listed_usd(visitor: Visitor) -> dict[str, float]:
    """The cost of each run in the list, by the name of its folder."""
    page = visitor.get("/runs?sort=name").text
    rows = re.findall(r"<bdi>(one|two)</bdi></a>.*?\$([0-9.]+)</td>", page, re.DOTALL)
    return {name: float(usd) for name, usd in rows}


def booked(world: World) -> float:
    with Store.open(str(world.folder / "store.sqlite")) as store:
        return sum(line.paid for line in store.costs.lines()) / 1e6


def at_once(*each: DiscoverSettings) -> list[BaseException | None]:
    """All of them from the first question of the first one on; what each has raised."""
    raised: list[BaseException | None] = [None] * len(each)
    first_asks, others_ended = threading.Event(), threading.Event()

    def run(number: int, at: dict[int, Callable[[], None]]) -> None:
        try:
            discovered(each[number], at)
        except RunError as error:
            raised[number] = error

    def hold() -> None:
        first_asks.set()
        assert others_ended.wait(120)

    first = threading.Thread(target=run, args=(0, {4: hold}))
    first.start()
    assert first_asks.wait(120)
    for number in range(1, len(each)):
        run(number, {})
    others_ended.set()
    first.join()
    return raised


def test_of_two_runs_in_one_folder_the_second_is_refused_and_leaves_nothing(world: World, studio: StudioSite) -> None:
    chosen, editor = settings(world), studio.staff("Ann", "editor")
    none, refused = at_once(chosen, chosen)
    assert none is None
    assert "another discovery is writing" in str(refused)
    assert unfinished(editor) == []
    assert listed_usd(editor) == {"one": pytest.approx(booked(world), abs=1e-4)}
    with Store.open(str(world.folder / "store.sqlite")) as store:
        assert [run["status"] for run in store.runs.overview()] == ["stopped: queries"]


def test_results_of_another_execution_do_not_make_an_ended_one_go_on(world: World, studio: StudioSite) -> None:
    """As two runs leave them on a disk without locks."""
    run, editor = discovered(settings(world)), studio.staff("Ann", "editor")
    live = (run.folder / "live.jsonl").read_bytes()
    discovered(settings(world))
    (run.folder / "live.jsonl").write_bytes(live)
    assert unfinished(editor) == []


def test_a_killed_run_is_not_running(world: World, studio: StudioSite) -> None:
    with pytest.raises(Killed):
        discovered(settings(world), {4: kill})
    folder = Path(str(settings(world).out))
    lines = (folder / "live.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "live.jsonl").write_bytes(b"".join(lines[:-1]) + lines[-1][:-5])  # a kill ends it anywhere
    with Store.open(str(world.folder / "store.sqlite")) as store:
        [state] = store.runs.overview()
        store.runs.begin(
            state["run_id"], state["scope"], name="one", flow="discover", dataset="", oracle="", settings={}
        )  # nor has it told the store
    assert unfinished(studio.staff("Ann", "editor")) == ["not running"]


def test_a_watcher_reads_a_normal_end_however_long_the_results_take(
    world: World, studio: StudioSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run that was not started by the studio, which knows no process of it."""
    writes, go_on, write = threading.Event(), threading.Event(), Outcome.write

    def slow(outcome: Outcome, folder: Path) -> None:
        writes.set()
        assert go_on.wait(60)
        write(outcome, folder)

    monkeypatch.setattr(Outcome, "write", slow)
    chosen, editor = settings(world), studio.staff("Ann", "editor")
    run = threading.Thread(target=run_discovery, args=(prepare(chosen),), kwargs={"run_id": "r"})
    run.start()
    try:
        assert writes.wait(60)
        watched: list[str] = []
        key = key_of(Path(str(chosen.out)).resolve())
        viewer = threading.Thread(target=lambda: watched.extend(seen(editor, key)))
        viewer.start()
        viewer.join(3)  # in which it has read all events, and looks again and again
        assert unfinished(editor) == ["running"]
    finally:
        go_on.set()
        run.join()
    viewer.join()
    assert "look at its features" in watched[-1]
    assert unfinished(editor) == []


@pytest.mark.parametrize("wait", [False, True])
def test_a_run_that_waits_for_people_is_shown_as_waiting_for_people(
    world: World, studio: StudioSite, wait: bool
) -> None:
    """Whether its process waits or has ended until they have answered."""
    chosen = settings(world, oracle="human", queries=1, wait=wait)
    folder, editor = Path(str(chosen.out)), studio.staff("Ann", "editor")
    key = key_of(folder.resolve())
    if not wait:
        with pytest.raises(AnswersPending):
            discovered(chosen)
        assert unfinished(editor) == ["waiting for people"]
        assert "It waits for people" in editor.get(f"/runs/{key}/discovery").text
        return
    run = threading.Thread(target=discovered, args=(chosen,))
    run.start()
    with Store.open(str(world.folder / "store.sqlite")) as store:
        person = TruthfulPerson(store.queue, "bob", prepare(chosen).dataset)
        until(lambda: unfinished(editor) == ["waiting for people"])
        while run.is_alive():
            person.answer_page()
            run.join(0.2)
    assert unfinished(editor) == []
    kinds = [event["kind"] for event in LiveRun(folder / "live.jsonl").events()]
    assert kinds[-1] == "RunEnded"
    assert Run(folder).summary.queries == 1


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)
