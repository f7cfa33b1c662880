"""The studio in real Chromium: corrected by mouse and by keys alone, curated, browsed, followed live, no barriers."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.axe import serious_violations
from tests.support.chromium import opened
from tests.support.review_browser import IMAGES, SCREEN
from tests.support.studio_site import StudioSite, faces_run
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.serving.app import studio_link
from twothirds.models import Asks, Elicited, collect_answers
from twothirds.reports.curation.corrections import read_corrections
from twothirds.reports.finished_run import Run

FACES = ["beard", "glasses", "open mouth", "hat", "long hair"]


def picture(page: Page, name: str) -> None:
    """Renews the pictures of the docs when asked to."""
    if os.environ.get("RENEW_PICTURES"):
        page.wait_for_timeout(400)
        page.screenshot(path=IMAGES / f"studio-{name}.png")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    definitions = ["Hair on the chin.", "Something before the eyes.", "", "Anything on the head.", ""]
    about = {"total_usd": 0.42, "finished_at": "2026-11-16T09:30:00+00:00", "g": 0.084}
    return faces_run(tmp_path / "runs" / "faces-gpt", FACES, 60, definitions=definitions, **about)


@pytest.fixture
def site(run: Run, studio: StudioSite) -> StudioSite:
    del run
    return studio


def link(site: StudioSite, name: str, role: str = "editor") -> str:
    return studio_link(site.store, name, role, site.settings())


def test_labels_are_corrected_by_mouse_and_by_keys_alone(site: StudioSite, run: Run, chromium: Browser) -> None:
    with opened(chromium, link(site, "Ann"), viewport=SCREEN) as seen:
        page = seen.page
        assert serious_violations(page) == []
        page.wait_for_url("**/runs")
        assert serious_violations(page) == []
        page.get_by_role("link", name="faces-gpt").click()
        expect(page.locator("#map")).to_be_visible()
        picture(page, "run")
        assert serious_violations(page) == []
        page.get_by_role("link", name="Check labels").click()
        expect(page.locator(".cell").first).to_be_focused()
        page.locator(".cell").first.get_by_role("button", name="yes").click()
        expect(page.locator(".cell").first).to_have_class("cell yes corrected")
        page.locator(".cell").nth(1).focus()
        page.keyboard.press("n")
        expect(page.locator(".cell").nth(1)).to_have_class("cell no corrected")
        expect(page.locator(".cell").nth(2)).to_be_focused()
        page.keyboard.press("y")
        expect(page.locator(".cell").nth(2)).to_have_class("cell yes corrected")
        expect(page.locator(".cell").nth(3)).to_be_focused()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("c")
        expect(page.locator(".cell.corrected")).to_have_count(2)
        picture(page, "correct")
        assert serious_violations(page) == []
        assert [one for one in seen.complaints if "error" in one.lower()] == []
    assert [one.label for one in read_corrections(run.folder)] == [1, 0, 1, None]


@pytest.mark.slow
def test_a_label_that_somebody_else_corrected_is_reported_at_its_card(site: StudioSite, chromium: Browser) -> None:
    with opened(chromium, link(site, "Ann")) as ann, opened(chromium, link(site, "Bob")) as bob:
        for seen in (ann, bob):
            seen.page.wait_for_url("**/runs")
            seen.page.get_by_role("link", name="faces-gpt").click()
            seen.page.get_by_role("link", name="Check labels").click()
        ann.page.locator(".cell").first.get_by_role("button", name="yes").click()
        expect(ann.page.locator(".cell.corrected")).to_have_count(1)
        bob.page.locator(".cell").first.get_by_role("button", name="no", exact=True).click()
        expect(bob.page.locator(".cell").first.locator(".trouble")).to_contain_text("Somebody else")
        assert serious_violations(bob.page) == []


def test_features_are_renamed_merged_and_brought_back(site: StudioSite, run: Run, chromium: Browser) -> None:
    with opened(chromium, link(site, "Ann"), viewport=SCREEN) as seen:
        page = seen.page
        page.wait_for_url("**/runs")
        page.get_by_role("link", name="faces-gpt").click()
        page.goto(page.url + "?feature=beard")
        page.keyboard.press("r")
        expect(page.get_by_label("New name")).to_be_focused()
        page.keyboard.type("whiskers")
        picture(page, "change")
        assert serious_violations(page) == []
        page.keyboard.press("Enter")
        expect(page.locator("#card").get_by_role("heading", name="whiskers")).to_be_visible()
        expect(page.locator(".toast")).to_contain_text("rename")
        assert serious_violations(page) == []
        page.keyboard.press("j")
        expect(page.locator("#card").get_by_role("heading", name="whiskers")).to_have_count(0)
        page.keyboard.press("k")
        expect(page.locator("#card").get_by_role("heading", name="whiskers")).to_be_visible()
        page.keyboard.press("m")
        page.get_by_label("Merge with").select_option("hat")
        page.locator("#card").get_by_role("button", name="Merge").click()
        expect(page.locator(".plan")).to_contain_text("keeps")
        assert serious_violations(page) == []
        page.get_by_role("button", name="Merge").click()
        expect(page.locator("#list .feature-row")).to_have_count(len(FACES) - 1)
        page.keyboard.press("z")
        expect(page.locator("#list .feature-row")).to_have_count(len(FACES))
        page.get_by_role("link", name="Settings").click()
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#list").get_by_text("beard")).to_be_visible()
    assert Run(run.folder).features["name"].tolist() == FACES


def test_a_discovery_is_watched_while_it_runs(site: StudioSite, tmp_path: Path, chromium: Browser) -> None:
    folder, go_on, held, asked = tmp_path / "runs" / "watched", threading.Event(), threading.Event(), [0]

    def compare(oracle: Asks, questions: list[Any]) -> Elicited:
        asked[0] += 1
        if asked[0] == 6:
            held.set()
            assert go_on.wait(120)
        return collect_answers(oracle, questions)

    settings = DiscoverSettings(
        dataset="datasets/faces",
        oracle="simulated:salience?price=0.001",
        queries=8,
        store=str(tmp_path / "other.sqlite"),
        out=str(folder),
    )
    prepared = prepare(settings)
    thread = threading.Thread(
        target=run_discovery, args=(prepared,), kwargs={"run_id": str(uuid4()), "compare": compare}, daemon=True
    )
    thread.start()
    assert held.wait(120)
    with opened(chromium, link(site, "Ann"), viewport=SCREEN) as seen:
        page = seen.page
        page.wait_for_url("**/runs")
        page.locator(".going a").click()
        expect(page.locator("#queries")).to_contain_text("5")
        expect(page.locator("#now img")).to_have_count(3)
        picture(page, "live")
        assert serious_violations(page) == []
        page.goto(f"{page.url}?ask=face-003,face-010,face-015")
        expect(page.locator("#picker :checked")).to_have_count(3)
        page.get_by_label("Search ids and texts").fill("face-02")
        expect(page.locator("#picker input")).to_have_count(13)
        expect(page.locator("#picker :checked")).to_have_count(3)
        page.locator("#pick").evaluate("(one) => one.scrollIntoView()")
        picture(page, "steer")
        assert serious_violations(page) == []
        shown = page.locator("#found").inner_text()
        page.reload()
        expect(page.locator("#queries")).to_contain_text("5")
        assert page.locator("#found").inner_text() == shown, "a reload shows the same"
        names = page.locator("#found bdi").all_inner_texts()
        page.get_by_role("button", name=f"Veto {names[1]}").click()
        page.get_by_role("button", name="Undo").click()
        page.get_by_role("button", name=f"Veto {names[0]}").click()
        expect(page.get_by_text("entered: it is applied")).to_have_count(1)
        assert not page.get_by_text("Continue").count(), "it runs"
        assert serious_violations(page) == []
        places = page.locator("#found li").evaluate_all("(all) => all.map((one) => one.offsetTop)")
        go_on.set()
        expect(page.get_by_text(f"vetoes {names[0]}")).to_be_visible()
        expect(page.get_by_role("link", name="look at its features")).to_be_visible()
        expect(page.locator("#queries")).to_contain_text("8")
        after = page.locator("#found li").evaluate_all("(all) => all.map((one) => one.offsetTop)")
        assert after[: len(places) - 1][1:] == places[1:-1], "nothing has moved under a cursor"
        assert [one for one in seen.complaints if "error" in one.lower()] == []
    thread.join()
    run = Run(folder)
    assert run.summary.queries == 8
    left = run.features["name"].tolist()
    assert names[0] not in left
    assert names[1] in left, "the veto that was taken back was never sent"
