"""Naming a family, choosing a value, saying why, and exemplars beside a label: in real Chromium, without barriers."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.axe import serious_violations
from tests.support.chromium import opened
from tests.support.fake_openai.examples import text_example
from tests.support.review_browser import SCREEN
from tests.support.review_site import Site
from twothirds.models.oracle import Choose, Exemplar, Family, Feature, Label, Why
from twothirds.sources.dataset import Dataset
from twothirds.sources.load import load_dataset

HAIR = tuple(Feature(f"{colour} hair", f"The hair is {colour}.") for colour in ("black", "blonde", "red", "grey"))
COLOUR = Feature("hair colour", "The colour of the hair on the head.")
DESK: dict[str, Any] = {"viewport": SCREEN}
DARK: dict[str, Any] = {"viewport": SCREEN, "color_scheme": "dark"}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def faces() -> Dataset:
    return load_dataset("datasets/faces")


def last_answer(site: Site) -> dict[str, Any]:
    *_, row = site.store.queue.records.answers()
    answer: dict[str, Any] = row["answer"]
    return answer


def begin(page: Page) -> None:
    page.get_by_role("link", name="Begin").click()


def no_wider_than_the_screen(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.mark.parametrize("how", [DESK, PHONE], ids=["desk", "phone"])
def test_a_family_is_marked_named_and_completed(
    site: Site, chromium: Browser, faces: Dataset, how: dict[str, Any]
) -> None:
    site.ask([Family((*HAIR[:3], Feature("hat", "Something on the head.")), faces.examples[:2])])
    with opened(chromium, site.link("Ann"), **how) as seen:
        page = seen.page
        begin(page)
        expect(page.get_by_role("heading", name="Which of these are values of one attribute?")).to_be_visible()
        expect(page.locator(".card img")).to_have_count(2)
        assert serious_violations(page) == []
        assert no_wider_than_the_screen(page)
        page.get_by_label("black hair").check()
        page.get_by_label("The attribute").fill("hair colour")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("Mark at least two")
        expect(page.get_by_label("The attribute")).to_have_value("hair colour")
        expect(page.get_by_label("black hair")).to_be_checked()
        assert serious_violations(page) == []
        for name in ("blonde hair", "red hair"):
            page.get_by_label(name).check()
        page.get_by_label("Values that are missing").fill("grey hair, white hair")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("1 answered")).to_be_visible()
        page.get_by_role("button", name="Undo").click()  # everything that was typed is there again
        expect(page.get_by_label("Values that are missing")).to_have_value("grey hair, white hair")
        expect(page.locator(".option input:checked")).to_have_count(3)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("1 answered")).to_be_visible()
        assert not [line for line in seen.complaints if "422" not in line]
    said = last_answer(site)
    assert (said["name"], said["shown"]) == ("hair colour", [0, 1, 2])
    assert [words for words, *_ in said["more"]] == ["grey hair", "white hair"]


def test_a_value_is_chosen_by_the_keyboard_alone(site: Site, chromium: Browser, faces: Dataset) -> None:
    site.ask([Choose(COLOUR, HAIR, example) for example in faces.examples[:3]])
    with opened(chromium, site.link("Ann"), **DARK) as seen:
        page = seen.page
        begin(page)
        expect(page.get_by_role("heading", name="hair colour")).to_be_visible()
        expect(page.get_by_role("radio")).to_have_count(len(HAIR))
        assert serious_violations(page) == []
        page.keyboard.press("2")
        page.keyboard.press("3")  # one only: the last
        expect(page.locator(".option input:checked")).to_have_count(1)
        page.keyboard.press("Enter")
        expect(page.get_by_text("Question 2 of about 3")).to_be_visible()
        assert (last_answer(site)["name"], last_answer(site)["shown"]) == ("red hair", [2])
        page.keyboard.press("n")
        expect(page.get_by_text("Question 3 of about 3")).to_be_visible()
        assert last_answer(site)["verdict"] == "none"
        page.get_by_role("button", name="More than one").click()
        expect(page.get_by_text("3 answered")).to_be_visible()
        assert last_answer(site)["note"] == "more than one of the values"


def test_a_person_says_why_and_quotes_the_text(site: Site, chromium: Browser) -> None:
    text = text_example("A man with\n red hair   waits for the bus.")
    site.ask([Why(HAIR[2], text)])
    with opened(chromium, site.link("Ann"), **PHONE) as seen:
        page = seen.page
        begin(page)
        expect(page.get_by_role("heading", name="red hair")).to_be_visible()
        assert serious_violations(page) == []
        assert no_wider_than_the_screen(page)
        page.get_by_label("It has it").check()
        page.get_by_label("Why", exact=False).first.fill("The text says so.")
        page.get_by_label("The words of the text").fill("green hair")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("as they stand in it")
        expect(page.get_by_label("It has it")).to_be_checked()
        page.get_by_label("The words of the text").fill("with red hair waits")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("1 answered")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_label("It has it")).to_be_checked()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("1 answered")).to_be_visible()
    quote = "with\n red hair   waits"
    assert last_answer(site) == {"verdict": "yes", "reason": "The text says so.", "quote": quote}


@pytest.mark.parametrize("how", [DARK, PHONE], ids=["dark desk", "phone"])
def test_exemplars_are_told_from_what_is_asked(
    site: Site, chromium: Browser, faces: Dataset, how: dict[str, Any]
) -> None:
    first, second, third, *others = faces.examples
    shown = Feature(
        "smile", "The mouth is bent up.", (Exemplar(first, True), Exemplar(second, True), Exemplar(third, False))
    )
    site.ask([Label(shown, example) for example in others[:4]])
    with opened(chromium, site.link("Ann"), **how) as seen:
        page = seen.page
        begin(page)
        aside = page.get_by_role("group", name="For comparison")
        expect(aside.locator("figure img")).to_have_count(3)
        expect(aside.get_by_text("This has it")).to_have_count(2)
        expect(aside.get_by_text("This lacks it")).to_have_count(1)
        expect(aside.get_by_role("checkbox")).to_have_count(0)
        page.wait_for_load_state()
        sizes = aside.locator("img").evaluate_all("all => all.map(one => one.naturalWidth)")
        assert all(sizes), "a picture did not load"
        assert serious_violations(page) == []
        assert no_wider_than_the_screen(page)
