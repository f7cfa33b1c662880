"""Every page of the studio in Chromium: no barriers in any state, by keys alone, on a phone, with hostile names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.studio.test_screens import picture
from tests.support.axe import serious_violations
from tests.support.chromium import opened
from tests.support.growing_worlds import World, night
from tests.support.hostile_studio import hostile_folders
from tests.support.review_browser import SCREEN
from tests.support.studio_site import StudioSite, faces_run, running_studio
from twothirds.flows.serving.app import studio_link
from twothirds.reports.finished_run import Run
from twothirds.reports.versions.contract import ContractViolated
from twothirds.store import Store
from twothirds.studio.catalog import key_of

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SHOTS = os.environ.get("PHONE_PICTURES")  # a folder: to look at them
ORACLES = (("openai", "gpt-4o-mini", 0.42), ("openai", "gpt-4.1-nano", 0.11), ("contrastive", "", 0.0))


@dataclass(frozen=True)
class Served:
    site: StudioSite
    runs: list[Run]
    table: str
    comparison: str
    ended: str

    def link(self, name: str, role: str) -> str:
        return studio_link(self.site.store, name, role, self.site.settings())

    def pages(self) -> list[str]:
        one, two = (self.site.key(run) for run in self.runs[:2])
        return [
            *("/runs", "/runs?archived=true", "/runs?q=nothing+has+this", f"/runs/{one}", f"/runs/{one}/correct"),
            *(
                f"/runs/{one}/correct?which=all",
                f"/runs/{one}/browse",
                f"/runs/{one}/structure",
                f"/runs/{one}/settings",
                f"/side-by-side?run={one}&run={two}",
            ),
            *("/costs", f"/tables/{self.table}", f"/started/{self.ended}", "/side-by-side", "/people", "/admin"),
            *("/start/discover", "/start/compare", "/start/enrich", f"/start/enrich?table={self.table}"),
            *(f"/runs/{one}/discovery", f"/runs/{one}/again", f"/runs/{one}/structure", f"/runs/{one}/settings"),
        ]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    root = tmp_path / "runs"
    runs = []
    for number, (kind, model, usd) in enumerate(ORACLES):
        names = ["beard", "glasses", "open mouth", "hat", "long hair"][: 5 - number]
        about: dict[str, Any] = {
            "total_usd": usd,
            "unknown_usd": 0.03 if number else None,
            "finished_at": f"2026-1{number % 2}-1{number}T09:30:00+00:00",
            "run_id": f"run {number}",
            "oracle": {"kind": kind, "model": model, "parameters": {}, "prompts": "2"},
            "g": 0.084 + number / 50,
        }
        runs.append(faces_run(root / f"faces-{model or kind}", names, 60, **about))
    _begin(runs[0])
    world = World(root / "letters", 60)
    for _ in range(3):
        night(world, out=str(root / "letters-table"))
        world.add(25)
    (world.folder / "expect.json").write_text(json.dumps({"columns": [{"name": "red", "share": {"max": 0.1}}]}))
    with pytest.raises(ContractViolated):
        night(world, out=str(root / "letters-table"), expect=str(world.folder / "expect.json"))
    ended = root / "ended"
    ended.mkdir()
    (ended / "start.json").write_text("{}")
    (ended / "start.log").write_text("the budget of 0.10 USD is reserved in full\n")
    keys = [key_of((root / name).resolve()) for name in ("letters-table", "compared", "ended")]
    with Store.open(str(world.folder / "store.sqlite")) as store, running_studio(store, root) as site:
        yield Served(site, runs, *keys)


def _begin(run: Run) -> None:
    begun = {
        "kind": "RunStarted",
        "run_id": run.summary.run_id,
        "name": "faces",
        "oracle": "x",
        "queries": 3,
        "compared": 3,
    }
    begun |= {"budget_usd": 1.0, "at": "2026-01-01T00:00:00+00:00", "settings": {"dataset": "datasets/faces"}}
    (run.folder / "live.jsonl").write_text(json.dumps(begun) + "\n")


def too_wide(page: Page) -> int:
    wide: int = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide


@pytest.mark.slow
def test_no_page_has_barriers_in_any_state(served: Served, chromium: Browser) -> None:
    with opened(chromium, served.link("Olga", "admin"), viewport=SCREEN) as seen:
        page = seen.page
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for address in served.pages():
                page.goto(served.site.address + address)
                for details in page.locator("main details").all():
                    details.evaluate("one => { one.open = true; }")
                assert serious_violations(page) == [], f"{address}, {scheme}"
                assert too_wide(page) <= 0, address
        assert [one for one in seen.complaints if "violat" in one.lower() or "uncaught" in one.lower()] == []


@pytest.mark.slow
def test_two_runs_a_table_and_costs_are_found_by_keys_alone(served: Served, chromium: Browser) -> None:
    with opened(chromium, served.link("Ann", "editor"), viewport=SCREEN) as seen:
        page = seen.page
        page.wait_for_url("**/runs")
        picture(page, "runs")
        for name in ("tick faces-gpt-4o-mini", "tick faces-gpt-4.1-nano"):
            page.get_by_label(name).press("Space")
        page.get_by_role("button", name="side by side").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Side by side")
        expect(page.get_by_role("heading", name="in both")).to_have_text("4 features in both")
        picture(page, "pair")
        page.get_by_role("link", name="Costs", exact=True).press("Enter")
        expect(page.locator(".lede")).to_contain_text("in all")
        expect(page.locator("svg .line.most").first).to_be_attached()
        picture(page, "costs")
        page.get_by_role("link", name="Runs", exact=True).first.press("Enter")
        page.get_by_role("link", name="letters-table").press("Enter")
        expect(page.locator(".notice.problem")).to_contain_text("has not replaced the table")
        picture(page, "table")
        tables = page.get_by_role("region", name="Nights")
        expect(tables.locator("tbody tr")).to_have_count(4)


@pytest.mark.slow
def test_an_enrichment_is_put_together_by_keys_alone_and_estimated(served: Served, chromium: Browser) -> None:
    with opened(chromium, served.link("Olga", "admin"), viewport=SCREEN) as seen:
        page = seen.page
        page.wait_for_url("**/runs")
        page.get_by_role("link", name="letters-table").press("Enter")
        page.get_by_role("link", name="Enrich again").press("Enter")
        expect(page.locator("fieldset:visible")).to_have_count(0)
        page.get_by_role("radio", name="simulated").press("Space")
        expect(page.locator("fieldset:visible")).to_have_count(1)
        page.locator("fieldset:visible summary").press("Enter")
        page.locator("fieldset:visible").get_by_label("price").fill("0.002")
        page.get_by_label("votes on a label", exact=True).press("Enter")
        expect(page.get_by_role("button", name="Start it")).to_be_visible()
        expect(page.get_by_label("oracle", exact=True)).to_have_value("simulated?price=0.002")
        assert serious_violations(page) == []
        page.get_by_role("link", name="compare", exact=True).press("Enter")
        page.get_by_role("radio", name="human").press("Space")
        page.get_by_role("button", name="Add it to the list").press("Enter")
        expect(page.get_by_label("oracles", exact=True)).to_have_value("human")
        page.get_by_label("data set", exact=True).fill("nowhere")
        page.get_by_label("votes on a label", exact=True).press("Enter")
        expect(page.get_by_role("alert").first).to_contain_text("nowhere")
        assert serious_violations(page) == []


@pytest.mark.slow
def test_a_phone_shows_every_page(served: Served, chromium: Browser) -> None:
    with opened(chromium, served.link("Olga", "admin"), **PHONE) as seen:
        page = seen.page
        for number, address in enumerate(served.pages()):
            page.goto(served.site.address + address)
            assert too_wide(page) <= 0, f"{address} is {too_wide(page)} pixels too wide"
            assert serious_violations(page) == [], address
            if SHOTS:
                page.screenshot(path=Path(SHOTS) / f"{number:02}.png", full_page=True)


@pytest.mark.slow
def test_hostile_names_run_nothing_on_any_page(tmp_path: Path, chromium: Browser) -> None:
    folders = hostile_folders(tmp_path)
    with (
        Store.open(folders.store) as store,
        running_studio(store, folders.root) as site,
        opened(chromium, studio_link(store, "Olga", "admin", site.settings())) as seen,
    ):
        for address in (*folders.pages(), *folders.pages_of_owner()):
            seen.page.goto(site.address + address)
            expect(seen.page.locator("body")).to_be_attached()
            assert seen.page.title() != "owned", address
        seen.page.goto(f"{site.address}/comparisons/{folders.comparison}/file")  # a file, in a document without rights
        assert seen.page.evaluate("() => window.origin") == "null"
        assert all(one.startswith(site.address) for one in seen.requests)
