"""A run folder is not overwritten by another run: the same run goes on in it, and others say what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.fake_openai import FakeOpenAI
from tests.support.growing_worlds import World
from twothirds.flows.compare.flow import run_comparison
from twothirds.flows.compare.preparation import prepare_comparison
from twothirds.flows.compare.settings import CompareSettings
from twothirds.flows.discover.flow import discover
from twothirds.flows.discover.preparation import Prepared, prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.models import Asks, Elicited, collect_answers
from twothirds.reports import Run
from twothirds.reports.compare import write_comparison
from twothirds.reports.run import RunError
from twothirds.store import Store, StoreError


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 12)


def prepared(world: World, out: str | None = "run", **changed: Any) -> Prepared:
    settings = {
        "dataset": world.spec,
        "oracle": "simulated?price=0.001",
        "queries": 6,
        "store": str(world.folder / "store.sqlite"),
        "out": out and str(world.folder / out),
    }
    return prepare(DiscoverSettings.model_validate(settings | changed))


def run(world: World, out: str | None = "run", **changed: Any) -> Run:
    made = prepared(world, out, **changed)
    run_discovery(made, run_id=str(uuid4()))
    return Run(made.folder)


OTHERS: dict[str, dict[str, Any]] = {
    "queries 6": {"queries": 5},
    "simulated": {"oracle": "simulated:specifist"},
    "votes 1": {"votes": 3},
    "seed 0": {"seed": 1},
    "strategy auto": {"strategy": "adaptive-triple"},
    "labeller": {"labeller": "simulated?flip=0.1"},
    "--target-g": {"target_g": 0.5},
    "--nones": {"nones": 2},
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_run_is_not_overwritten_but_on_request(world: World, other: str) -> None:
    first = run(world)
    before = {path.name: path.read_bytes() for path in first.folder.iterdir()}
    with pytest.raises(RunError, match=r"run holds another run \(.*\): give another folder with --out, or .*--replace"):
        run(world, **OTHERS[other])
    assert {path.name: path.read_bytes() for path in first.folder.iterdir()} == before
    run(world, **OTHERS[other], replace=True)
    assert (first.folder / "run.json").read_bytes() != before["run.json"]
    assert "replace" not in Run(first.folder).summary.settings


def test_another_data_set_is_another_run(world: World, tmp_path: Path) -> None:
    run(world)
    other = World(tmp_path / "other", 20)
    with pytest.raises(RunError, match=r"holds another run \(of .*world\.csv\)"):
        run(world, dataset=other.spec)


@pytest.mark.parametrize(
    "same",
    [
        {},
        {"queries": 8},
        {"budget": "5"},
        {"retry_unusable": True},
        {"oracle": "simulated?price=0.002"},  # the same crowd: its price changes no answer
        {"label_rest": True},
    ],
    ids=str,
)
def test_the_same_run_repeated_or_continued_goes_on_in_its_folder(world: World, same: dict[str, Any]) -> None:
    run(world)
    assert run(world, **same).summary.queries >= 6


def test_so_does_a_run_on_a_data_set_that_has_grown(world: World) -> None:
    run(world)
    world.add(3)
    assert run(world).summary.dataset.examples == 15


def test_a_damaged_folder_is_written_again(world: World) -> None:
    folder = run(world).folder
    (folder / "run.json").write_text("{")
    assert run(world, votes=3).summary.settings["votes"] == 3


def test_an_oracle_behind_a_server_is_told_apart_before_it_is_asked(server: FakeOpenAI, world: World) -> None:
    run(world)
    with pytest.raises(RunError, match="holds another run"):
        run(world, oracle=f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1")
    assert server.book_of_questions == []


def test_default_names_distinguish_what_makes_results_differ(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world.folder)
    changes: list[dict[str, Any]] = [
        {},
        {"queries": 5},
        {"target_g": 0.1},
        {"nones": 3},
        {"label_rest": True},
        {"seed": 1},
    ]
    folders = [prepared(world, None, **{"queries": 35} | changed).folder for changed in changes]
    assert len(set(folders)) == len(folders)
    scope = prepared(world, None, queries=35).scope
    assert folders[0] == Path("runs") / f"world-simulated-{scope[:8]}"  # as before
    long, short = run(world, None, queries=12), run(world, None, queries=3)
    assert Run(long.folder).summary.queries > Run(short.folder).summary.queries


def test_a_comparison_is_not_overwritten_by_another(world: World) -> None:
    def compare(**changed: Any) -> None:
        settings = {
            "dataset": world.spec,
            "oracles": ("simulated", "simulated?flip=0.2"),
            "features": world.features,
            "comparisons": 2,
            "draws": 100,
            "store": str(world.folder / "store.sqlite"),
            "out": str(world.folder / "compared"),
        }
        made = prepare_comparison(CompareSettings.model_validate(settings | changed))
        comparison = run_comparison(made, run_id=str(uuid4()))
        write_comparison(comparison, made.folder, made.dataset, made.settings.model_dump(mode="json"))

    compare()
    compare(budget="1")
    with pytest.raises(RunError, match=r"holds another comparison \(comparisons 2\): .* --out, or .*--replace"):
        compare(comparisons=3)
    compare(comparisons=3, replace=True)


def test_default_names_of_comparisons_too(world: World) -> None:
    def suffix(**changed: Any) -> str:
        settings = {"dataset": world.spec, "oracles": ("simulated",), **changed}
        return CompareSettings.model_validate(settings).suffix

    assert suffix() == suffix(budget="3", store="x", votes="3") == ""
    assert len({suffix(queries=5), suffix(seed=1), suffix(comparisons=3), suffix(own_discovery=True)}) == 4


@pytest.mark.usefixtures("prefect_url")
def test_what_a_run_tells_of_itself_is_its_own(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An equal run that ends at the same time writes the same folder, with a cost of its own."""
    store = str(world.folder / "store.sqlite")
    given: dict[str, Any] = {"oracle": "simulated?price=0.001", "queries": 4, "budget": "1", "store": store}
    out = str(world.folder / "run")
    report = Run.report

    def overtaken(self: Run, **options: Any) -> Any:
        page = report(self, **options)
        monkeypatch.undo()
        run_discovery(prepare(DiscoverSettings(dataset=world.spec, out=out, **given)), run_id="the other")
        return page

    monkeypatch.setattr(Run, "report", overtaken)
    own = discover(world.spec, out=out, **given)
    assert Run(own.folder).summary.run_id == "the other"
    assert own.summary.run_id != "the other"
    assert (own.summary.paid_calls, own.summary.cached_calls) == (own.summary.paid_calls, 0)
    with Store.open(store) as opened:
        assert own.summary.paid_calls == opened.costs.totals(own.summary.run_id).paid_calls > 0


def test_a_second_discovery_in_the_folder_is_refused_while_the_first_runs(world: World) -> None:
    second = prepared(world)
    refusals = []

    def meanwhile(oracle: Asks, questions: list[Any]) -> Elicited:
        with pytest.raises(
            RunError, match=r"another discovery is writing .*run \(process \d+ on .*\): wait for it"
        ) as one:
            run_discovery(second, run_id="second")
        refusals.append(str(one.value))
        return collect_answers(oracle, questions)

    run_discovery(prepared(world), run_id="first", compare=meanwhile)
    assert refusals
    assert Run(second.folder).summary.run_id == "first"
    with (
        Store.open(str(world.folder / "store.sqlite")) as opened,
        pytest.raises(StoreError, match="run second is not in the store"),
    ):
        opened.costs.totals("second")
    run_discovery(second, run_id="second")


def test_a_discovery_that_was_killed_does_not_hold_its_folder(world: World) -> None:
    folder = prepared(world).folder
    program = "import os, sys; from pathlib import Path; from twothirds.reports.run import locked\n"
    program += "with locked(Path(sys.argv[1]), 'discovery'): os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-c", program, str(folder)], check=False)
    assert killed.returncode == -9
    assert (folder / ".lock").read_text(encoding="utf-8").startswith("process ")
    run_discovery(prepared(world), run_id="next")
