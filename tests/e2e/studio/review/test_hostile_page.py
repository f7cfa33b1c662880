"""Hostile examples, names and people in real Chromium: nothing runs or is fetched, all stays in its place."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from tests.support.chromium import Opened, keep, opened
from tests.support.review_site import Site
from twothirds.discovery.questions import Kind
from twothirds.models.oracle import Compare, Feature, Label
from twothirds.sources.dataset import Example

SHOWS = "window.ran=1;alert(1)"
SCRIPT = f"<script>{SHOWS}</script><img src=x onerror='{SHOWS}'><svg onload='{SHOWS}'>"
LINK = f'<a href="javascript:{SHOWS}">here</a> javascript:{SHOWS} <iframe src="https://host.invalid"></iframe>'
TURNED = "left \u202eright\u2066 again"
TEXTS = [
    SCRIPT,
    LINK,
    f"</span></label></form></body>{SCRIPT}<style>*{{display:none}}</style>",
    TURNED,
    "nul \0 bell \x07 escape \x1b[2J half \ud800 end",
    "x" * 1_000_000,
    "word " * 200_000,
    "Z" + "\u0300" * 5_000,
    "\n" * 20_000,
    "{{ 7 * 7 }} {% raw %} ${7*7} <%= 7 %>",
    "‮‭" * 500 + "ﷺ" * 300,
    " ",
]
LONG = f"{TURNED} {SCRIPT} {'W' * 300}"
SIZES = [{"width": 1280, "height": 860}, {"width": 390, "height": 844}]


def example(number: int, **content: Any) -> Example:
    return Example(f"{SCRIPT}{number}", f"{number:064x}", **content)


def assert_in_place(seen: Opened, site: Site, *, broken: int = 0) -> None:
    """Nothing ran and nothing was fetched; the page is as wide as the window, and cards do not cover each other."""
    page = seen.page
    page.wait_for_load_state()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.ran") is None
    assert page.locator("main iframe, main svg, main script, main style, main a[href^='javascript']").count() == 0
    assert [url for url in seen.requests if not url.startswith(site.address)] == []
    while len(missing := [line for line in seen.complaints if "404" in line]) < broken:
        page.wait_for_timeout(50)
    assert [line for line in seen.complaints if line not in missing] == []
    assert len(missing) == broken
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    boxes = [box for card in page.locator(".card:visible").all() if (box := card.bounding_box())]
    assert boxes
    for place, one in enumerate(boxes):
        assert one["height"] < 1_200
        for other in boxes[place + 1 :]:
            apart = one["x"] + one["width"] <= other["x"] + 1 or other["x"] + other["width"] <= one["x"] + 1
            assert apart or one["y"] + one["height"] <= other["y"] + 1 or other["y"] + other["height"] <= one["y"] + 1


@pytest.mark.parametrize("size", [SIZES[0], pytest.param(SIZES[1], marks=pytest.mark.slow)], ids=["desk", "phone"])
def test_hostile_texts_and_names_are_text_and_stay_in_their_place(
    site: Site, chromium: Browser, size: dict[str, int]
) -> None:
    site.ask([Label(Feature(LONG, LONG), example(n, text=text)) for n, text in enumerate(TEXTS)], SCRIPT)
    with opened(chromium, site.link(f"Ann {TURNED} {SCRIPT}"[:80]), viewport=size) as seen:
        seen.page.get_by_role("link", name="Begin").click()
        expect(seen.page.locator("main.labels")).to_be_visible()
        keep(seen.page, f"labels-{size['width']}")
        assert_in_place(seen, site)
        texts = seen.page.locator(".card .text").evaluate_all("found => found.map(one => one.textContent)")
        assert {SCRIPT, LINK, TURNED, TEXTS[5]} <= set(texts)
        expect(seen.page.locator(".card:visible").first).to_be_in_viewport()
        if size["width"] > 1000:
            seen.page.keyboard.press("a")
            expect(seen.page.get_by_text(f"1 of {len(TEXTS)} marked")).to_be_visible()
            seen.page.get_by_role("button", name="Save").click()
            expect(seen.page.get_by_text(f"{len(TEXTS)} answered")).to_be_visible()
            expect(seen.page.get_by_role("heading", name="Nothing to answer just now")).to_be_visible()
            assert seen.page.evaluate("window.ran") is None
    if size["width"] > 1000:
        with opened(chromium, site.link("boss", admin=True), viewport=size) as seen:
            seen.page.get_by_role("link", name="Open").click()
            expect(seen.page.get_by_role("heading", name="Reviewers")).to_be_visible()
            keep(seen.page, "admin")
            assert seen.page.evaluate("window.ran") is None
            assert seen.complaints == []
            assert seen.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_hostile_pictures_are_pixels_or_nothing(site: Site, chromium: Browser, tmp_path: Path) -> None:
    Image.new("RGB", (6_000, 6_000), "teal").save(tmp_path / "huge.png")
    (tmp_path / "drawing.svg").write_text(f"<svg xmlns='http://www.w3.org/2000/svg'><script>{SHOWS}</script></svg>")
    (tmp_path / "page.png").write_text(f"<html>{SCRIPT}</html>")
    files = ["huge.png", "drawing.svg", "page.png"]
    digests = [hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in files]
    pictures = tuple(Example(SCRIPT, one, image=str(tmp_path / name)) for one, name in zip(digests, files, strict=True))
    site.ask([Compare(Kind.TWO_OF_THREE, pictures, known=(LONG, SCRIPT))], SCRIPT)
    with opened(chromium, site.link("Ann"), viewport=SIZES[0]) as seen:
        seen.page.get_by_role("link", name="Begin").click()
        expect(seen.page.locator("main.compare")).to_be_visible()
        assert_in_place(seen, site, broken=2)
        keep(seen.page, "compare")
        shown = seen.page.locator(".card img").first
        assert shown.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [1000, 1000]
        seen.page.goto(f"{site.address}/media/{pictures[2].digest}/large")
        assert seen.page.evaluate("window.ran") is None
