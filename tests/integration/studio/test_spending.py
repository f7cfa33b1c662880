"""Only the owner of the studio spends: by no route can an editor, a reviewer or a stranger have an answer paid for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.studio.test_steer_pages import held, unfound
from tests.support.fake_openai import FakeModel, FakeOpenAI
from tests.support.growing_worlds import World
from tests.support.review_site import Visitor
from tests.support.steered_runs import TRAITS, discovered, settings
from tests.support.studio_site import StudioSite
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.reports.curation import read_log
from twothirds.reports.finished_run import Run
from twothirds.store import Store


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "world", 24, TRAITS)
    world.texts = {name: f"{' '.join(TRAITS[: 1 + number % 5])}, {number}" for number, name in enumerate(world.texts)}
    world.write()
    return world


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(FakeModel(TRAITS)) as running:
        yield running


def priced(world: World, server: FakeOpenAI) -> DiscoverSettings:
    return settings(world, oracle=f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1")


def spent(world: World) -> int:
    with Store.open(str(world.folder / "store.sqlite")) as store:
        return sum(line.paid + line.unknown for line in store.costs.lines())


def visitors(site: StudioSite) -> dict[str, Visitor]:
    staff = {role: site.staff(f"the {role}", role) for role in ("admin", "editor")}
    return staff | {"reviewer": site.visitor("the reviewer"), "nobody": site.stranger()}


def test_no_route_lets_anybody_but_the_owner_spend(world: World, studio: StudioSite, server: FakeOpenAI) -> None:
    chosen = priced(world, server)
    run_discovery(prepare(chosen), run_id="discovery")
    run = Run(Path(str(chosen.out)))
    key, (name, other) = studio.key(run), run.features["name"].tolist()[:2]
    seen: dict[str, Any] = {"seen": "0", "confirmed": "1", "ask": "1", "budget": "5"}
    define = {"action": "define", "name": name, "definition": "It is something else."}
    without_budget = {field: value for field, value in seen.items() if field != "budget"}
    start = {"dataset": world.spec, "oracle": str(chosen.oracle), "queries": "2", "budget": "5", "confirmed": "1"}
    # What an editor and the owner get; reviewers and strangers are refused with 403 by every route.
    attempts: list[tuple[str, dict[str, Any], int, int | None]] = [
        (f"/runs/{key}/change", define | without_budget, 422, 422),
        (f"/runs/{key}/change", define | seen, 422, None),
        (f"/runs/{key}/change", {"action": "split", "name": name, "parts": "one\nother"} | seen, 422, None),
        (f"/runs/{key}/change", {"action": "merge", "name": [name, other], "into": "both"} | seen, 422, None),
        (f"/runs/{key}/steer", {"action": "budget", "usd": "5"}, 409, 409),
        (f"/runs/{key}/steer", {"action": "add", "name": "new"}, 409, 409),
        (f"/runs/{key}/steer", {"action": "ask", "examples": list(world.texts)[:3]}, 409, 409),
        (f"/runs/{key}/again", {"queries": "9", "budget": "5", "confirmed": "1"}, 403, None),
        ("/start/discover", start, 403, None),
        ("/start/enrich", start | {"features": str(run.folder)}, 403, None),
        ("/start/compare", start | {"oracles": str(chosen.oracle)}, 403, None),
    ]
    sent, paid = len(server.requests), spent(world)
    for role, visitor in visitors(studio).items():
        visitor.get(f"/runs/{key}")
        for address, form, editor, owner in attempts:
            wanted = {"editor": editor, "admin": owner}.get(role, 403)
            if wanted is not None:
                assert visitor.post(address, form).status_code == wanted, (role, address, form)
                assert (len(server.requests), spent(world)) == (sent, paid), (role, address, form)
    assert not read_log(run.folder)
    owner_visitor = studio.staff("Olga", "admin")
    owner_visitor.get(f"/runs/{key}")
    assert owner_visitor.post(f"/runs/{key}/change", define | seen).status_code == 303
    assert len(server.requests) > sent
    assert paid < spent(world) <= paid + 5_000_000


def test_a_preview_sends_nothing_even_to_a_server_that_was_never_probed(
    world: World, studio: StudioSite, server: FakeOpenAI
) -> None:
    chosen = priced(world, server)
    run_discovery(prepare(chosen), run_id="discovery")
    run = Run(Path(str(chosen.out)))
    for file in world.folder.glob("store.sqlite*"):
        file.unlink()
    sent, key, define = len(server.requests), studio.key(run), {"action": "define", "definition": "It is another."}
    for visitor, said in ((studio.staff("Ann", "editor"), "ask the owner"), (studio.staff("Olga", "admin"), "budget")):
        visitor.get(f"/runs/{key}")
        shown = visitor.post(f"/runs/{key}/change", define | {"name": run.features["name"][0], "seen": "0"})
        assert shown.status_code == 200
        assert "24 questions and <em>$0." in shown.text, "what it would cost is shown to both"
        assert said in shown.text
        assert len(server.requests) == sent
    with Store.open(str(world.folder / "store.sqlite")) as store:
        assert not store.runs.overview(), "nothing was begun either"


def test_an_editor_makes_changes_that_cost_nothing(world: World, studio: StudioSite) -> None:
    run = discovered(settings(world, oracle="simulated:salience"))
    editor, key = studio.staff("Ann", "editor"), studio.key(run)
    editor.get(f"/runs/{key}")
    define = {"action": "define", "name": run.features["name"][0], "definition": "It is another.", "seen": "0"}
    assert "24 questions" in editor.post(f"/runs/{key}/change", define).text
    assert editor.post(f"/runs/{key}/change", define | {"confirmed": "1"}).status_code == 303
    assert [(entry.action, entry.by) for entry in read_log(run.folder)] == [("define", "Ann")]


def test_an_editor_leaves_labels_empty_that_cost_money(world: World, studio: StudioSite) -> None:
    run = discovered(settings(world))
    editor, key, paid = studio.staff("Ann", "editor"), studio.key(run), spent(world)
    editor.get(f"/runs/{key}")
    define = {"action": "define", "name": run.features["name"][0], "definition": "It is another.", "seen": "0"}
    shown = editor.post(f"/runs/{key}/change", define).text
    assert 'name="ask" value="0"' in shown
    assert 'name="budget"' not in shown
    assert editor.post(f"/runs/{key}/change", define | {"confirmed": "1", "ask": "0"}).status_code == 303
    assert spent(world) == paid


def test_an_editor_steers_within_a_budget_and_asks_nothing_without_one(world: World, studio: StudioSite) -> None:
    editor, owner = studio.staff("Ann", "editor"), studio.staff("Olga", "admin")
    with held(world) as (folder, key):
        for visitor in (editor, owner):
            visitor.get(f"/runs/{key}/discovery")
        ask = {"action": "ask", "examples": list(world.texts)[:3]}
        add = {"action": "add", "name": unfound(folder)}
        for command in (ask, add, ask | {"usd": "5"}):
            refused = editor.post(f"/runs/{key}/steer", command)
            assert (refused.status_code, "it has no budget" in refused.text) == (422, True)
        assert editor.post(f"/runs/{key}/steer", {"action": "stop"}).status_code == 303
        assert owner.post(f"/runs/{key}/steer", add).status_code == 303
    for changed in ({"budget": "1"}, {"oracle": "simulated:salience"}):
        with held(world, **changed, replace=True) as (_, key):
            assert editor.post(f"/runs/{key}/steer", ask).status_code == 303, changed
            raised = editor.post(f"/runs/{key}/steer", {"action": "budget", "usd": "5"})
            assert (raised.status_code, "only the owner" in raised.text) == (422, True)
