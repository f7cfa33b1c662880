"""The pages in the languages of their readers, disputes and training: in real Chromium, without barriers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.axe import violations
from tests.support.chromium import keep, opened
from tests.support.review_browser import SCREEN
from tests.support.review_site import Site, running_site
from twothirds.discovery.questions import Kind
from twothirds.models.oracle import Compare, Exemplar, Feature, Label
from twothirds.sources.load import load_dataset
from twothirds.store import Store

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


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
