"""The same enrichment in threads, on Dask and on Ray; and a worker that is killed in the middle of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.growing_worlds import World
from twothirds.models.oracle import MICRO
from twothirds.store import Store

ROOT = Path(__file__).parents[4]
ROWS = 600
IN_FLIGHT = 5 * 16  # twice the width under way, once marked as sent, twice answered and not yet written down

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
needs = {
    runner: pytest.mark.skipif(
        find_spec(f"prefect_{runner}") is None, reason=f"prefect-{runner} is not installed: requirements-scale.txt"
    )
    for runner in ("dask", "ray")
}
RUNNERS = [pytest.param(runner, marks=mark) for runner, mark in needs.items()]


def start(world: World, prefect_url: str, runner: str, oracle: str) -> subprocess.Popen[str]:
    options = {
        "--features": world.features,
        "--oracle": oracle,
        "--store": str(world.folder / "store.sqlite"),
        "--out": str(world.folder / "out"),
        "--runner": runner,
        "--workers": "2",
        "--votes": "7",
    }
    words = [sys.executable, "-m", "twothirds", "enrich", world.spec, "--yes", "--json"]
    return subprocess.Popen(
        [*words, *(word for pair in options.items() for word in pair)],
        cwd=ROOT,
        env=os.environ | {"PREFECT_API_URL": prefect_url, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, complaints = process.communicate(timeout=600)
    assert process.returncode == 0, complaints
    summary: dict[str, Any] = json.loads(out[out.index("{") :])
    return summary


def labels_of(world: World) -> pd.DataFrame:
    table = pd.read_parquet(world.folder / "out" / "labels.parquet").set_index("id")
    return table[list(world.traits)].sort_index()


@pytest.mark.parametrize("oracle", ["simulated?flip=0.2", "simulated?flip=0.2&price=0.001"], ids=["computed", "paid"])
@pytest.mark.parametrize("runner", RUNNERS)
def test_a_cluster_of_two_processes_gives_the_labels_of_one(
    prefect_url: str, tmp_path: Path, runner: str, oracle: str
) -> None:
    here, there = World(tmp_path / "here", ROWS), World(tmp_path / "there", ROWS)
    ended(start(here, prefect_url, "threads", oracle))
    summary = ended(start(there, prefect_url, runner, oracle))
    assert summary["added"] == ROWS
    assert labels_of(there).equals(labels_of(here))


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_killed_worker_changes_nothing_and_costs_at_most_what_was_under_way(
    prefect_url: str, tmp_path: Path, runner: str
) -> None:
    world, calm = World(tmp_path / "world", ROWS), World(tmp_path / "calm", ROWS)
    oracle = "simulated?flip=0.2&price=0.001"
    ended(start(calm, prefect_url, "threads", oracle))
    process = start(world, prefect_url, runner, f"{oracle}&latency=0.02")
    with Store.open(str(world.folder / "store.sqlite")) as store:
        while process.poll() is None and sum(row.paid_calls for row in store.costs.lines()) < 200:
            time.sleep(0.2)
        victims = workers_of(store, process.pid)
        assert victims, "no worker was found to kill"
        os.kill(victims[0], signal.SIGKILL)
        summary = ended(process)
        assert labels_of(world).equals(labels_of(calm))
        assert store.check.problems() == []
        spent, lost = (sum(getattr(row, name) for row in store.costs.lines()) for name in ("paid", "unknown"))
        with Store.open(str(calm.folder / "store.sqlite")) as other:
            needed = sum(row.paid for row in other.costs.lines())
    assert spent == needed
    assert lost <= 1000 * IN_FLIGHT
    assert [round(summary[name] * MICRO) for name in ("cost_usd", "unknown_usd")] == [spent, lost]


def workers_of(store: Store, parent: int) -> list[int]:
    """Processes other than the parent that hold the store's file open."""
    path, found = store.engine.url.database, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            files = [os.readlink(link) for link in (folder / "fd").iterdir()]
        except OSError:
            continue
        if path in files and int(folder.name) not in (parent, os.getpid()):
            found.append(int(folder.name))
    return found
