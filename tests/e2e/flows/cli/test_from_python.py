"""The same from Python and notebooks, in three lines."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_openai import CHAT, FakeOpenAI
from twothirds.flows import api
from twothirds.flows.discover.flow import discover
from twothirds.flows.errors import UsageError
from twothirds.models.oracle import MICRO
from twothirds.reports import Run

FACES = str(Path(__file__).parents[4] / "datasets" / "faces")


def test_errors_reach_the_caller_in_a_running_event_loop_too(tmp_path: Path) -> None:
    async def notebook() -> Run:
        return discover(FACES, oracle="nobody", store=str(tmp_path / "s.sqlite"))

    with pytest.raises(Exception, match="nobody"):
        asyncio.run(notebook())


@pytest.mark.usefixtures("prefect_url")
def test_a_run_leaves_its_store_closed(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    api.discover(FACES, oracle="simulated", queries=1, store=str(store), out=tmp_path / "run")
    api.compare(FACES, oracles=("simulated", "simulated?seed=1"), sample=4, store=str(store), out=tmp_path / "compared")
    opened = [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir()]
    assert store.exists()
    assert not [name for name in opened if name.startswith(str(store))]


def test_everything_that_the_command_line_does_inside_a_running_event_loop(
    prefect_url: str,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    store = str(tmp_path / "s.sqlite")
    table = tmp_path / "table"

    async def notebook() -> Run:
        run = api.discover(FACES, oracle="simulated", queries=3, store=store, out=tmp_path / "run")
        first = str(run.features["name"][0])
        found = api.enrich(FACES, features=run, oracle="simulated", store=store, out=table)
        assert (found["added"], found["rows"]) == (100, 100)
        found = api.enrich(FACES, features=run, oracle="simulated", store=store, out=table, propose=2)
        assert not set(found["proposed"]) & set(run.features["name"])
        about: dict[str, Any] = {
            "oracles": ("simulated", "simulated?flip=0.1"),
            "features": run,
            "sample": 12,
            "comparisons": 2,
        }
        compared = api.compare(FACES, **about, draws=100, store=store, out=tmp_path / "compared")
        assert len(compared["oracles"]) == 2
        assert api.features(run, "rename", first, "another name")["done"] is False
        assert api.features(run, "rename", first, "another name", yes=True)["done"] is True
        again = Run(str(tmp_path / "run"))
        assert "another name" in list(again.features["name"])
        assert api.attributes(run, store=store)["done"] is False
        assert "another name" in api.tree(tmp_path / "run")
        assert api.report(again, out=tmp_path / "page.html").path == tmp_path / "page.html"
        assert (tmp_path / "page.html").stat().st_size > 10_000
        written = api.export(again, ["wide-csv"], out=tmp_path / "export")
        assert "another name" in written[0].read_text(encoding="utf-8")
        return again

    run = asyncio.run(notebook())
    lines = api.costs(store=store)
    assert {"run", "table", "compared"} <= set(lines["name"])
    assert lines["questions"].sum() > 300
    assert len(api.costs(run.folder, store=store)) > 0
    paid = "simulated?price=0.001"
    for command, settings in (
        (api.discover, {"oracle": paid, "queries": 3}),
        (api.enrich, {"oracle": paid, "features": run, "out": tmp_path / "other"}),
        (api.compare, {"oracles": (paid, "simulated"), "features": run, "sample": 12}),
    ):
        expected = api.estimate(command, FACES, store=str(tmp_path / "new.sqlite"), **settings)
        assert 0 < expected.left <= expected.most_left < 10 * MICRO
        assert "likely" in str(expected)
    with pytest.raises(UsageError, match="'export' costs nothing"):
        api.estimate(api.export, run)


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        (api.discover, {"oracle": "{}", "queries": 2}),
        (api.enrich, {"oracle": "{}", "features": "cat: A cat."}),
        (api.compare, {"oracles": ("simulated", "{}"), "features": "cat: A cat.", "comparisons": 0}),
    ],
    ids=["discover", "enrich", "compare"],
)
def test_what_costs_money_is_refused_without_a_budget_or_a_yes(
    command: Callable[..., Any],
    settings: dict[str, Any],
    server: FakeOpenAI,
    dataset: Path,
    prefect_url: str,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    paid = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60"
    (tmp_path / "truth.csv").write_text("id,cat\n" + "".join(f"t{row},{row % 2}\n" for row in range(16)))
    settings = {name: _with_oracle(value, paid) for name, value in settings.items()}
    settings |= {"store": str(tmp_path / "s.sqlite")}
    settings["out"] = str(tmp_path / "out")
    with pytest.raises(UsageError) as refused:
        command(str(dataset), **settings)
    line = str(refused.value)
    assert re.search(r"will likely cost \d+\.\d+ USD, at most \d+\.\d+ USD: give budget=USD, or yes=True", line), line
    assert "\n" not in line
    assert server.count(CHAT) == 0
    command(str(dataset), **settings, yes=True)
    assert server.count(CHAT) > 0


def _with_oracle(value: Any, paid: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_with_oracle(part, paid) for part in value)
    return paid if value == "{}" else value
