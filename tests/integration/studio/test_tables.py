"""Tables of enrichment, comparisons, costs and two runs side by side, over real files and a real store."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.support.growing_worlds import World, night
from tests.support.studio_site import StudioSite, faces_run, running_studio
from twothirds.flows.compare.flow import run_comparison
from twothirds.flows.compare.preparation import prepare_comparison
from twothirds.flows.compare.settings import CompareSettings
from twothirds.reports.compare import write_comparison
from twothirds.reports.finished_run import Run
from twothirds.reports.versions.contract import ContractViolated
from twothirds.store import Store
from twothirds.studio.catalog import key_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two nights, the second not as its contract wants, in the store that the studio serves."""
    world = World(tmp_path / "runs" / "world", 20)
    night(world, run_id="night-1")
    world.texts["r000003"] = world.texts.pop("e000003")
    world.add(6)
    night(world, run_id="night-2")
    contract = {"columns": [{"name": "red", "share": {"max": 0.0}}]}
    (world.folder / "expect.json").write_text(json.dumps(contract))
    world.add(4)
    with pytest.raises(ContractViolated):
        night(world, run_id="night-3", expect=str(world.folder / "expect.json"))
    return world


@pytest.fixture
def site(world: World, tmp_path: Path) -> Iterator[StudioSite]:
    with Store.open(str(world.folder / "store.sqlite")) as store, running_studio(store, tmp_path / "runs") as running:
        yield running


def words(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_a_table_shows_columns_nights_costs_and_what_its_contract_refused(site: StudioSite, world: World) -> None:
    editor = site.staff("Ann", "editor")
    assert "not as expected" in words(editor.get("/runs").text)
    key = key_of((world.folder / "out").resolve())
    assert f'href="/tables/{key}"' in editor.page
    page = words(editor.get(f"/tables/{key}").text)
    assert "red: " in page
    assert "at most 0 is expected" in page
    nights = re.findall(r'<tr><td class="when">(\d{4}-\d\d-\d\d \d\d:\d\d)</td>(.*?)</tr>', editor.page, re.DOTALL)
    rows = [words(rest) for _, rest in nights]
    assert [one.split()[0] for one in rows] == ["–", "2", "1"]
    assert "not as expected red: " in rows[0]
    assert "at most 0 is expected" in rows[0], "what is to be done stands with the night"
    assert rows[1].split()[:5] == ["2", "7", "0", "1", "0"], "rows written, gone, renamed, copies"
    assert "$0.0180" in rows[1]  # 6 rows of three features at a tenth of a cent
    assert "$0.0600" in rows[2]
    assert "of all nights in this store" in page
    assert "Enrich again" not in page, "only the owner starts anything"


def test_a_night_that_was_killed_is_shown_with_what_to_do(site: StudioSite, world: World) -> None:
    begin = (
        "import os, sys; from twothirds.store import Job, Store; "
        "Store.open(sys.argv[1]).runs.begin('killed', 's', name='out', "
        "flow='enrich', dataset='d', oracle='o', settings={}, job=Job(sys.argv[2])); os._exit(9)"
    )
    out = (world.folder / "out").resolve()
    subprocess.run([sys.executable, "-c", begin, str(world.folder / "store.sqlite"), str(out)], check=False)
    editor = site.staff("Ann", "editor")
    page = words(editor.get(f"/tables/{key_of(out)}").text)
    assert "killed its process is gone; run it again: answers that have arrived are not paid for again" in page
    assert '<td class="bad">killed</td>' in editor.page


def test_a_link_by_the_name_of_a_table_finds_it(site: StudioSite, world: World) -> None:
    reply = site.staff("Ann", "editor").get("/runs/out")
    assert reply.headers["location"] == f"/tables/{key_of((world.folder / 'out').resolve())}"


def test_a_damaged_table_is_reported_or_left_out_and_damages_nothing_else(site: StudioSite, world: World) -> None:
    editor, out = site.staff("Ann", "editor"), world.folder / "out"
    address = f"/tables/{key_of(out.resolve())}"
    (out / "labels.parquet").write_bytes(b"nonsense")
    assert "There is no table yet" in editor.get(address).text
    (out / "enrich.json").write_text('{"version": 1}')
    assert editor.get(address).status_code == 404
    assert editor.get("/runs").status_code == 200


def test_costs_are_drawn_over_time_with_what_is_unknown_and_runs_of_other_stores(
    site: StudioSite, tmp_path: Path
) -> None:
    about: dict[str, Any] = {
        "total_usd": 2.5,
        "unknown_usd": 0.25,
        "finished_at": "2026-03-01T10:00:00+00:00",
        "run_id": "elsewhere",
    }
    faces_run(tmp_path / "runs" / "faces", ["hat", "beard"], **about)
    editor = site.staff("Ann", "editor")
    page = words(editor.get("/costs").text)
    total = 2.5 + (20 + 6 + 4) * 3 / 1000
    assert f"${total:,.2f} in all" in page
    assert "may come to $0.2500 more, at most" in page
    assert "faces discover" in page
    assert editor.page.count('class="line ') >= 4
    assert editor.page.count('class="stem s') == 4


def test_a_store_without_runs_has_cost_nothing(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with Store.open(str(tmp_path / "s.sqlite")) as store, running_studio(store, tmp_path / "runs") as site:
        assert "nothing has cost anything" in site.staff("Ann", "editor").get("/costs").text


def two(tmp_path: Path) -> tuple[Run, Run]:
    first = faces_run(tmp_path / "runs" / "one", ["hat", "beard", "smile"], total_usd=0.5)
    second = faces_run(tmp_path / "runs" / "two", ["cap", "beard", "frown"], total_usd=1.5)
    return first, second


def test_two_ticked_runs_stand_side_by_side(site: StudioSite, tmp_path: Path) -> None:
    runs, editor = two(tmp_path), site.staff("Ann", "editor")
    summary = json.loads((runs[1].folder / "run.json").read_text())
    summary["settings"] |= {"strategy": "tagging", "store": "elsewhere.sqlite"}
    (runs[1].folder / "run.json").write_text(json.dumps(summary))
    editor.get("/runs")
    assert 'form="pair"' in editor.page
    keys = [site.key(run) for run in runs]
    page = words(editor.get(f"/side-by-side?run={keys[0]}&run={keys[1]}").text)
    assert "3 features in both" in page  # their labels are the same, whatever they are called
    assert re.search(r"strategy \S+ tagging", page)
    assert "elsewhere.sqlite" not in page
    assert "$0.5000 $1.50" in page
    assert "100 % of" in page.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize("asked", ["", "run={a}", "run={a}&run={a}", "run={a}&run={b}&run={b}&run=000000000000"])
def test_other_than_two_runs_are_refused(site: StudioSite, tmp_path: Path, asked: str) -> None:
    a, b = (site.key(run) for run in two(tmp_path))
    reply = site.staff("Ann", "editor").get(f"/side-by-side?{asked.format(a=a, b=b)}")
    assert reply.status_code == 422
    assert "tick two" in reply.text
    assert site.staff("Bob", "editor").get(f"/side-by-side?run={a}&run=000000000000").status_code == 404


def test_a_comparison_is_listed_and_its_page_has_no_rights(site: StudioSite, world: World, tmp_path: Path) -> None:
    settings = CompareSettings(
        dataset=world.spec,
        oracles=("simulated", "simulated:generalist"),
        features=world.features,
        votes="3",
        comparisons=2,
        draws=100,
        store=str(world.folder / "store.sqlite"),
        out=str(tmp_path / "runs" / "compared"),
    )
    prepared = prepare_comparison(settings)
    comparison = run_comparison(prepared, run_id="comparison")
    folder = tmp_path / "runs" / "compared"
    write_comparison(comparison, folder, prepared.dataset, settings.model_dump(mode="json"))
    editor = site.staff("Ann", "editor")
    address = f"/comparisons/{key_of(folder.resolve())}"
    assert f'href="{address}"' in editor.get("/runs").text
    assert f'src="{address}/file"' in editor.get(address).text, "in a frame: the studio's bar stands above it"
    reply = editor.get(f"{address}/file")
    assert "sandbox" in reply.headers["content-security-policy"]
    assert "connect-src" not in reply.headers["content-security-policy"]
    assert reply.text.startswith("<!doctype html>")
    assert editor.get("/runs/compared").headers["location"] == address


def test_the_report_of_a_run_is_shown_without_rights(site: StudioSite, tmp_path: Path) -> None:
    run, editor = faces_run(tmp_path / "runs" / "faces", ["hat"]), site.staff("Ann", "editor")
    address = f"/runs/{site.key(run)}/report"
    assert address not in editor.get(f"/runs/{site.key(run)}").text
    assert editor.get(address).status_code == 404
    run.report()
    assert f'href="{address}"' in editor.get(f"/runs/{site.key(run)}").text
    assert 'href="/runs"' in editor.get(address).text, "nobody is led out of the studio"
    assert "sandbox allow-scripts" in editor.get(f"{address}/file").headers["content-security-policy"]
