"""Debian's Chromium, driven by playwright: pages are opened from disk or from a server of the test's own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE = 120_000  # milliseconds for whatever is waited for: a busy machine is no failure
MISSING = "Chromium is not installed: `apt-get install chromium` as root, or put `chromium` on the PATH"


def find_chromium() -> str | None:
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


@contextmanager
def running_chromium(executable: str) -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS), timeout=PATIENCE)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Opened:
    """A page with all that it complained about and all that it asked for elsewhere."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def opened(browser: Browser, address: str, **options: Any) -> Iterator[Opened]:
    """In a context of its own: no cookies, no cache, nothing from the page before."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    seen = Opened(context.new_page())
    seen.page.on("console", lambda message: seen.complaints.append(f"{message.type}: {message.text}"))
    seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    seen.page.on("request", lambda request: seen.requests.append(request.url))
    try:
        seen.page.goto(address)
        yield seen
    finally:
        context.close()


def keep(page: Page, name: str) -> None:
    """For somebody to look at."""
    if folder := os.environ.get("KEEP_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def click(wanted: Locator) -> None:
    """When it has come to rest: cards that come near the window get their true height, and what is below them moves."""
    wanted.scroll_into_view_if_needed()
    place, before = wanted.bounding_box(), None
    while place != before:
        wanted.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        place, before = wanted.bounding_box(), place
    wanted.click()


def address_of(path: Path, fragment: str = "") -> str:
    return path.resolve().as_uri() + (f"#{fragment}" if fragment else "")
