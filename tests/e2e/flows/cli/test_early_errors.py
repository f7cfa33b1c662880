"""What is wrong with the oracle is reported before Prefect starts, within seconds, and leaves no process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.flows.cli.test_own_server import wait_until_none_is_left
from tests.support.fake_openai.examples import texts_table
from tests.support.prefect_home import prefect_home
from tests.support.timed import timed
from twothirds.flows.enrich.checks import check_oracles
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models.oracle import OracleUnavailable

ROOT = Path(__file__).parents[4]
FACES = str(ROOT / "datasets" / "faces")
SECONDS = 3.0  # of computing: this machine may be busy with other tests


COMMANDS = {
    "discover": ("--oracle",),
    "enrich": ("--features", "hat: It has a hat.", "--oracle"),
    "compare": ("--queries", "3", "--oracles", "human"),
}
AWAY = "openai:gpt-4o-mini?base_url=http://127.0.0.1:9/v1&price=0.1,0.2"


class Failed(NamedTuple):
    status: int
    errors: list[str]


def failed(folder: Path, command: str, dataset: str, oracle: str, **variables: str) -> Failed:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= {"PREFECT_HOME": str(prefect_home(folder / "prefect")), "XDG_STATE_HOME": str(folder / "state")}
    environment |= {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    environment |= {"TWOTHIRDS_SERVER_MINUTES": "10", "OPENAI_API_KEY": "wrong"} | variables
    words = [command, dataset, *COMMANDS[command], oracle, "--store", "s.sqlite", "--budget", "1"]
    done = timed([sys.executable, "-m", "twothirds", *words], folder, environment)
    assert done.seconds < SECONDS
    wait_until_none_is_left(str(folder / "prefect"))
    assert "starting Prefect" not in done.stderr
    return Failed(
        done.status, [line for line in done.stderr.splitlines() if not line.startswith(("reading ", "looking at "))]
    )


def each(quick: str) -> pytest.MarkDecorator:
    """Of every command; discover and another one are quick enough for each change."""
    slow = pytest.mark.slow
    commands = [pytest.param(name, marks=() if name in ("discover", quick) else slow) for name in COMMANDS]
    return pytest.mark.parametrize("command", commands)


@each("enrich")
def test_an_oracle_that_looks_at_pictures_is_given_texts(tmp_path: Path, command: str) -> None:
    status, [line] = failed(tmp_path, command, str(texts_table(tmp_path, 8)), "contrastive")
    assert status == 2
    assert "is a text, and a contrastive oracle looks at pictures: use a data set of images" in line


@each("compare")
def test_a_model_server_is_away(tmp_path: Path, command: str) -> None:
    status, [line] = failed(tmp_path, command, FACES, AWAY)
    assert status == 4
    assert "127.0.0.1:9 cannot be reached" in line
    assert line.endswith("check that the server runs and the base URL is right")


def test_the_oracle_that_labels_first_is_looked_at_too(tmp_path: Path) -> None:
    settings = EnrichSettings(
        dataset=FACES,
        features="hat: It has a hat.",
        oracle="simulated",
        agree=0.95,
        cheap=AWAY,
        store=str(tmp_path / "s"),
    )
    with pytest.raises(OracleUnavailable, match="cannot be reached"):
        check_oracles(settings)
