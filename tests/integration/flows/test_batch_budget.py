"""Flows whose labels travel by a provider's batch: with a smaller budget they collect first, and stop then."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from flows.discover.findings import StopReason
from flows.discover.flow import run_discovery
from flows.discover.preparation import prepare
from flows.discover.settings import DiscoverSettings
from models.oracle import AnswersPending
from models.prices import Price
from store import Store
from tests.support.fake_openai import BatchManners, FakeOpenAI

PRICE = Price(Decimal("0.15"), Decimal("0.60"))
LEAST = Decimal("0.000001")


def oracle(server: FakeOpenAI) -> str:
    options = "price=0.15,0.60&provider_batch=true&batch_wait=0.01&batch_poll=0.01&labels_per_request=4"
    return f"openai:gpt-4o-mini?base_url={server.base_url}&{options}"


def booked(store: Path) -> int:
    with Store.open(str(store)) as opened:
        assert opened.check.problems() == []
        return sum(line.paid + line.unknown for line in opened.costs.lines())


def test_a_discovery_collects_its_batch_with_a_smaller_budget_and_stops_then(
    server: FakeOpenAI, dataset: Path, tmp_path: Path
) -> None:
    server.batches.manners = BatchManners(polls=1000)
    store = tmp_path / "store.sqlite"
    settings = DiscoverSettings(
        dataset=str(dataset),
        oracle=oracle(server),
        queries=4,
        batch=1,
        per_question=1,
        store=str(store),
        out=str(tmp_path / "run"),
        votes=1,
    )
    with pytest.raises(AnswersPending):
        run_discovery(prepare(settings.model_copy(update={"budget": Decimal(1)})), run_id="first")
    server.batches.finish()
    assert 0 < server.spent(PRICE) <= booked(store) <= 1_000_000
    outcome = run_discovery(prepare(settings.model_copy(update={"budget": LEAST})), run_id="second")
    assert (len(outcome.progress.findings), outcome.progress.stopped) == (1, StopReason.BUDGET)
    assert len(server.batches.made) == 1
    assert booked(store) == server.spent(PRICE)
