"""The page in Chromium as people use it: typing, phones, idle tabs, long texts, motion, languages, barriers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from discovery.questions import Kind
from models.oracle import Compare, Exemplar, Feature, Label
from sources.dataset import Example
from sources.load import load_dataset
from store import Store
from tests.support.axe import violations
from tests.support.chromium import keep, opened
from tests.support.made import texts
from tests.support.review_browser import SCREEN
from tests.support.review_site import Site, running_site

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LONG = "A sentence that goes on and on. " * 120


def named(page: Page) -> str:
    return page.locator("#name").input_value()


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


@pytest.mark.parametrize(
    ("locale", "begin", "save", "none"),
    [
        ("de-DE", "Beginnen", "Speichern", "Zurzeit sind 0 gewählt"),
        pytest.param("fr-FR", "Commencer", "Enregistrer", "0 est choisi", marks=pytest.mark.slow),
    ],
)
def test_the_pages_speak_the_browsers_language_without_barriers(
    site: Site, chromium: Browser, locale: str, begin: str, save: str, none: str
) -> None:
    faces = load_dataset("datasets/faces").examples
    site.ask([Compare(Kind.TWO_OF_THREE, faces[:3]), *(Label(Feature("smile"), one) for one in faces[:12])])
    with opened(chromium, site.link("Ann", by="Carla"), viewport=SCREEN, locale=locale) as seen:
        page = seen.page
        expect(page.locator("html")).to_have_attribute("lang", locale[:2])
        assert violations(page) == []
        keep(page, f"welcome-{locale}")
        page.get_by_role("link", name=begin).click()
        keep(page, f"compare-{locale}")
        assert violations(page) == []
        page.locator("#name").fill("x")
        page.get_by_role("button", name=save).click()
        expect(page.get_by_role("alert")).to_contain_text(none)
        assert violations(page) == []
        page.keyboard.press("Escape")
        for key in ("1", "2"):
            page.keyboard.press(key)
        page.get_by_role("button", name=save).click()
        expect(page.locator("main.labels")).to_be_visible()
        keep(page, f"labels-{locale}")
        assert violations(page) == []
        page.get_by_role("button", name=save).click()
        expect(page.locator("main.idle")).to_be_visible()
        keep(page, f"idle-{locale}")
        assert violations(page) == []
    with opened(chromium, site.link("boss", admin=True), viewport=SCREEN, locale=locale, color_scheme="dark") as seen:
        seen.page.locator("a.button").click()
        keep(seen.page, f"overview-{locale}")
        assert violations(seen.page) == []
        seen.page.locator("form[action='/admin/withdraw'] button").click()
        keep(seen.page, f"withdraw-{locale}")
        assert violations(seen.page) == []


def test_disputes_are_decided_and_reviewers_practise_without_barriers(chromium: Browser, tmp_path: Path) -> None:
    faces = load_dataset("datasets/faces").examples
    feature = Feature("smile", "The mouth is bent up.", (Exemplar(faces[8], True), Exemplar(faces[9], False)))
    with (
        Store.open(str(tmp_path / "store.sqlite")) as store,
        running_site(store, checks=0, repeats=0, training=3) as site,
    ):
        site.ask([Label(feature, one, voter) for one in faces[:6] for voter in range(2)])
        for name, has in (("ann", 2), ("bob", 1)):
            visitor = site.visitor(name)
            visitor.get()
            visitor.answer(has=visitor.hidden("lease")[:has])
        with opened(chromium, site.link("Cyd"), viewport=SCREEN, locale="de-DE") as seen:
            seen.page.get_by_role("link", name="Beginnen").click()
            expect(seen.page.get_by_text("Einige Fragen zur Übung")).to_be_visible()
            assert violations(seen.page) == []
            seen.page.get_by_role("button", name="Speichern").click()
            expect(seen.page.get_by_role("heading", name="Ihr Ergebnis")).to_be_visible()
            keep(seen.page, "training")
            assert violations(seen.page) == []
        for how in ({"viewport": SCREEN, "locale": "fr-FR", "color_scheme": "dark"}, PHONE):
            with opened(chromium, site.link("boss", admin=True), **how) as seen:
                seen.page.goto(f"{site.address}/admin/disputed")
                expect(seen.page.locator(".dispute")).to_have_count(1)
                keep(seen.page, f"disputed-{'phone' if how is PHONE else 'desk'}")
                assert violations(seen.page) == []
                if how is PHONE:
                    seen.page.get_by_label("It lacks it").check()
                    seen.page.get_by_role("button", name="Save").click()
                    expect(seen.page.locator(".dispute")).to_have_count(0)
