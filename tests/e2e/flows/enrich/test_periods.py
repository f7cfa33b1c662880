"""Three nights of one month from the command line, and the first of the next, with a budget for each month."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.integration.flows.enrich.test_periods import booked, move_back
from tests.support.growing_worlds import World

ROOT = Path(__file__).parents[4]


def flows(prefect_url: str, *words: str) -> tuple[int, str]:
    command, env = [sys.executable, "-m", "twothirds", *words], os.environ | {"PREFECT_API_URL": prefect_url}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def test_three_nights_share_the_budget_of_their_month(prefect_url: str, tmp_path: Path) -> None:
    world = World(tmp_path / "world", 20)
    store = world.folder / "store.sqlite"
    places = ["--store", str(store), "--out", str(world.folder / "out")]
    asked = ["enrich", world.spec, "--features", world.features, "--oracle", "simulated?price=0.001", *places]
    command = [*asked, "--budget", "0.1", "--per", "month"]
    status, said = flows(prefect_url, *command)
    assert (status, "per month: 0.1000 USD is left" in said) == (0, True)
    world.add(20)
    status, said = flows(prefect_url, *command)
    assert (status, "per month: 0.0400 USD is left" in said) == (3, True)
    status, said = flows(prefect_url, *command)
    assert (status, "per month: 0.0000 USD is left" in said) == (3, True)
    assert "budget of 0.10 USD per month is used up" in said
    assert "the next month begins on " in said
    assert booked(store) == 100_000
    move_back(store)
    status, said = flows(prefect_url, *command)
    assert (status, booked(store)) == (0, 120_000)

    status, said = flows(prefect_url, *asked, "--per", "month")
    assert (status, said.count("\n")) == (2, 1)
    assert "--per month goes with --budget" in said
