"""Debian's Chromium, driven by playwright: pages are opened from disk or from a server of the test's own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from playwright.sync_api import Browser, Error, Locator, Page, expect, sync_playwright

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
    """In a tab of its own: no cookies, nothing stored, nothing from the page before."""
    tabs = _FREE_TABS.setdefault(browser, {}).setdefault(repr(sorted(options.items())), [])
    seen = Opened(tabs.pop() if tabs else _new_tab(browser, options))
    hears: dict[Any, Callable[[Any], None]] = {
        "console": lambda message: seen.complaints.append(f"{message.type}: {message.text}"),
        "pageerror": lambda error: seen.complaints.append(str(error)),
        "request": lambda request: seen.requests.append(request.url),
    }
    for event, hear in hears.items():
        seen.page.on(event, hear)
    try:
        seen.page.goto(address)
        yield seen
    except BaseException:
        seen.page.context.close()
        raise
    for event, hear in hears.items():
        seen.page.remove_listener(event, hear)
    if _emptied(seen.page, options):
        tabs.append(seen.page)
    else:
        seen.page.context.close()


# A new renderer computes for a second: a tab that was left as it was found serves again.
_FREE_TABS: WeakKeyDictionary[Browser, dict[str, list[Page]]] = WeakKeyDictionary()


def _new_tab(browser: Browser, options: dict[str, Any]) -> Page:
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    return context.new_page()


def _emptied(page: Page, options: dict[str, Any]) -> bool:
    """Whether nothing is left of what was shown; a tab that was changed or is not alone is not to be had again."""
    if options.get("java_script_enabled") is False or len(page.context.pages) > 1:
        return False
    size = page.viewport_size
    try:
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        page.unroute_all()
        page.emulate_media(color_scheme=options.get("color_scheme", "light"))
        page.context.clear_cookies()
        page.goto("about:blank")
    except Error:  # such as a page that may store nothing
        return False
    return size == options.get("viewport", size)


def keep(page: Page, name: str) -> None:
    """For somebody to look at."""
    if folder := os.environ.get("KEEP_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


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
