"""The pages themselves in real Chromium: at a desk, on a phone, idle, without JavaScript, and without barriers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from tests.integration.conftest import Clock
from tests.support.asking import ask
from tests.support.axe import MISSING, SCRIPT, serious_violations, violations
from tests.support.chromium import keep, opened
from tests.support.made import texts
from tests.support.people import TruthfulPerson
from tests.support.review_browser import SCREEN, Truth, digests_on, faces_by_people, picture
from tests.support.review_site import Site, running_site
from twothirds.discovery.questions import Kind
from twothirds.flows.discover.preparation import Prepared, prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.models.oracle import AnswersPending, Compare, Feature, Label
from twothirds.models.people.human import HumanOracle
from twothirds.sources.dataset import Example
from twothirds.sources.load import load_dataset
from twothirds.store import Store
from twothirds.store.review.leases import LeasedQuestion, LeaseTerms

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LONG = "A sentence that goes on and on. " * 120


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
    for who, how in (("Ann", {**desk, "color_scheme": "dark"}), ("Bob", {**PHONE, "device_scale_factor": 2})):
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
                list(ask(HumanOracle(queue, "faces"), questions))
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


def triple(start: int) -> Compare:
    return Compare(Kind.TWO_OF_THREE, texts(start + 3)[start:])


def test_what_is_typed_is_a_name_and_never_a_shortcut(site: Site, chromium: Browser) -> None:
    site.ask([triple(0), triple(3)])
    with opened(chromium, site.link("Ann"), viewport=SCREEN) as seen:
        page = seen.page
        page.get_by_role("link", name="Begin").click()
        for place in (0, 1):
            page.locator(".card").nth(place).click()
        expect(page.locator("#count")).to_have_text("2 of 2 chosen")
        page.keyboard.type("necktie")
        expect(page.locator("#name")).to_have_value("necktie")
        assert list(site.store.queue.records.answers()) == []
        page.reload()
        expect(page.locator("#name")).to_have_value("necktie")
        expect(page.locator(".card input:checked")).to_have_count(2)
        page.locator("#name").fill("")
        page.locator("h1").click()
        page.keyboard.type("3d glasses")
        expect(page.locator("#name")).to_have_value("3d glasses")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Question 2 of about 2")).to_be_visible()
        page.keyboard.type("sunhat")
        expect(page.locator("#name")).to_have_value("sunhat")
        page.locator("#name").fill("")
        page.locator("h1").click()
        page.keyboard.press("2")
        page.keyboard.press("2")
        page.keyboard.press("n")
        assert len(list(site.store.queue.records.answers())) == 1
        expect(page.locator("#nothing")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main.idle")).to_be_visible()
    assert [row["answer"].get("name") for row in site.store.queue.records.answers()] == ["3d glasses", None]


def test_on_a_phone_nothing_starts_over_and_a_reload_keeps_the_place(site: Site, chromium: Browser) -> None:
    site.ask([Label(Feature("smile"), example) for example in load_dataset("datasets/faces").examples[:12]])
    with opened(chromium, site.link("Bob"), **PHONE) as seen:
        page = seen.page
        page.get_by_role("link", name="Begin").click()
        for number in range(5):
            page.get_by_role("button", name="Yes, it has" if number % 2 else "No", exact=True).tap()
        expect(page.get_by_text("6 of 12", exact=True)).to_be_visible()
        page.reload()
        expect(page.get_by_text("6 of 12", exact=True)).to_be_visible()
        keep(page, "phone-step")
        for _ in range(7):
            page.get_by_role("button", name="Cannot tell", exact=True).tap()
        expect(page.get_by_text("All seen: look once more, then save.")).to_be_visible()
        expect(page.get_by_text("2 of 12 marked")).to_be_visible()
        expect(page.get_by_role("button", name="Yes, it has")).to_be_hidden()
        cells = page.locator(".cell")
        first, second = cells.nth(0).bounding_box(), cells.nth(1).bounding_box()
        assert first is not None
        assert second is not None
        assert first["y"] == second["y"], "small, side by side: not the first one over again"
        keep(page, "phone-all-seen")
        page.reload()
        expect(page.get_by_text("2 of 12 marked")).to_be_visible()
        expect(page.get_by_text("All seen")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("button", name="Save").tap()
        expect(page.get_by_role("heading", name="Nothing to answer just now")).to_be_visible()


def test_an_idle_tab_takes_no_questions_and_says_that_there_are_some(site: Site, chromium: Browser) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    try:
        page.clock.install()
        page.goto(site.link("Ann"))
        page.get_by_role("link", name="Begin").click()
        expect(page.get_by_text("No question has been asked yet.")).to_be_visible()
        page.clock.fast_forward(10 * 60 * 1000)
        site.ask([triple(0)])
        page.clock.run_for(3000)
        expect(page.get_by_text("There are new questions.")).to_be_visible()
        assert site.store.queue.leases.held() == []
        page.get_by_role("link", name="Go on").click()
        expect(page.locator("main.compare")).to_be_visible()
        (held,) = site.store.queue.leases.held()
        page.mouse.move(50, 50)
        page.clock.run_for(61_000)
        page.wait_for_load_state("networkidle")
        (kept,) = site.store.queue.leases.held()
        assert kept.until > held.until + 600, "somebody is at work on it"
    finally:
        context.close()


def test_texts_show_that_they_go_on_and_have_room(site: Site, chromium: Browser) -> None:
    long = [Example(f"l{n}", f"{n:064x}", text=LONG if n else "short") for n in range(6)]
    site.ask([Label(Feature("rambling"), example) for example in long])
    with opened(chromium, site.link("Ann"), viewport=SCREEN) as seen:
        page = seen.page
        page.get_by_role("link", name="Begin").click()
        expect(page.locator("button.more:visible")).to_have_count(5)
        rows = {round(box["y"]) for card in page.locator(".card").all() if (box := card.bounding_box())}
        assert len(rows) == 2, "three columns"
        keep(page, "texts")
        cut = page.locator(".cell").filter(has=page.locator("button.more:visible")).first
        before = cut.locator(".text").bounding_box()
        cut.locator("button.more").click()
        expect(cut.locator("button.more")).to_have_attribute("aria-expanded", "true")
        after = cut.locator(".text").bounding_box()
        assert before is not None
        assert after is not None
        assert after["height"] > before["height"] + 100
        assert violations(page) == []


def test_motion_can_be_stopped(site: Site, chromium: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "moving"
    folder.mkdir()
    frames = [Image.new("RGB", (60, 40), colour) for colour in ("red", "green", "blue")]
    for number in range(3):
        turned = frames[number:] + frames[:number]
        turned[0].save(folder / f"{number}.gif", save_all=True, append_images=turned[1:], duration=80, loop=0)
    site.ask([Compare(Kind.TWO_OF_THREE, load_dataset(str(folder)).examples)])
    link = site.link("Ann")
    with opened(chromium, link, viewport=SCREEN) as seen:
        seen.page.get_by_role("link", name="Begin").click()
        first = seen.page.locator(".cell").first
        expect(first.locator(".moving")).to_be_visible()
        first.get_by_label("Pause").check()
        expect(first.locator(".moving")).to_be_hidden()
        expect(first.locator(".still")).to_be_visible()
        assert violations(seen.page) == []
    with opened(chromium, link, viewport=SCREEN, reduced_motion="reduce", java_script_enabled=False) as seen:
        seen.page.get_by_role("link", name="Begin").click()
        expect(seen.page.locator(".moving:visible")).to_have_count(0)
        expect(seen.page.locator(".still:visible")).to_have_count(3)
