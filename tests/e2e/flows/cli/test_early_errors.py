"""What is wrong with the oracle is told before Prefect starts, within seconds, and leaves no process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.e2e.flows.cli.test_own_server import wait_until_none_is_left
from tests.support.fake_openai import Abilities, FakeOpenAI
from tests.support.fake_openai.examples import texts_table

ROOT = Path(__file__).parents[4]
SECONDS = 3.0  # of computing: this machine may be busy with other tests


class Failed(NamedTuple):
    status: int
    errors: list[str]


def failed(folder: Path, dataset: str, oracle: str, **variables: str) -> Failed:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= {"PREFECT_HOME": str(folder / "prefect"), "XDG_STATE_HOME": str(folder / "state")}
    environment |= {"TWOTHIRDS_SERVER_MINUTES": "10", "OPENAI_API_KEY": "wrong"} | variables
    words = [dataset, "--oracle", oracle, "--store", str(folder / "s.sqlite"), "--out", str(folder / "run")]
    command = [sys.executable, "-m", "flows", "discover", *words]
    began = sum(os.times()[2:4])
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert sum(os.times()[2:4]) - began < SECONDS
    wait_until_none_is_left(str(folder / "prefect"))
    assert "starting Prefect" not in done.stderr
    return Failed(done.returncode, [line for line in done.stderr.splitlines() if not line.startswith("reading ")])


def test_an_oracle_that_looks_at_pictures_is_given_texts(tmp_path: Path) -> None:
    status, [line] = failed(tmp_path, str(texts_table(tmp_path, 8)), "contrastive")
    assert status == 2
    assert "is a text, and a contrastive oracle looks at pictures: use a data set of images" in line


def test_a_model_server_is_away(tmp_path: Path) -> None:
    oracle = "openai:gpt-4o-mini?base_url=http://127.0.0.1:9/v1&price=0.1,0.2"
    status, [line] = failed(tmp_path, "datasets/faces", oracle)
    assert status == 1
    assert "127.0.0.1:9 cannot be reached" in line
    assert line.endswith("check that the server runs and the base URL is right")


def test_a_model_server_does_not_accept_the_key(tmp_path: Path) -> None:
    with FakeOpenAI(abilities=Abilities(key="right")) as server:
        oracle = "openai:gpt-4o-mini?price=0.1,0.2"
        status, [line] = failed(tmp_path, "datasets/faces", oracle, OPENAI_BASE_URL=server.base_url)
    assert status == 2
    assert line.endswith("does not accept the API key: set OPENAI_API_KEY to a valid one")
    assert server.count("/v1/chat/completions") == 0
