"""Whole discoveries against a server of which three replies in ten are bad, in every way that is known."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.support.fake_openai import CHAT, FAILURES, REPEATS, SPOILERS, USAGES, Abilities, BatchManners, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, texts_table
from tests.support.slow import slow
from twothirds.flows.discover.outcome import Outcome
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.models.prices import parse_price

BAD = 0.3
PRICE = "0.15,0.60"
EXAMPLES = 32
QUERIES = 8
SPOILED = [name for name in (*SPOILERS, REPEATS) if name not in USAGES]
FAILED = [name for name in FAILURES if name not in ("429 for an hour", "no quota", "hang")]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return texts_table(tmp_path, EXAMPLES)


def discovered(server: FakeOpenAI, dataset: Path, folder: Path, way: str) -> Outcome:
    server.abilities = Abilities(decisions=way == "decisions")
    flaky = "&asks=8&attempts=12&retry_delay=0.005&labels_per_request=4&batch_poll=0.01"
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}{flaky}"
    settings = DiscoverSettings(
        dataset=str(dataset),
        oracle=oracle,
        queries=QUERIES,
        provider_batch=way == "batch",
        store=str(folder.with_suffix(".sqlite")),
        out=str(folder),
    )
    return run_discovery(prepare(settings), run_id=folder.name)


def spoil(server: FakeOpenAI, kinds: list[str], seed: int) -> None:
    server.batches.made.clear()  # what the good server was asked is not to be collected
    server.misbehave(BAD, kinds, seed)
    lines = tuple(kind for kind in kinds if kind in (*SPOILERS, REPEATS))
    server.batches.manners = BatchManners(spoiled=BAD, spoilers=lines, shuffled=True, foreign=True, expired=0.1)


SLOW = pytest.mark.slow
SEEDS = [0, *(pytest.param(seed, marks=SLOW) for seed in range(1, 10))]


@pytest.mark.parametrize("way", ["chat", "decisions", "batch"])
@pytest.mark.parametrize("seed", SEEDS)
def test_with_three_replies_in_ten_bad_the_labels_are_those_of_a_good_server(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, way: str, seed: int
) -> None:
    good = discovered(server, dataset, tmp_path / "good", way)
    assert len(good.progress.findings) == len(WORDS)
    server.book.clear()
    spoil(server, [*SPOILED, *FAILED], seed)
    asked = server.count(CHAT)
    bad = discovered(server, dataset, tmp_path / "bad", way)
    assert server.count(CHAT) > asked
    for name in ("labels.csv", "run.json"):
        assert (tmp_path / "bad" / name).exists()
    labels, right = (pd.read_csv(tmp_path / name / "labels.csv", index_col="id") for name in ("bad", "good"))
    assert list(labels.columns) == list(right.columns)
    unknown = labels.isna() & right.notna()
    assert labels.where(~unknown, right).astype(right.dtypes).equals(right), "no label is wrong"
    # a batch's line is repeated in other words only as often as there are any: then the label stays open
    assert int(unknown.to_numpy().sum()) <= (0.02 * right.size if way == "batch" else 0)
    assert bad.progress.g_curve == good.progress.g_curve or unknown.any(axis=None)
    assert json.loads((tmp_path / "bad" / "run.json").read_text())["stopped_because"] == str(good.progress.stopped)
    assert bad.crowd.ledger.cost == server.spent(parse_price(PRICE))


@pytest.mark.parametrize("way", ["chat", *slow("decisions", "batch")])
def test_usage_that_cannot_be_believed_changes_no_label_and_is_booked_above_what_was_reported(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, way: str
) -> None:
    discovered(server, dataset, tmp_path / "good", way)
    server.book.clear()
    spoil(server, list(USAGES), seed=0)
    bad = discovered(server, dataset, tmp_path / "bad", way)
    assert (tmp_path / "bad" / "labels.csv").read_bytes() == (tmp_path / "good" / "labels.csv").read_bytes()
    assert bad.crowd.ledger.cost > server.spent(parse_price(PRICE))
