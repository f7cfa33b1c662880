"""Other tools' prompts on the server that keeps the book, and our own tool beside them at a tiny size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.data import write_texts
from benchmarks.peers.finding import STYLES, Purse, counted
from benchmarks.peers.job import PRICE
from benchmarks.peers.running import CALM, OURS, Bench, Case, Tool
from tests.support.fake_openai import WidelyReadServer
from twothirds.models.prices import parse_price
from twothirds.sources import load_dataset

ZOO = load_dataset(str(Path(__file__).parents[3] / "datasets" / "zoo" / "animals.csv"))
PLAIN = Tool("plain", OURS.module, variant="plain", budget=True)


@pytest.fixture(name="server")
def _server() -> Iterator[WidelyReadServer]:
    with WidelyReadServer(ZOO, CALM, price=parse_price(PRICE)) as server:
        yield server


@pytest.mark.parametrize("name", list(STYLES))
def test_every_way_finds_features_within_its_budget(server: WidelyReadServer, name: str) -> None:
    purse = Purse(server.base_url, 0.02)
    found = STYLES[name](purse, ZOO.examples, np.random.default_rng(0))
    assert found.labels.shape == (len(found.names), len(ZOO.examples))
    assert counted(found.labels, ZOO)[0] >= 2
    assert server.summary()["usd"] <= 0.02


def test_our_own_tool_labels_all_with_fewer_requests_than_texts(tmp_path: Path) -> None:
    case = Case("texts", write_texts(tmp_path, 12, 5, 0), 5)
    done = Bench(tmp_path, 0, first=0.0, per_token=0.0).run(PLAIN, case, "run", bad=0.1)
    assert (done.right, done.wrong, done.lost) == (60, 0, 0)
    assert 0 < done.requests < 12


@pytest.mark.slow
def test_our_own_tool_pays_for_no_answer_twice_after_a_kill(tmp_path: Path) -> None:
    case = Case("texts", write_texts(tmp_path, 100, 10, 0), 10)
    killed = Bench(tmp_path, 0, concurrency=2, first=0.2, per_token=0.002).killed(PLAIN, case, "killed")
    assert killed.again == 0
    assert killed.before >= 500
    assert killed.outcome.right == case.labels
