"""A discovery started from the form: every setting is there, the estimate comes first, and the run is the command's."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.support.growing_worlds import World, night
from tests.support.review_site import Site, Visitor, served
from tests.support.studio_site import StudioSite
from twothirds.flows.oracle_specs import KINDS
from twothirds.flows.serving.app import StudioSettings, make_studio
from twothirds.flows.serving.forms import COMMANDS, form_fields
from twothirds.reports.finished_run import Run
from twothirds.store import Store
from twothirds.studio.catalog import key_of


@pytest.fixture
def site(tmp_path: Path) -> Iterator[StudioSite]:
    (tmp_path / "runs").mkdir()
    url = str(tmp_path / "store.sqlite")
    with (
        Store.open(url) as store,
        served(lambda page: make_studio(store, StudioSettings((str(tmp_path / "runs"),), page), url)) as (at, visitors),
    ):
        site = StudioSite(store, at, visitors)
        site.root = tmp_path / "runs"
        yield site


def discovering(tmp_path: Path) -> dict[str, Any]:
    world = World(tmp_path / "world", 12)
    return {"dataset": world.spec, "oracle": "simulated:salience?price=0.001", "queries": "3", "votes": "1"}


@pytest.fixture
def command(tmp_path: Path) -> dict[str, Any]:
    return discovering(tmp_path)


def owner_of(site: Site) -> Visitor:
    assert isinstance(site, StudioSite)
    owner = site.staff("Olga", "admin")
    owner.get("/start/discover")
    return owner


def test_every_setting_has_a_field_with_its_words_and_its_default(site: StudioSite) -> None:
    owner = owner_of(site)
    for command, chosen in COMMANDS.items():
        names = {one.name for one in form_fields(command)}
        assert names == set(chosen.settings.model_fields) - set(chosen.set_by_studio)
        page = owner.get(f"/start/{command}").text
        for name in names:
            assert f'name="{name}"' in page
    page = owner.get("/start/discover").text
    assert 'name="votes" value="1"' in page
    assert 'name="queries" value=""' in page  # who answers decides: its words tell how many
    assert "comparisons to ask at most (default: 35; with auto" in page
    assert '<option value="adaptive-triple">' in page


def test_every_kind_of_oracle_has_its_parameters_as_the_command_lists_them(site: StudioSite) -> None:
    page = owner_of(site).page
    for kind, one in KINDS.items():
        assert f'name="oracle_kind" value="{kind}"' in page
        for parameter in one.parameters():
            assert f'name="{kind}.{parameter.name}"' in page, f"{kind} {parameter.name}"


def test_an_oracle_is_put_together_from_its_kind_and_parameters(site: StudioSite, command: dict[str, Any]) -> None:
    owner = owner_of(site)
    chosen = {"oracle": "", "oracle_kind": "simulated", "simulated:": "salience", "simulated.price": "0.001"}
    reply = owner.post("/start/discover", command | chosen | {"simulated.flip": "0.1", "openai.price": "9,9"})
    assert reply.status_code == 200
    assert 'name="oracle" value="simulated:salience?flip=0.1&amp;price=0.001"' in reply.text
    assert 'name="agreed"' in reply.text
    added = owner.post(
        "/start/compare", {"oracles": "contrastive", "oracle_kind": "simulated", "simulated:": "", "add": "1"}
    )
    assert added.status_code == 200
    assert ">contrastive\nsimulated</textarea>" in added.text
    assert 'role="alert"' not in added.text


def test_data_sets_that_ship_and_those_below_the_folders_are_offered(site: StudioSite) -> None:
    world = World(site.root / "mine", 5)
    (site.root / "mine" / "a run").mkdir()
    (site.root / "mine" / "a run" / "run.json").write_text("{}")
    (site.root / "mine" / "a run" / "labels.csv").write_text("id,hat\n")
    offered = re.findall(r'<option value="([^"]*)"', owner_of(site).page.partition('id="dataset-list"')[2])
    assert offered[:4] == ["emoji", "faces", "flags", "zoo"]
    assert world.spec in offered
    assert not any("labels.csv" in one or "truth.csv" in one for one in offered)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dataset": "nowhere"}, "nowhere"),
        ({"queries": "0"}, "queries: "),
        ({"oracle": "oracle of Delphi"}, "oracle"),
        ({"target": "no such column"}, "no such column"),
        ({"oracle": ""}, "oracle: Field required"),
    ],
)
def test_what_is_wrong_is_said_and_the_form_keeps_what_was_written(
    site: StudioSite, command: dict[str, Any], changed: dict[str, str], said: str
) -> None:
    reply = owner_of(site).post("/start/discover", command | {"about": "letters <b>"} | changed)
    assert reply.status_code == 422
    assert said in unescape(re.findall(r'role="alert"><bdi>(.*?)</bdi>', reply.text, re.DOTALL)[0])
    assert "letters &lt;b&gt;" in reply.text


@pytest.mark.slow  # a Prefect server and a process of its own
def test_the_run_is_the_commands_own_and_can_be_watched(site: StudioSite, command: dict[str, Any]) -> None:
    owner = owner_of(site)
    reply = owner.post("/start/discover", command | {"agreed": "1", "confirmed": "1"})
    assert reply.status_code == 303
    [folder] = site.root.iterdir()
    assert reply.headers["location"] == f"/runs/{key_of(folder.resolve())}/discovery"
    assert owner.get(reply.headers["location"]).status_code == 200
    deadline = time.monotonic() + 300
    while not (folder / "run.json").exists() and time.monotonic() < deadline:
        time.sleep(0.5)
    run = Run(folder)
    assert run.summary.queries == 3
    assert run.summary.settings["budget"] == "1"
    [booked] = [one for one in site.store.runs.overview() if one["flow"] == "discover"]
    assert booked["run_id"] == run.summary.run_id
    assert owner.get(f"/runs/{key_of(folder.resolve())}").status_code == 200


def enriching(tmp_path: Path) -> dict[str, Any]:
    world = World(tmp_path / "world", 12)
    return {"dataset": world.spec, "features": world.features, "oracle": "simulated?price=0.001", "votes": "1"}


def comparing(tmp_path: Path) -> dict[str, Any]:
    world = World(tmp_path / "world", 12)
    oracles = "simulated?price=0.001\nsimulated:generalist"
    return {"dataset": world.spec, "oracles": oracles, "features": world.features, "votes": "3", "comparisons": "2"}


@pytest.mark.parametrize(
    ("command", "made"), [("discover", discovering), ("enrich", enriching), ("compare", comparing)]
)
def test_the_estimate_comes_before_anything_is_spent(
    site: StudioSite, tmp_path: Path, command: str, made: Callable[[Path], dict[str, Any]]
) -> None:
    owner = owner_of(site)
    reply = owner.post(f"/start/{command}", made(tmp_path))
    assert reply.status_code == 200, re.findall(r'role="alert">(.*)', reply.text)
    assert "Before anything is spent" in reply.text
    assert 'name="agreed"' in reply.text
    assert "USD" in unescape(reply.text)
    assert site.store.runs.overview() == []
    assert not list(site.root.iterdir())


@pytest.mark.parametrize("place", ["/etc/cron.d", "../elsewhere", "a/b", ".hidden", "x" * 200])
def test_a_table_is_written_below_the_folders_of_the_studio_alone(site: StudioSite, tmp_path: Path, place: str) -> None:
    for more in ({}, {"confirmed": "1", "agreed": "1"}):
        reply = owner_of(site).post("/start/enrich", enriching(tmp_path) | {"out": place} | more)
        assert reply.status_code == 422
        assert "choose one of the list, or give a plain name" in reply.text


def test_what_a_table_was_made_with_is_in_the_form_that_goes_on_with_it(site: StudioSite) -> None:
    world = World(site.root / "world", 6)
    night(world, votes=3)
    key = key_of((world.folder / "out").resolve())
    page = owner_of(site).get(f"/start/enrich?table={key}").text
    assert f'name="out" value="{(world.folder / "out").resolve()}"' in page
    assert 'name="votes" value="3"' in page
    assert f'name="dataset" value="{world.spec}"' in page


@pytest.mark.slow  # a Prefect server and processes of their own
def test_an_enrichment_and_a_comparison_are_the_commands_own(site: StudioSite, tmp_path: Path) -> None:
    owner, agreed = owner_of(site), {"agreed": "1", "confirmed": "1"}
    for command, made, result in (("enrich", enriching, "/tables/"), ("compare", comparing, "/comparisons/")):
        owner.get(f"/start/{command}")
        reply = owner.post(f"/start/{command}", made(tmp_path) | agreed)
        assert reply.status_code == 303
        address = reply.headers["location"]
        deadline = time.monotonic() + 300
        while (reply := owner.get(address)).status_code == 200 and time.monotonic() < deadline:
            assert "Running" in reply.text, reply.text
            time.sleep(0.5)
        assert reply.headers["location"] == address.replace("/started/", result)
        assert owner.get(reply.headers["location"]).status_code == 200
        assert any(one["flow"] == command for one in site.store.runs.overview())


def test_what_has_ended_without_a_result_says_its_last_words(site: StudioSite) -> None:
    folder = site.root / "began"
    folder.mkdir()
    (folder / "start.json").write_text("{}")
    (folder / "start.log").write_text("first\n<b>the budget is used up</b>\n")
    page = site.staff("Ann", "editor").get(f"/started/{key_of(folder.resolve())}").text
    assert "It has ended without a result" in page
    assert "&lt;b&gt;the budget is used up" in page
