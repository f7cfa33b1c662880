"""compare.html in Chromium: sorted, filtered, readable on a telephone, and harmless whatever the names are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.chromium import address_of, click, opened
from tests.support.comparisons import compared, feature_list, make_world, prepared
from tests.support.run_folders import HOSTILE
from twothirds.reports.compare.comparison import OracleComparison
from twothirds.reports.compare.exports import write_comparison
from twothirds.studio.web.numbers import unbroken

NAMES = ("hat", "glasses", "beard", HOSTILE[0], HOSTILE[1], HOSTILE[9])
MODEL, PEOPLE = "simulated?flip=0.25&seed=1", "simulated?flip=0.2&seed=2&price=0.01"


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> tuple[OracleComparison, Path]:
    folder = tmp_path_factory.mktemp("page")
    dataset = make_world(folder, n=50, features=NAMES)
    settings = {"features": feature_list(folder / "f.csv", NAMES), "people": PEOPLE, "votes": "3"}
    found = compared(folder, dataset, MODEL, PEOPLE, **settings)
    data = prepared(folder, dataset, MODEL, PEOPLE, **settings)
    return found, write_comparison(found, folder / "out", data.dataset, {})


def test_the_table_sorts_by_a_heading_and_back(chromium: Browser, comparison: tuple[OracleComparison, Path]) -> None:
    found, path = comparison
    wanted = sorted(one["Cohen's kappa"].value or 0.0 for one in found.pairs[0].by_feature)
    with opened(chromium, address_of(path)) as seen:
        heading = seen.page.locator("#features th", has_text="kappa")
        for order, values in (("descending", wanted[::-1]), ("ascending", wanted)):
            click(heading.get_by_role("button"))
            expect(heading).to_have_attribute("aria-sort", order)
            cells = seen.page.locator("#features tbody tr td:nth-child(3)")
            shown = [float(cell.get_attribute("data-value") or "nan") for cell in cells.all()]
            assert shown == pytest.approx(values)
        assert seen.complaints == []


def test_disagreements_are_filtered_by_feature_and_by_who_was_right(
    chromium: Browser, comparison: tuple[OracleComparison, Path]
) -> None:
    found, path = comparison
    with opened(chromium, address_of(path)) as seen:
        count = seen.page.locator("#card-count")
        total = len(found.disagreements)
        expect(count).to_have_text(f"{total} of {total}")
        seen.page.locator("#card-right").select_option("0")
        right = [card for card in found.disagreements if card.labels[0] == card.truth]
        expect(count).to_have_text(f"{len(right)} of {total}")
        seen.page.locator("#card-feature").select_option("1")
        both = sum(card.feature == 1 for card in right)
        expect(count).to_have_text(f"{both} of {total}")
        expect(seen.page.locator(".card")).to_have_count(min(both, 60))
        click(seen.page.locator("button.see-cards[data-feature='2']"))
        expect(count).to_have_text(f"{sum(one.feature == 2 for one in found.disagreements)} of {total}")
        assert seen.page.locator(".card h3").all_text_contents() == ["beard"] * seen.page.locator(".card").count()


def test_hostile_names_are_only_text_and_nothing_is_fetched(
    chromium: Browser, comparison: tuple[OracleComparison, Path]
) -> None:
    _, path = comparison
    with opened(chromium, address_of(path)) as seen:
        expect(seen.page.locator("#cards .card").first).to_be_visible()
        assert "owned" not in seen.page.title()
        assert seen.complaints == []
        assert [url for url in seen.requests if not url.startswith(("file:", "data:"))] == []
        assert HOSTILE[0] in seen.page.locator("#features tbody").inner_text()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_does_not_scroll_sideways(
    chromium: Browser, comparison: tuple[OracleComparison, Path], width: int
) -> None:
    _, path = comparison
    with opened(chromium, address_of(path), viewport={"width": width, "height": 800}) as seen:
        expect(seen.page.locator("#methods")).to_be_attached()
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_says_what_the_json_says(chromium: Browser, comparison: tuple[OracleComparison, Path]) -> None:
    _, path = comparison
    content = json.loads((path.parent / "comparison.json").read_text(encoding="utf-8"))
    kappa = content["agreement"][0]["overall"]["Cohen's kappa"]["value"]
    with opened(chromium, address_of(path)) as seen:
        assert f"a kappa of {kappa:.2f}" in seen.page.locator(".verdict").inner_text()
        assert seen.page.locator("#methods-text").inner_text() == unbroken(content["methods"])
        click(seen.page.locator(".copy"))
        expect(seen.page.locator(".copy")).not_to_have_text("copy")
