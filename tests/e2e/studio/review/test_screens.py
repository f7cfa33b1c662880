"""The pages themselves in real Chromium: at a desk, on a phone, without JavaScript, and without barriers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from flows.discover.flow import run_discovery
from flows.discover.preparation import Prepared, prepare
from models.oracle import AnswersPending, Feature, Label
from models.people.human import HumanOracle
from sources.load import load_dataset
from store import Store
from store.review.leases import LeasedQuestion, LeaseTerms
from tests.integration.conftest import Clock
from tests.support.axe import MISSING, SCRIPT, serious_violations
from tests.support.chromium import opened
from tests.support.people import TruthfulPerson
from tests.support.review_browser import SCREEN, Truth, digests_on, faces_by_people, picture
from tests.support.review_site import Site, running_site


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    return prepare(faces_by_people(tmp_path).model_copy(update={"wait": False}))


@pytest.fixture
def running(prepared: Prepared) -> Iterator[Site]:
    with prepared.store as store, running_site(store, repeats=0, checks=0) as site:
        yield site


def test_pictures_of_the_pages(running: Site, prepared: Prepared, chromium: Browser) -> None:
    """Each page as the docs show it, at a desk and on a phone."""
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

    def answer(self, shown: LeasedQuestion) -> dict[str, str]:
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
            while queue.records.waiting():
                for person, pace in people:
                    shown = queue.leases.next_page(person.id, LeaseTerms(checks=0.2, repeats=0.1))
                    clock.now += pace
                    queue.votes.give(person.id, {one.id: person.answer(one) for one in shown})
        clock.now = time.time()
        with running_site(store) as running:
            for name in ("Ann", "Bob", "Cyd", "Dan"):
                running.link(name)
            with opened(chromium, running.link("boss", admin=True), viewport={"width": 1280, "height": 960}) as seen:
                seen.page.get_by_role("link", name="Open").click()
                expect(seen.page.get_by_role("heading", name="Reviewers")).to_be_visible()
                seen.page.wait_for_load_state()
                warnings = seen.page.locator(".problem").all_inner_texts()
                assert warnings
                assert all(line.startswith("Dan") for line in warnings)
                picture(seen.page, "overview")
                assert serious_violations(seen.page) == []


def test_axe_would_find_a_barrier(running: Site, chromium: Browser) -> None:
    if not SCRIPT.exists():
        pytest.skip(MISSING)
    with opened(chromium, running.link("Ann")) as seen:
        seen.page.evaluate("document.querySelector('main').append(document.createElement('img'))")
        assert any(line.startswith("image-alt") for line in serious_violations(seen.page))


def ask_one_question(prepared: Prepared) -> None:
    with pytest.raises(AnswersPending):
        run_discovery(prepared, run_id=f"run {time.monotonic()}")


def test_everything_works_without_javascript(running: Site, prepared: Prepared, chromium: Browser) -> None:
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
        expect(page.get_by_role("heading", name="The review is paused")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(page.locator(".card input:checked")).to_have_count(2)
        page.locator("#skip summary").click()
        page.get_by_label("Why?").select_option("The question is unclear")
        page.get_by_role("button", name="Skip").click()
        expect(page.get_by_role("heading", name="Nothing to answer just now")).to_be_visible()
    (row,) = running.store.queue.records.answers()
    assert row["answer"] == {"skipped": "The question is unclear"}
