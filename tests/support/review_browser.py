"""What tests of the review page in Chromium share: the truth about the faces, and pictures for the docs."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Page, expect

from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.sources.dataset import Dataset

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SCREEN = {"width": 1280, "height": 860}


def faces_by_people(folder: Path) -> DiscoverSettings:
    """Three features of 24 faces, by people."""
    return DiscoverSettings(
        dataset="datasets/faces",
        oracle="human:faces",
        queries=3,
        votes=3,
        elicit_on=24,
        seed=4,
        wait=True,
        store=str(folder / "store.sqlite"),
        out=str(folder / "run"),
    )


class Truth:
    def __init__(self, dataset: Dataset) -> None:
        assert dataset.truth is not None
        self.columns = list(dataset.truth.columns)
        rows = dataset.truth.matrix.tolist()
        self.of = dict(zip((example.digest for example in dataset.examples), rows, strict=True))

    def two_of_three(self, digests: list[str]) -> tuple[str, list[int]]:
        for column, name in enumerate(self.columns):
            has = [bool(self.of[digest][column]) for digest in digests]
            if sum(has) == 2:
                return name, [place for place, one in enumerate(has) if one]
        raise AssertionError("no attribute tells these apart")

    def has(self, digest: str, name: str) -> bool:
        return bool(self.of[digest][self.columns.index(name)])


def wait_for_question(page: Page) -> str:
    """Until what was asked for is there, whole and with its script at work: `compare`, `labels`, or `idle`, which
    becomes another page by itself."""
    shown = page.locator("main.compare, main.labels, main.idle")
    expect(shown).to_be_visible()
    page.wait_for_load_state()
    return (shown.get_attribute("class") or "").split()[0]


def digests_on(page: Page) -> list[str]:
    wait_for_question(page)
    addresses = [image.get_attribute("src") or "" for image in page.locator(".card img").all()]
    return [address.split("/")[2] for address in addresses]


def picture(page: Page, name: str) -> None:
    """Renews the pictures of the docs when asked to."""
    if os.environ.get("RENEW_PICTURES"):
        IMAGES.mkdir(exist_ok=True)
        page.wait_for_timeout(300)
        page.screenshot(path=IMAGES / f"review-{name}.png")
