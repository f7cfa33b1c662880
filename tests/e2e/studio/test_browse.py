"""The browser of the studio in real Chromium: by mouse, by keys alone, on a phone, and as the report's own."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.axe import serious_violations
from tests.support.browsed_runs import browsed_run
from tests.support.chromium import address_of, keep, opened
from tests.support.review_browser import IMAGES, SCREEN
from tests.support.run_folders import HOSTILE, make_run, random_matrix
from tests.support.studio_site import StudioSite, own_studio
from twothirds.flows.serving.app import studio_link
from twothirds.reports.finished_run import Run

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return browsed_run(tmp_path / "runs" / "people")


@pytest.fixture
def site(run: Run, studio: StudioSite) -> StudioSite:
    del run
    return studio


def browse(site: StudioSite, run: Run, chromium: Browser, choice: str = "", **options: Any) -> Any:
    return opened(chromium, studio_link(site.store, "Ann", "editor", site.settings()), **options), (
        f"{site.address}/runs/{site.key(run)}/browse{'#' if choice else ''}{choice}"
    )


def picture(page: Page, name: str) -> None:
    """Renews the pictures of the docs when asked to."""
    if os.environ.get("RENEW_PICTURES"):
        page.wait_for_timeout(500)
        page.screenshot(path=IMAGES / f"studio-{name}.png")
    keep(page, name)


def shown(page: Page) -> list[str]:
    return [
        str(title).partition(" — ")[0]
        for title in page.locator("#grid .tile").evaluate_all("tiles => tiles.map((one) => one.title)")
    ]


def matched(page: Page, count: int, total: int = 60) -> None:
    expect(page.locator("#matched")).to_have_text(f"{count} of {total} examples")


def table_of(run: Run) -> pd.DataFrame:
    return pd.read_csv(run.folder.parents[1] / "people.csv", keep_default_na=False).set_index("id")


def test_examples_are_chosen_searched_sorted_and_enlarged(site: StudioSite, run: Run, chromium: Browser) -> None:
    table, labels = table_of(run), run.labels
    visit, address = browse(site, run, chromium, viewport=SCREEN)
    with visit as seen:
        page = seen.page
        page.wait_for_url("**/runs")  # the link has led there by itself
        page.goto(address)
        matched(page, 60)
        assert serious_violations(page) == []
        page.get_by_role("button", name=re.compile("^has glasses:")).click()
        glasses = labels.index[(labels["glasses"] == 1).fillna(False)]
        matched(page, len(glasses))
        assert "yes=glasses" in page.url
        page.get_by_role("button", name=re.compile("^place: studio")).click()
        wanted = [name for name in glasses if table["place"][name] == "studio"]
        matched(page, len(wanted))
        assert shown(page) == wanted
        expect(page.locator("#grid img").first).to_have_attribute("src", re.compile(r"/media/\d+/small-still$"))
        assert page.locator("#grid img").first.evaluate("one => getComputedStyle(one).objectFit") == "contain"
        page.get_by_label("sort by").select_option("column.age")
        expect(page.locator("#grid .pick .caption").first).to_be_visible()
        ages = pd.to_numeric(table.loc[wanted, "age"])
        expect(page.locator("#grid .tile").first).to_have_attribute("title", str(ages.idxmin()))
        page.locator("#size").fill("4")
        picture(page, "browse")
        assert serious_violations(page) == []
        page.locator("#grid .tile").first.click()
        expect(page.locator("#example h2")).to_have_text(str(ages.idxmin()))
        expect(page.locator("#example .cells-of")).to_contain_text("studio")
        expect(page.locator("#example .large img")).to_have_js_property("complete", True)
        picture(page, "example")
        assert serious_violations(page) == []
        page.keyboard.press("ArrowRight")
        expect(page.locator("#example h2")).not_to_have_text(str(ages.idxmin()))
        page.keyboard.press("z")
        expect(page.locator("#example")).to_have_class("zoomed")
        assert serious_violations(page) == []
        page.keyboard.press("Escape")
        page.locator("#clear").click()
        page.locator("#words").fill(table.index[4].upper())
        matched(page, 1)
        assert shown(page) == [table.index[4]]
        address = page.url
        assert "size=4" in address
        assert [one for one in seen.complaints if "error" in one.lower()] == []
        page.goto("about:blank")
        page.goto(address)
        matched(page, 1)
        expect(page.locator("#words")).to_have_value(table.index[4].upper())


def test_marks_ranges_and_many_values_are_facets(site: StudioSite, run: Run, chromium: Browser) -> None:
    table = table_of(run)
    visit, address = browse(site, run, chromium, viewport=SCREEN)
    with visit as seen:
        page = seen.page
        page.wait_for_url("**/runs")  # the link has led there by itself
        page.goto(address)
        matched(page, 60)
        for mark in ("unknown", "doubtful", "contradicted", "corrected"):
            button = page.locator(f"#marks [data-mark={mark}]")
            count = int(button.locator(".count").inner_text())
            assert count > 0
            button.click()
            matched(page, count)
            button.click()
            matched(page, 60)
        page.get_by_role("button", name="marks of glasses").click()
        page.get_by_role("button", name="glasses corrected 3").click()
        matched(page, 3)
        assert shown(page) == [run.findings.ids[row] for row in (1, 2, 5)]
        assert serious_violations(page) == []
        page.locator("#clear").click()
        ages = pd.to_numeric(table["age"], errors="coerce")
        page.get_by_label("age from").fill("40")
        page.get_by_label("age from").press("Tab")
        matched(page, int((ages >= 40).sum()))
        page.get_by_label("age to").fill("50")
        page.get_by_label("age to").press("Enter")
        matched(page, int(ages.between(40, 50).sum()))
        page.get_by_role("button", name="remove age: 40 – 50").click()
        matched(page, 60)
        page.locator("#columns summary", has_text="drawn by").click()
        page.get_by_label("Find a value of drawn by").fill("drawer 1")
        value = page.locator("#columns details", has_text="drawn by").locator(".value bdi").first
        expect(value).to_have_text(re.compile("Drawer 1"))
        name = value.inner_text()
        value.click()
        matched(page, int((table["drawn by"] == name).sum()))
        assert serious_violations(page) == []


def test_keys_alone_select_export_and_find_the_nearest(site: StudioSite, run: Run, chromium: Browser) -> None:
    visit, address = browse(site, run, chromium, viewport=SCREEN, accept_downloads=True)
    with visit as seen:
        page = seen.page
        page.wait_for_url("**/runs")  # the link has led there by itself
        page.goto(address)
        matched(page, 60)
        page.locator("#select-none").evaluate("one => { one.disabled = false; one.focus(); }")
        page.locator("#export-parquet").focus()
        page.locator("#grid .tile").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("x")
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Shift+ArrowRight")
        expect(page.locator("#selected")).to_have_text("3 selected")
        picture(page, "selection")
        assert serious_violations(page) == []
        assert page.url.count("selected=") == 3
        page.keyboard.press(" ")
        expect(page.locator("#selected")).to_have_text("2 selected")
        chosen = run.findings.ids[1:3]
        page.locator("#export-ids").focus()
        with page.expect_download() as got:
            page.keyboard.press("Enter")
        assert got.value.path().read_text().splitlines() == chosen
        page.locator("#export-parquet").focus()
        with page.expect_download() as got:
            page.keyboard.press("Enter")
        assert got.value.suggested_filename == "people.parquet"
        table = pd.read_parquet(got.value.path())
        assert table["id"].tolist() == chosen
        assert table["glasses (by)"].tolist() == ["Ann", "Ann"]
        assert set(table.columns) > {"place", "age", "drawn by", "hat"}
        page.locator("#grid .tile").nth(4).focus()
        page.keyboard.press("Enter")
        expect(page.locator("#example")).to_be_visible()
        page.get_by_role("button", name="by features").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#grid .tile").first).to_have_attribute("title", run.findings.ids[4])
        expect(page.locator("#grid .pick .caption").nth(1)).to_contain_text("differs in")
        picture(page, "nearest")
        assert serious_violations(page) == []
        again = page.url
        page.goto("about:blank")
        page.goto(again)
        expect(page.locator("#selected")).to_have_text("2 selected")
        expect(page.locator("#grid .pick.selected")).to_have_count(2)
        page.locator("#select-all").click()
        expect(page.locator("#selected")).to_have_text("60 selected")
        assert [one for one in seen.complaints if "error" in one.lower()] == []


CHOICES = [
    "",
    "yes=glasses&no=hat",
    "unknown=beard",
    "any=doubtful&sort=doubt",
    "doubtful=hat&sort=score.hat&reverse=1",
    "is.place=garden&is.place=studio&from.age=30&to.age=55&sort=column.age",
    "empty.place=1",
    "q=note-1&sort=id",
    "sort=near.note-5",
    "sort=doubt.glasses&look.drawn+by=drawer+1&is.drawn+by=Drawer+3",
    "corrected=glasses&sort=column.place",
    "yes=nothing&is.place=moon",
]
ANSWERS = """async (choices) => {
    const answers = [];
    for (const text of choices) {
        const choice = readChoice(text);
        const {live, ...answer} = await catalogue.find(choice, 0, 30);
        const all = await catalogue.matching(choice);
        answers.push({...answer, all: all.map(({place}) => place)});
    }
    answers.push(catalogue.about.features, catalogue.about.columns);
    answers.push(await catalogue.example(7), await catalogue.example("nobody"));
    return JSON.parse(JSON.stringify(answers));
}"""


def test_the_report_and_the_studio_answer_alike(tmp_path: Path, chromium: Browser) -> None:
    run = browsed_run(tmp_path / "runs" / "notes", pictures=False)
    report = run.report().path
    with opened(chromium, address_of(report)) as seen:
        own = seen.page.evaluate(ANSWERS.replace("catalogue.", "browsing.catalogue."), CHOICES)
    with own_studio(tmp_path) as site:
        visit, address = browse(site, run, chromium)
        with visit as seen:
            seen.page.goto(address)
            matched(seen.page, 60)
            served = seen.page.evaluate(ANSWERS.replace("catalogue.", "browsing.catalogue."), CHOICES)
    for choice, of_report, of_studio in zip(
        [*CHOICES, "features", "columns", "example", "none"], own, served, strict=True
    ):
        if isinstance(of_studio, dict):
            of_studio.pop("film", None)
            of_studio.pop("moves", None)
        assert json.dumps(of_report, sort_keys=True) == json.dumps(of_studio, sort_keys=True), choice
    assert "secret" not in report.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("pictures", [True, False])
def test_a_phone_shows_all_of_it(tmp_path: Path, chromium: Browser, pictures: bool) -> None:
    run = browsed_run(tmp_path / "runs" / "people", pictures=pictures)
    with own_studio(tmp_path) as site:
        visit, address = browse(site, run, chromium, "any=doubtful&sort=doubt&is.place=studio", **PHONE)
        with visit as seen:
            page = seen.page
            page.goto(address)
            expect(page.locator("#grid .tile").first).to_be_visible()
            page.locator("#grid .pick input").first.check()
            expect(page.locator("#selected")).to_have_text("1 selected")
            keep(page, f"phone-{'pictures' if pictures else 'texts'}")
            page.locator(".selection").scroll_into_view_if_needed()
            keep(page, f"phone-{'pictures' if pictures else 'texts'}-grid")
            wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{wide} pixels too wide"
            assert serious_violations(page) == []
            page.locator("#grid .tile").first.click()
            expect(page.locator("#example")).to_be_visible()
            keep(page, f"phone-{'pictures' if pictures else 'texts'}-example")
            assert serious_violations(page) == []


def test_hostile_columns_texts_and_values_run_nothing(tmp_path: Path, chromium: Browser) -> None:
    ids = [f"{name[:40]} {number}" for number, name in enumerate(HOSTILE * 2)]
    columns = {HOSTILE[0]: list(HOSTILE * 2), HOSTILE[1]: ["a", "b"] * len(HOSTILE), "yes": ["no"] * len(ids)}
    frame = pd.DataFrame({"id": ids, "text": [f"{text} {n}" for n, text in enumerate(HOSTILE * 2)], **columns})
    frame.to_csv(tmp_path / "texts.csv", index=False)
    names = list(HOSTILE[:6])
    matrix = random_matrix(len(names), len(ids))
    run = make_run(tmp_path / "runs" / "hostile", str(tmp_path / "texts.csv"), ids, names, matrix)
    with own_studio(tmp_path) as site:
        visit, address = browse(site, run, chromium)
        with visit as seen:
            page = seen.page
            page.goto(address)
            matched(page, len(ids), len(ids))
            assert page.locator("#columns summary bdi").all_text_contents() == list(columns)
            assert set(page.locator("#columns details").first.locator(".value bdi").all_text_contents()) <= {
                *HOSTILE,
                "x" * 159 + "…",
            }
            page.locator("#columns details").first.locator(".value").first.click()
            matched(page, 2, len(ids))
            page.locator("#grid .tile").first.click()
            expect(page.locator("#example")).to_be_visible()
            page.get_by_role("button", name="by features").click()
            expect(page.locator("#chosen")).to_contain_text("most alike to")
            address = page.url
            page.goto("about:blank")
            page.goto(address)
            matched(page, 2, len(ids))
            assert page.title() == "texts, Examples"
            assert all(one.startswith((site.address, "about:")) for one in seen.requests)
