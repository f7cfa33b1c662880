"""The whole story in real Chromium: a discovery is started from the form, watched, steered, stopped, goes on, is
corrected, curated and exported; by mouse and by keys alone; and it is killed, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pandas as pd
import pytest
from playwright.sync_api import Browser, Error, Locator, Page, expect

from tests.e2e.studio.test_screens import picture
from tests.support.axe import serious_violations
from tests.support.chromium import opened
from tests.support.fake_openai import Abilities, Failings, LifelikeServer
from tests.support.fake_openai.server import CHAT
from tests.support.growing_worlds import World
from tests.support.review_browser import SCREEN
from tests.support.review_site import served
from tests.support.studio_site import StudioSite
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.serving.app import StudioSettings, make_studio, studio_link
from twothirds.flows.serving.steer import ENTERED
from twothirds.models import Asks, Compare, Elicited, collect_answers
from twothirds.models.prices import parse_price
from twothirds.reports.finished_run import Run
from twothirds.sources.load import load_dataset
from twothirds.store import Store

WORDS = (
    *("red", "round", "heavy", "old", "loud", "warm", "wet", "smooth"),
    *("bright", "narrow", "sharp", "sweet", "hollow", "frozen", "striped", "wooden"),
)
PRICE = "0.15,0.60,0.075"
# nothing is asked again for a fault, and every answer names something new
QUIET = Failings(prose=0, broken=0, too_many=0, slow=0, vague=0, repeats_known=0, other_words=0, label_noise=0.02)
PROCESS = subprocess.Popen  # tests put others in its place
STEPS = 700  # of the Tab key, at most, to whatever is wanted


class Mouse:
    def click(self, wanted: Locator) -> None:
        wanted.click()

    def write(self, wanted: Locator, text: str) -> None:
        wanted.fill(text)

    def tick(self, wanted: Locator) -> None:
        wanted.check()

    def choose(self, wanted: Locator, value: str) -> None:
        wanted.select_option(value)

    def correct(self, cell: Locator) -> None:
        cell.get_by_role("button", name="yes").click()


class Keys:
    """Tab, letters, the arrows, Space and Enter, and nothing else."""

    def reach(self, wanted: Locator) -> None:
        expect(wanted).to_be_visible()
        for _ in range(STEPS):
            if wanted.evaluate("(one) => one === document.activeElement"):
                return
            wanted.page.keyboard.press("Tab")
        raise AssertionError(f"{wanted} cannot be reached by Tab")

    def click(self, wanted: Locator) -> None:
        self.reach(wanted)
        wanted.page.keyboard.press("Enter")

    def write(self, wanted: Locator, text: str) -> None:
        self.reach(wanted)
        wanted.page.keyboard.press("Control+a")
        wanted.page.keyboard.type(text)

    def tick(self, wanted: Locator) -> None:
        self.reach(wanted)
        wanted.page.keyboard.press("Space")

    def choose(self, wanted: Locator, value: str) -> None:
        self.reach(wanted)
        wanted.page.keyboard.type(value)

    def correct(self, cell: Locator) -> None:
        self.reach(cell)
        cell.page.keyboard.press("y")


@dataclass
class Discoveries:
    """What the studio has started; `gate` lets it ask one more question where it runs in a thread."""

    processes: list[Any] = field(default_factory=list)
    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def in_thread(self, words: list[str], *, stdout: Any, **_: Any) -> Any:
        """In place of a process: the same settings, without Prefect, which takes ten seconds to start."""
        chosen = json.loads(Path(words[words.index("--config") + 1]).read_text())["settings"]
        prepared, log = prepare(DiscoverSettings.model_validate(chosen)), os.dup(stdout.fileno())

        def compare(oracle: Asks, questions: list[Any]) -> Elicited:
            if isinstance(questions[0], Compare):
                assert self.gate.acquire(timeout=120)
            return collect_answers(oracle, questions)

        def run() -> None:
            try:
                run_discovery(prepared, run_id=str(uuid4()), compare=compare)
            finally:
                os.close(log)  # by which the studio sees that it has ended

        thread = threading.Thread(target=run, daemon=True)
        thread.wait = thread.join  # type: ignore[attr-defined]
        thread.start()
        self.processes.append(thread)
        return thread

    def in_process(self, words: list[str], **terms: Any) -> Any:
        self.processes.append(PROCESS(words, **terms))
        return self.processes[-1]

    def let(self, questions: int) -> None:
        self.gate.release(questions)


@pytest.fixture
def discoveries() -> Iterator[Discoveries]:
    made = Discoveries()
    yield made
    made.let(1000)
    for one in made.processes:
        if isinstance(one, PROCESS) and one.poll() is None:
            one.kill()
        elif isinstance(one, threading.Thread):
            one.join(60)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 40, WORDS)


@contextmanager
def studio(folder: Path) -> Iterator[StudioSite]:
    (folder / "runs").mkdir(exist_ok=True)
    url, roots = str(folder / "store.sqlite"), (str(folder / "runs"),)
    with (
        Store.open(url) as store,
        served(lambda page: make_studio(store, StudioSettings(roots, page), url)) as (at, visitors),
    ):
        site = StudioSite(store, at, visitors)
        site.root = folder / "runs"
        yield site


@dataclass
class Story:
    page: Page
    hands: Mouse | Keys
    let: Callable[[int], None]
    features: dict[str, str] = field(default_factory=dict)

    def start(self, world: World, server: LifelikeServer, queries: int) -> None:
        page, hands = self.page, self.hands
        page.wait_for_url("**/runs")
        hands.click(page.get_by_role("link", name="New discovery"))
        hands.write(page.get_by_label("data set", exact=True), world.spec)
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}"
        hands.write(page.get_by_label("oracle", exact=True), oracle)
        hands.write(page.get_by_label("questions", exact=True), str(queries))
        hands.write(page.get_by_label("budget", exact=True), "1")
        hands.click(page.get_by_text("more settings"))
        # labels after each question: features are seen as they are found
        page.get_by_label("strategy", exact=True).select_option("adaptive-triple")
        hands.click(page.locator("#estimate").get_by_role("button", name="Estimate"))
        expect(page.get_by_role("button", name="Start it")).to_be_visible()
        picture(page, "start")
        assert serious_violations(page) == []
        hands.click(page.get_by_role("button", name="Start it"))

    def steer(self) -> None:
        """Once three features are there: veto one, add one, ask about three examples."""
        page, hands = self.page, self.hands
        names = page.locator("#found > li:not(.gone) bdi[title]")
        expect(names.nth(2)).to_be_visible()
        first = texts_of(names)[2]
        hands.click(page.get_by_role("button", name=f"Veto {first}", exact=True))
        # held for some seconds, for whoever takes it back; questions are asked only after it has been sent
        expect(page.locator("#toasts").get_by_text(ENTERED)).to_be_visible()
        found = " ".join(texts_of(names)).casefold()
        own = next(word for word in reversed(WORDS) if word not in found)
        hands.click(page.get_by_text("Add a feature"))
        hands.write(page.get_by_label("Name"), own)
        hands.write(page.get_by_label("Definition"), f"It is {own}.")
        hands.click(page.get_by_role("button", name="Add it"))
        expect(page.locator(".steer .outcome").first).to_have_text(ENTERED)
        page.keyboard.press("Escape")
        hands.click(page.get_by_text("Ask about three examples"))
        for number in (4, 5, 6):
            hands.tick(page.locator("#picker").get_by_role("checkbox", name=f"e{number:06}"))
        assert serious_violations(page) == []
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        page.set_viewport_size({"width": SCREEN["width"], "height": SCREEN["height"]})
        hands.click(page.get_by_role("button", name="Ask about these"))
        expect(page.locator("#pick .outcome")).to_have_text(ENTERED)
        self.let(3)
        expect(page.get_by_text(f"vetoes {first}")).to_be_visible()
        expect(page.get_by_text("asks about e000004, e000005, e000006")).to_be_visible()
        expect(page.locator("#found > li").filter(has_text="added by Olga")).to_have_count(1)
        self.features = {"vetoed": first, "own": own}

    def stop_and_go_on(self, queries: int) -> None:
        page, hands = self.page, self.hands
        hands.click(page.get_by_role("button", name="Stop"))
        self.let(2)
        hands.click(page.get_by_role("link", name="look at its features"))
        hands.click(page.get_by_role("link", name="Continue …"))
        hands.write(page.get_by_label("questions in all"), str(queries))
        hands.write(page.get_by_label("budget in all, in USD"), "2")
        hands.click(page.get_by_role("button", name="Estimate"))
        picture(page, "again")
        assert serious_violations(page) == []
        hands.click(page.get_by_role("button", name="Go on", exact=True))
        self.let(1000)
        hands.click(page.get_by_role("link", name="look at its features"))

    def curate_and_export(self, folder: Path) -> dict[str, Path]:
        page, hands = self.page, self.hands
        hands.click(page.get_by_role("link", name="Check labels"))
        page.get_by_role("combobox", name="labels").select_option("all")
        expect(page.locator(".cell").nth(5)).to_be_visible()
        for number in range(5):
            hands.correct(page.locator(".cell").nth(number))
            expect(page.locator(".cell.corrected")).to_have_count(number + 1)
        hands.click(page.get_by_role("navigation", name="Parts").get_by_role("link", name="Features"))
        names = texts_of(page.locator("#list .feature-row > bdi"))
        one, other = [name for name in names[-3:] if name != self.features["own"]][-2:]
        self.features |= {"into": one, "merged": other}
        page.goto(page.url.partition("?")[0] + "?" + urlencode({"feature": one}))
        page.keyboard.press("m")
        page.get_by_label("Merge with").select_option(other)
        hands.click(page.locator("#card").get_by_role("button", name="Merge"))
        expect(page.locator(".plan")).to_be_visible()
        hands.click(page.locator("#card").get_by_role("button", name="Merge"))
        expect(page.locator("#list .feature-row")).to_have_count(len(names) - 1)
        hands.click(page.get_by_text("Export ▾"))
        kept = {}
        for name in ("wide-parquet", "features"):
            hands.choose(page.get_by_label("Export as"), name)
            with page.expect_download() as loading:
                hands.click(page.get_by_role("button", name="Export"))
            kept[name] = folder / loading.value.suggested_filename
            loading.value.save_as(kept[name])
        return kept


def texts_of(wanted: Locator) -> list[str]:
    """Also of what is not drawn because it is out of sight. A page that a key has left is another one in a moment."""
    for _ in range(5):
        wanted.page.wait_for_load_state()
        try:
            return [text.strip() for text in wanted.all_text_contents()]
        except Error as error:
            gone = error
    raise gone


def check_export(features: dict[str, str], kept: dict[str, Path], run: Run) -> None:
    """The file has all of it, with who."""
    wide = pd.read_parquet(kept["wide-parquet"])
    assert {features["own"], features["into"]} <= set(wide.columns)
    assert not {features["vetoed"], features["merged"]} & set(wide.columns)
    marked = [column for column in wide.columns if column.endswith("(by)")]
    assert sum(int((wide[column] == "Olga").sum()) for column in marked) == 5
    table = pd.read_csv(kept["features"], keep_default_na=False).set_index("name")
    assert table.loc[features["own"], "added_by"] == "Olga"
    assert f"merged with “{features['merged']}” by Olga" in str(table.loc[features["into"], "changes"])
    asked = [one for one in run.findings.comparisons if one.examples == ("e000004", "e000005", "e000006")]
    assert len(asked) == 1
    words = [one.words for one in run.summary.steered]
    assert f"vetoes {features['vetoed']}" in words
    assert features["vetoed"] in run.found_features["name"].tolist(), "what was discovered stays as it is"


def asked_twice(server: LifelikeServer) -> int:
    """Requests that the server's own book has more than once."""
    bodies = Counter(json.dumps(body, sort_keys=True) for body in server.bodies(CHAT))
    return sum(count - 1 for text, count in bodies.items() if "Say hello." not in text)


def test_a_discovery_is_started_steered_and_exported(
    world: World, tmp_path: Path, chromium: Browser, discoveries: Discoveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twothirds.flows.serving.process.subprocess.Popen", discoveries.in_thread)
    tell_story(world, tmp_path, chromium, discoveries, Mouse())


@pytest.mark.slow
def test_keys_alone_lead_through_all_of_it(
    world: World, tmp_path: Path, chromium: Browser, discoveries: Discoveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twothirds.flows.serving.process.subprocess.Popen", discoveries.in_thread)
    tell_story(world, tmp_path, chromium, discoveries, Keys())


def tell_story(world: World, folder: Path, chromium: Browser, discoveries: Discoveries, hands: Mouse | Keys) -> None:
    terms: dict[str, Any] = {"price": parse_price(PRICE)}
    with LifelikeServer(load_dataset(world.spec), QUIET, **terms) as server, studio(folder) as site:
        link = studio_link(site.store, "Olga", "admin", site.settings())
        with opened(chromium, link, viewport=SCREEN) as seen:
            story = Story(seen.page, hands, discoveries.let)
            discoveries.let(4)
            story.start(world, server, 12)
            story.steer()
            story.stop_and_go_on(14)
            [made] = site.root.iterdir()
            assert asked_twice(server) == 0
            kept = story.curate_and_export(folder)
            assert [one for one in seen.complaints if "error" in one.lower()] == []
        assert Run(made).summary.queries == 14
        check_export(story.features, kept, Run(made))
        lines = site.store.costs.lines()
        assert server.spent(parse_price(PRICE)) <= sum(one.paid + one.unknown for one in lines)


@pytest.mark.slow  # real processes and Prefect servers
def test_the_same_discovery_killed_in_the_middle_loses_nothing(
    world: World, tmp_path: Path, chromium: Browser, discoveries: Discoveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twothirds.flows.serving.process.subprocess.Popen", discoveries.in_process)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    terms: dict[str, Any] = {"price": parse_price(PRICE), "abilities": Abilities(latency=0.4)}
    with LifelikeServer(load_dataset(world.spec), QUIET, **terms) as server:
        with studio(tmp_path) as site:
            link = studio_link(site.store, "Olga", "admin", site.settings())
            with opened(chromium, link, viewport=SCREEN) as seen:
                story = Story(seen.page, Mouse(), discoveries.let)
                story.start(world, server, 24)
                story.steer()
                [made] = site.root.iterdir()
                charged = len(server.book)
                discoveries.processes[-1].kill()
                discoveries.processes[-1].wait()
                seen.page.wait_for_timeout(2000)  # until the server has answered nobody
                in_flight = len(server.book) - charged + 2  # and what came and was not kept yet
                seen.page.reload()
                expect(seen.page.get_by_text("It is not running")).to_be_visible()
        answered = sum(one.paid_calls for one in _books(tmp_path))
        with studio(tmp_path) as site:  # restarted
            link = studio_link(site.store, "Olga", "admin", site.settings())
            with opened(chromium, link, viewport=SCREEN) as seen:
                again = Story(seen.page, Mouse(), discoveries.let, story.features)
                seen.page.wait_for_url("**/runs")
                seen.page.locator(".going a").first.click()
                seen.page.get_by_role("link", name="Continue …").click()
                seen.page.get_by_label("questions in all").fill("16")
                seen.page.get_by_role("button", name="Estimate").click()
                seen.page.get_by_role("button", name="Go on", exact=True).click()
                seen.page.get_by_role("link", name="look at its features").click()
                kept = again.curate_and_export(tmp_path)
        run = Run(made)
        assert run.summary.queries == 16
        check_export(story.features, kept, run)
        assert asked_twice(server) <= in_flight, "only what was being answered when it was killed"
        assert sum(one.paid_calls for one in _books(tmp_path)) > answered


def _books(folder: Path) -> list[Any]:
    with Store.open(str(folder / "store.sqlite")) as store:
        return store.costs.lines()
