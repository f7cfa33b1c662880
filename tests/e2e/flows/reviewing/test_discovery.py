"""A whole discovery by two people in real Chromium: one with the mouse, the other with nothing but the keyboard."""

from __future__ import annotations

import re
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.axe import serious_violations
from tests.support.chromium import Opened, opened
from tests.support.review_browser import SCREEN, Truth, digests_on, faces_by_people, wait_for_question
from tests.support.review_site import Site, running_site
from twothirds.flows.discover.flow import run_prepared
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.reviewing import waiting
from twothirds.reports.finished_run import Run
from twothirds.sources.load import load_dataset


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
        wait_for_question(self.page)

    def work(self) -> bool:
        """Answer what lies there; False where there is nothing just now."""
        page = self.page
        kind = wait_for_question(page)
        if kind == "idle":
            return False
        digests, before = digests_on(page), page.locator("[name=lease]").first.get_attribute("value")
        if kind == "compare":
            name, places = self.truth.two_of_three(digests)
            self.hand.compare(page, name, places)
            self.compared += 1
        else:
            name = page.locator("h1").inner_text()
            self.hand.label(page, [self.truth.has(digest, name) for digest in digests])
            self.labelled += len(digests)
        expect(page.locator(f"[name=lease][value='{before}']")).to_have_count(0)
        return True


@pytest.mark.timeout(900)  # a busy machine is no failure
def test_two_reviewers_discover_three_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chromium: Browser, prefect_url: str
) -> None:
    assert prefect_url  # the flow reports there
    monkeypatch.setattr(waiting, "REGRET_SECONDS", 0.5)
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.1)
    settings = faces_by_people(tmp_path)
    truth = Truth(load_dataset(settings.dataset))
    with (
        prepare(settings).store as store,
        running_site(store, repeats=0, checks=0) as running,
        ThreadPoolExecutor(1) as pool,
        opened(chromium, running.link("Ann"), viewport=SCREEN) as ann_sees,
        opened(chromium, running.link("Bob"), viewport=SCREEN, color_scheme="dark") as bob_sees,
    ):
        finished = pool.submit(lambda: run_prepared(prepare(settings)))
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
    deadline = time.monotonic() + 600
    checked: set[str] = set()
    while not finished.done() and time.monotonic() < deadline:
        for one in reviewers:
            kind = wait_for_question(one.page)
            if f"{kind} {one.name}" not in checked:
                checked.add(f"{kind} {one.name}")
                one.page.wait_for_load_state("networkidle")
                assert serious_violations(one.page) == []
            if not one.work():
                one.page.wait_for_timeout(100)
    assert finished.done(), "the discovery did not go on"


def _assert_found(run: Run, truth: Truth) -> None:
    assert run.summary.features == 3
    assert set(run.features["name"]) <= set(truth.columns)
    assert run.summary.truth is not None
    assert run.summary.truth.mean_balanced_accuracy == 1.0
    assert run.summary.oracle.model_dump() == {"kind": "human", "model": "faces", "parameters": {}, "prompts": ""}


def _look_at_the_overview(running: Site, chromium: Browser) -> None:
    with opened(chromium, running.link("boss", admin=True), viewport=SCREEN) as seen:
        seen.page.get_by_role("link", name="Open").click()
        expect(seen.page.get_by_role("heading", name="Reviewers")).to_be_visible()
        assert re.search(r"Ann\s+\d+", seen.page.locator("[aria-label=Reviewers]").inner_text())
        assert serious_violations(seen.page) == []
        with seen.page.expect_download() as download:
            seen.page.get_by_role("link", name="Export as CSV").click()
        assert len(download.value.path().read_text().splitlines()) == 1 + 3 + 2 * 3 * 24
