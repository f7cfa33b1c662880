"""A whole discovery by two people in real Chromium: one with the mouse, the other with nothing but the keyboard."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from flows import waiting
from flows.discover import run_discovery, run_flow
from flows.preparation import Prepared, prepare
from flows.settings import DiscoverSettings
from models.human import HumanOracle
from models.oracle import AnswersPending, Feature, Label
from reports.run import Run
from sources.dataset import Dataset
from sources.load import load_dataset
from store import Store
from store.queue import Shown, Terms
from tests.axe import MISSING, SCRIPT, serious_violations
from tests.chromium import Opened, opened
from tests.integration.conftest import Clock
from tests.people import TruthfulPerson
from tests.review_site import Site, running_site

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SCREEN = {"width": 1280, "height": 860}


class Truth:
    def __init__(self, dataset: Dataset) -> None:
        assert dataset.truth is not None
        self.columns = list(dataset.truth.columns)
        rows = dataset.truth.matrix.tolist()
        self.of = dict(zip((example.digest for example in dataset.examples), rows, strict=True))

    def two_of_three(self, digests: list[str]) -> tuple[str, list[int]]:
        for column, name in enumerate(self.columns):
            has = [bool(self.of[digest][column]) for digest in digests]
            if sum(has) == 2:
                return name, [place for place, one in enumerate(has) if one]
        raise AssertionError("no attribute tells these apart")

    def has(self, digest: str, name: str) -> bool:
        return bool(self.of[digest][self.columns.index(name)])


def digests_on(page: Page) -> list[str]:
    addresses = [image.get_attribute("src") or "" for image in page.locator(".card img").all()]
    return [address.split("/")[2] for address in addresses]


class Mouse:
    """Clicks, and types only what must be typed."""

    def compare(self, page: Page, name: str, places: list[int]) -> None:
        for place in places:
            page.locator(".card").nth(place).click()
        page.get_by_label("Its name").click()
        page.get_by_label("Its name").type(name)
        page.get_by_role("button", name="Save").click()

    def label(self, page: Page, marks: list[bool]) -> None:
        for place in [place for place, mark in enumerate(marks) if mark]:
            page.locator(".card").nth(place).click()
        page.get_by_role("button", name="Save").click()


class Keyboard:
    """Never touches the mouse."""

    def compare(self, page: Page, name: str, places: list[int]) -> None:
        for place in places:
            page.keyboard.press(str(place + 1))
        page.keyboard.press("Enter")  # goes to the name
        page.keyboard.type(name)
        page.keyboard.press("Enter")

    def label(self, page: Page, marks: list[bool]) -> None:
        for place in range(len(marks)):
            page.keyboard.press("ArrowRight")
            if marks[place]:
                page.keyboard.press("Space")
        page.keyboard.press("Enter")


class Reviewer:
    def __init__(self, name: str, hand: Mouse | Keyboard, seen: Opened, truth: Truth) -> None:
        self.name, self.hand, self.seen, self.truth = name, hand, seen, truth
        self.compared = self.labelled = 0

    @property
    def page(self) -> Page:
        return self.seen.page

    def begin(self) -> None:
        if isinstance(self.hand, Mouse):
            self.page.get_by_role("link", name="Begin").click()
        else:
            self.page.keyboard.press("Tab")
            self.page.keyboard.press("Enter")
        expect(self.page.locator("main.compare, main.labels, main.idle")).to_be_visible()

    def work(self) -> bool:
        """Answer what lies there; False where there is nothing just now."""
        page = self.page
        if page.locator("main.idle").count():
            return False
        digests, before = digests_on(page), page.locator("[name=lease]").first.get_attribute("value")
        if page.locator("main.compare").count():
            name, places = self.truth.two_of_three(digests)
            self.hand.compare(page, name, places)
            self.compared += 1
        else:
            name = page.locator("h1").inner_text()
            self.hand.label(page, [self.truth.has(digest, name) for digest in digests])
            self.labelled += len(digests)
        expect(page.locator(f"[name=lease][value='{before}']")).to_have_count(0)
        return True


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Site, DiscoverSettings]]:
    monkeypatch.setattr(waiting, "REGRET_SECONDS", 0.5)
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.1)
    settings = DiscoverSettings(
        dataset="datasets/faces",
        oracle="human:faces",
        queries=3,
        votes=3,
        elicit_on=24,
        seed=4,
        wait=True,
        store=str(tmp_path / "store.sqlite"),
        out=str(tmp_path / "run"),
    )
    with prepare(settings).store as store, running_site(store, repeats=0, checks=0) as running:
        yield running, settings


def picture(page: Page, name: str) -> None:
    """Renews the pictures of the docs when asked to."""
    if os.environ.get("RENEW_PICTURES"):
        IMAGES.mkdir(exist_ok=True)
        page.wait_for_timeout(300)
        page.screenshot(path=IMAGES / f"review-{name}.png")


def test_two_reviewers_discover_three_features(
    site: tuple[Site, DiscoverSettings], chromium: Browser, prefect_url: str
) -> None:
    del prefect_url  # the flow reports there
    running, settings = site
    truth = Truth(load_dataset(settings.dataset))
    with (
        ThreadPoolExecutor(1) as pool,
        opened(chromium, running.link("Ann"), viewport=SCREEN) as ann_sees,
        opened(chromium, running.link("Bob"), viewport=SCREEN, color_scheme="dark") as bob_sees,
    ):
        finished = pool.submit(lambda: run_flow(prepare(settings)))
        ann, bob = Reviewer("Ann", Mouse(), ann_sees, truth), Reviewer("Bob", Keyboard(), bob_sees, truth)
        assert serious_violations(ann.page) == []
        ann.begin()
        bob.begin()
        _answer_until(finished, ann, bob)
        run = finished.result()
        for one in (ann, bob):
            assert one.labelled == 3 * 24, f"{one.name} was shown every example of every feature once"
            assert [line for line in one.seen.complaints if "favicon" not in line] == []
            assert all(request.startswith(running.address) for request in one.seen.requests)
    assert ann.compared + bob.compared == 3
    _assert_found(run, truth)
    _look_at_the_overview(running, chromium)


def _answer_until(finished: Future[Run], *reviewers: Reviewer) -> None:
    """Both work on whatever appears; nobody reloads a page, the next question comes by itself."""
    deadline = time.monotonic() + 150
    checked: set[str] = set()
    while not finished.done() and time.monotonic() < deadline:
        for one in reviewers:
            kind = next(
                (kind for kind in ("compare", "labels", "idle") if one.page.locator(f"main.{kind}").count()), ""
            )
            if f"{kind} {one.name}" not in checked:
                checked.add(f"{kind} {one.name}")
                one.page.wait_for_load_state("networkidle")
                assert serious_violations(one.page) == []
            if not one.work():
                one.page.wait_for_timeout(100)
    assert finished.done(), "the discovery did not go on"


def _assert_found(run: Run, truth: Truth) -> None:
    assert run.summary["features"] == 3
    assert set(run.features["name"]) <= set(truth.columns)
    assert run.summary["truth"]["mean_balanced_accuracy"] == 1.0
    assert run.summary["oracle"] == {"kind": "human", "model": "faces", "parameters": {}, "prompts": ""}


def _look_at_the_overview(running: Site, chromium: Browser) -> None:
    with opened(chromium, running.link("boss", admin=True), viewport=SCREEN) as seen:
        seen.page.get_by_role("link", name="Open").click()
        expect(seen.page.get_by_role("heading", name="Reviewers")).to_be_visible()
        assert re.search(r"Ann\s+\d+", seen.page.locator("[aria-label=Reviewers]").inner_text())
        assert serious_violations(seen.page) == []
        with seen.page.expect_download() as download:
            seen.page.get_by_role("link", name="Export as CSV").click()
        assert len(download.value.path().read_text().splitlines()) == 1 + 3 + 2 * 3 * 24


def test_pictures_of_the_pages(site: tuple[Site, DiscoverSettings], chromium: Browser) -> None:
    """Each page as the docs show it, at a desk and on a phone."""
    running, settings = site
    prepared = prepare(settings.model_copy(update={"wait": False}))
    ask_one_question(prepared)
    desk = {"viewport": SCREEN}
    phone = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
    with opened(chromium, running.link("Ann"), **desk) as seen:
        picture(seen.page, "welcome")
        seen.page.get_by_role("link", name="Begin").click()
        name, places = Truth(prepared.dataset).two_of_three(digests_on(seen.page))
        for place in places:
            seen.page.keyboard.press(str(place + 1))
        seen.page.get_by_label("Its name").fill(name)
        picture(seen.page, "compare")
        seen.page.get_by_role("button", name="Save").click()
    ask_one_question(prepared)
    for who, how in (("Ann", {**desk, "color_scheme": "dark"}), ("Bob", phone)):
        with opened(chromium, running.link(who), **how) as seen:
            seen.page.get_by_role("link", name="Begin").click()
            expect(seen.page.locator("main.labels")).to_be_visible()
            if who == "Ann":
                truth, marked = Truth(prepared.dataset), 0
                for key, digest in zip("abcdefghijkl", digests_on(seen.page), strict=True):
                    if truth.has(digest, name):
                        seen.page.keyboard.press(key)
                        marked += 1
                expect(seen.page.get_by_text(f"{marked} of 12 marked")).to_be_visible()
            picture(seen.page, "labels" if who == "Ann" else "phone")
            assert serious_violations(seen.page) == []


class Careless(TruthfulPerson):
    """Says no to everything."""

    def answer(self, shown: Shown) -> dict[str, str]:
        return {"verdict": "no"} if shown.kind == "label" else super().answer(shown)


def test_the_overview_tells_the_careful_from_the_careless(tmp_path: Path, chromium: Browser) -> None:
    faces = load_dataset("datasets/faces")
    clock = Clock(time.time() - 3000)
    with Store.open(str(tmp_path / "store.sqlite"), clock=clock) as store:
        queue = store.queue
        people = [(TruthfulPerson(queue, name, faces), pace) for name, pace in (("Ann", 27), ("Bob", 31), ("Cyd", 38))]
        people.append((Careless(queue, "Dan", faces), 5))
        for name in ("smile", "facial hair", "glasses"):
            questions = [Label(Feature(name), example, voter) for example in faces.examples[:48] for voter in range(3)]
            with pytest.raises(AnswersPending):
                list(HumanOracle(queue, "faces").ask(questions))
            while queue.waiting():
                for person, pace in people:
                    shown = queue.next_page(person.id, Terms(checks=0.2, repeats=0.1))
                    clock.now += pace
                    queue.give(person.id, {one.id: person.answer(one) for one in shown})
        clock.now = time.time()
        with running_site(store) as running:
            for name in ("Ann", "Bob", "Cyd", "Dan"):
                running.link(name)
            with opened(chromium, running.link("boss", admin=True), viewport={"width": 1280, "height": 960}) as seen:
                seen.page.get_by_role("link", name="Open").click()
                warnings = seen.page.locator(".problem").all_inner_texts()
                assert warnings
                assert all(line.startswith("Dan") for line in warnings)
                picture(seen.page, "overview")
                assert serious_violations(seen.page) == []


def test_axe_would_find_a_barrier(site: tuple[Site, DiscoverSettings], chromium: Browser) -> None:
    if not SCRIPT.exists():
        pytest.skip(MISSING)
    with opened(chromium, site[0].link("Ann")) as seen:
        seen.page.evaluate("document.querySelector('main').append(document.createElement('img'))")
        assert any(line.startswith("image-alt") for line in serious_violations(seen.page))


def ask_one_question(prepared: Prepared) -> None:
    with pytest.raises(AnswersPending):
        run_discovery(prepared, run_id=f"run {threading.get_ident()} {time.monotonic()}")


def test_on_a_phone_one_example_is_shown_at_a_time(site: tuple[Site, DiscoverSettings], chromium: Browser) -> None:
    running, settings = site
    prepared = prepare(settings.model_copy(update={"wait": False}))
    ask_one_question(prepared)
    visitor = running.visitor("Ann")
    visitor.get()
    name, places = Truth(prepared.dataset).two_of_three(re.findall(r"/media/([0-9a-f]{64})", visitor.page))
    assert visitor.answer(shown=places, name=name).status_code == 303
    ask_one_question(prepared)
    with opened(chromium, running.link("Bob"), viewport={"width": 390, "height": 844}) as seen:
        page = seen.page
        page.get_by_role("link", name="Begin").click()
        for number in range(12):
            expect(page.locator(".cell:visible")).to_have_count(1)
            expect(page.get_by_text(f"{number + 1} of 12", exact=True)).to_be_visible()
            page.get_by_role("button", name="Yes, it has" if number % 2 else "No", exact=True).click()
        expect(page.get_by_text("6 of 12 marked")).to_be_visible()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("12 answered")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_text("0 answered")).to_be_visible()
        assert page.locator(".card input:checked").count() == 6


def test_everything_works_without_javascript(site: tuple[Site, DiscoverSettings], chromium: Browser) -> None:
    running, settings = site
    prepared = prepare(settings.model_copy(update={"wait": False}))
    ask_one_question(prepared)
    with opened(chromium, running.link("Ann"), viewport=SCREEN, java_script_enabled=False) as seen:
        page = seen.page
        page.get_by_role("link", name="Begin").click()
        name, places = Truth(prepared.dataset).two_of_three(digests_on(page))
        page.get_by_label("Its name").fill(name)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_have_text("Choose the two that share it: 0 are chosen now.")
        expect(page.get_by_label("Its name")).to_have_value(name)
        for place in places:
            page.locator(".card").nth(place).click()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("1 answered")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(page.locator(".card input:checked")).to_have_count(2)
        page.locator("#skip summary").click()
        page.get_by_label("Why?").select_option("The question is unclear")
        page.get_by_role("button", name="Skip").click()
        expect(page.get_by_role("heading", name="Nothing to answer just now")).to_be_visible()
    (row,) = running.store.queue.records()
    assert row["answer"] == {"skipped": "The question is unclear"}
