"""A discovery on pictures through the OpenAI adapter and the real `transformers serve`: a server that ignores response
formats and has no decisions endpoint."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from discovery.strategies import make_strategy
from flows.loop import Limits, Loop
from models.openai_api import OpenAIOracle
from models.openai_config import OpenAIConfig
from models.openai_wire import Wire
from models.oracle import Answer, Verdict
from models.prices import Price, Tokens, settled
from models.recorded import Recorded
from models.voting import Panel
from sources.example import Example
from store import Store
from tests.tiny_models import save_tiny_llava

PRICE = Price(Decimal("2.50"), Decimal("10.00"))
LABELS = ", ".join(f'"{number}": {"true" if number % 3 else "false"}' for number in range(1, 9))
REPLY = (
    '{"found": true, "name": "red hat", "definition": "A hat that is red.", "have": ["A", "B"], "lack": ["C"], '
    + LABELS
    + "}"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address of a server, and the name of its model."""
    model = save_tiny_llava(tmp_path / "llava", says=REPLY)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cache = tmp_path / "hub"
    cache.mkdir()
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(model)]
    options = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(cache)}
    log = tmp_path / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen([*command, *options], env=environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        wait_until_up(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1", str(model)
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    pytest.fail(f"transformers serve did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")


@pytest.fixture
def pictures(tmp_path: Path) -> list[Example]:
    rng = np.random.default_rng(0)
    examples = []
    for number in range(8):
        path = tmp_path / f"{number}.png"
        Image.fromarray(rng.integers(0, 256, (40, 60, 3), dtype=np.uint8)).save(path)
        examples.append(Example(str(number), hashlib.sha256(path.read_bytes()).hexdigest(), image=str(path)))
    return examples


@pytest.mark.slow
def test_a_discovery_costs_what_the_server_says_it_used(
    server: tuple[str, str], pictures: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = every_usage(monkeypatch)
    config = OpenAIConfig(server[1], server[0], price=PRICE, concurrency=2)
    answers: list[Answer] = []
    with OpenAIOracle(config) as oracle, Store.open(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.begin_run("run", "scope", name="t", flow="test", dataset="d", oracle="o", settings={})
        recorded = Recorded(oracle, store, run_id="run", scope="scope")
        panel = Panel(recorded, pictures, 2, answers.append)
        strategy = make_strategy("adaptive-triple", len(pictures), np.random.default_rng(0))
        loop = Loop(strategy, pictures, Limits(3), partial(Panel.compare, panel), partial(Panel.label, panel))
        loop.run()
        spent, reserved = store.spent("scope")
    verdicts = [answer.verdict for answer in answers]
    assert {Verdict.FEATURE, Verdict.YES, Verdict.NO} <= set(verdicts)
    assert len(answers) == 3 + 2 * len(pictures)
    assert spent == sum(settled(PRICE, tokens) for tokens in used) > 0
    assert spent == sum(answer.cost for answer in answers) == recorded.cost
    assert reserved == 0
    assert sum(answer.usage.input_tokens for answer in answers) == sum(tokens.input for tokens in used)
    assert sum(answer.usage.output_tokens for answer in answers) == sum(tokens.output for tokens in used)


def every_usage(monkeypatch: pytest.MonkeyPatch) -> list[Tokens]:
    """What the server says of each of its replies, read off the wire."""
    original, used = Wire._reply, list[Tokens]()

    async def noted(self: Wire, *arguments: Any) -> Any:
        reply = await original(self, *arguments)
        assert reply.tokens is not None
        used.append(reply.tokens)
        return reply

    monkeypatch.setattr(Wire, "_reply", noted)
    return used
