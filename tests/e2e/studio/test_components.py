"""The components that all pages are made of, in pictures: light, dark and on a phone."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from tests.support.axe import violations
from tests.support.chromium import keep, opened
from tests.support.review_browser import SCREEN
from tests.support.studio_site import StudioSite
from twothirds.flows.serving.app import studio_link

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
MAY_CUT = "h1, h2, h3, .chip, button:not(.tile), .feature-row bdi, th, dt, dd"
CUT = """(chosen) => [...document.querySelectorAll(`main :is(${chosen})`)]
  .filter((one) => one.scrollHeight > one.clientHeight + 1 && getComputedStyle(one).display !== "inline")
  .map((one) => one.outerHTML)"""


def shades(page: Any, name: str) -> np.ndarray:
    keep(page, name)
    return np.asarray(Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("L"), np.float64)


@pytest.mark.parametrize("screen", [SCREEN, PHONE["viewport"]], ids=["screen", "phone"])
def test_components_have_no_barrier_clip_no_words_and_fit_in_light_and_in_dark(
    studio: StudioSite, chromium: Browser, screen: Any
) -> None:
    link = studio_link(studio.store, "Ann", "editor", studio.settings())
    with opened(chromium, link, viewport=screen) as seen:
        page = seen.page
        page.wait_for_url("**/runs")  # the link has led there by itself
        page.goto(f"{studio.address}/components")
        pictures = {}
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            pictures[scheme] = shades(page, f"components-{scheme}-{screen['width']}")
            assert violations(page) == [], scheme
        assert page.evaluate(CUT, MAY_CUT) == []
        assert page.evaluate("() => document.documentElement.scrollWidth") <= screen["width"]
        assert np.median(pictures["light"]) > 230
        assert np.median(pictures["dark"]) < 45
        assert pictures["light"].shape == pictures["dark"].shape, "the colours change, and nothing else"
        assert [line for line in seen.complaints if "violat" in line.lower() or "error" in line.lower()] == []
