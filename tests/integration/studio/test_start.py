"""A discovery started from the form: every setting is there, the estimate comes first, and the run is the command's."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from flows.discover import DiscoverSettings
from flows.runs.start import SET_BY_STUDIO, form_fields
from flows.runs.studio import StudioSettings, make_studio
from reports.finished_run import Run
from store import Store
from studio.runs.shelf import key_of
from tests.support.growing_worlds import World
from tests.support.review_site import Site, Visitor, served
from tests.support.studio_site import StudioSite


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


@pytest.fixture
def wish(tmp_path: Path) -> dict[str, Any]:
    world = World(tmp_path / "world", 12)
    return {"dataset": world.spec, "oracle": "simulated:salience?price=0.001", "queries": "3", "votes": "1"}


def owner_of(site: Site) -> Visitor:
    assert isinstance(site, StudioSite)
    owner = site.staff("Olga", "admin")
    owner.get("/start")
    return owner


def test_every_setting_has_a_field_with_its_words_and_its_default(site: StudioSite) -> None:
    names = {one.name for one in form_fields()}
    assert names == set(DiscoverSettings.model_fields) - set(SET_BY_STUDIO)
    page = owner_of(site).page
    for name in names:
        assert f'name="{name}"' in page
    assert 'name="queries" value="35"' in page
    assert '<option value="adaptive-triple">' in page


def test_the_estimate_comes_before_anything_is_spent(site: StudioSite, wish: dict[str, Any]) -> None:
    owner = owner_of(site)
    reply = owner.post("/start", wish)
    assert reply.status_code == 200
    assert "Before anything is spent" in reply.text
    assert 'name="agreed"' in reply.text
    assert not list(site.root.iterdir())
    assert site.store.runs.overview() == []


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
    site: StudioSite, wish: dict[str, Any], changed: dict[str, str], said: str
) -> None:
    reply = owner_of(site).post("/start", wish | {"about": "letters <b>"} | changed)
    assert reply.status_code == 422
    assert said in unescape(re.findall(r'role="alert"><bdi>(.*?)</bdi>', reply.text, re.DOTALL)[0])
    assert "letters &lt;b&gt;" in reply.text


@pytest.mark.slow  # a Prefect server and a process of its own
def test_the_run_is_the_commands_own_and_can_be_watched(site: StudioSite, wish: dict[str, Any]) -> None:
    owner = owner_of(site)
    reply = owner.post("/start", wish | {"agreed": "1", "confirmed": "1"})
    assert reply.status_code == 303
    [folder] = site.root.iterdir()
    assert reply.headers["location"] == f"/live/{key_of(folder.resolve())}"
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
