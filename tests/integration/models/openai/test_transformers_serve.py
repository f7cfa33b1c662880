"""The real `transformers serve` with a tiny LLaVA: a whole discovery with pictures over the OpenAI-compatible API."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_openai.examples import picture_example
from tests.support.tiny_models import save_tiny_llava

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FEATURE = {"name": "red hat", "definition": "It shows a red hat.", "have": "A and B"}
SAYS = json.dumps(FEATURE | {str(number): number % 2 == 1 for number in range(1, 13)})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llava(tmp_path_factory.mktemp("model") / "llava", says=SAYS)


@pytest.fixture(scope="module")
def served(model: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("transformers")), "serve", str(model)]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"],
        env=os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)


def wait_for(url: str, process: subprocess.Popen[bytes], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError("transformers serve did not start")


def test_a_whole_discovery_with_pictures_costs_usage_times_price(served: str, model: Path, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number in range(12):
        colour = ("red", "green", "blue")[number % 3]
        picture_example(pictures, colour, (40 + number, 32), f"{colour}{number}")
    out = tmp_path / "out"
    oracle = f"openai:{model}?price=1,2&image_size=32&concurrency=2&labels_per_request=1&base_url={served}"
    home = {f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("CACHE", "DATA", "STATE", "CONFIG")}
    options = ["--oracle", oracle, "--queries", "2", "--yes", "--out", str(out)]

    def flows(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | home | {"OPENAI_API_KEY": "sk-marked-secret"}
        command = [sys.executable, "-m", "twothirds", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)

    done = flows("discover", str(pictures), *options)
    assert done.returncode == 0, done.stderr
    run = json.loads((out / "run.json").read_text())
    assert run["features"] >= 1
    usages = [json.loads(line)["answer"]["usage"] for line in (out / "answers.jsonl").read_text().splitlines()]
    paid = sum(given + 2 * written for _, given, written, *_ in usages)
    assert paid > 0
    probed = [row["paid"] for row in json.loads(flows("costs", "--json").stdout) if row["kind"] == "probe"]
    assert run["cost_usd"] == pytest.approx((paid + sum(probed)) / 1_000_000, abs=0.000001)
    assert "sk-marked-secret" not in done.stdout + done.stderr + (out / "run.json").read_text()
