"""Flows whose provider charges more than the bounds of its requests: they stop, say so, and go on when run again."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from prefect.states import Failed

from tests.support.fake_openai import FakeOpenAI
from tests.support.fake_openai.examples import WORDS
from twothirds.flows.discover.findings import StopReason
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.batches import BatchLost
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models import Overcharged
from twothirds.models.oracle import OracleLost
from twothirds.models.prices import Price
from twothirds.store import Store
from twothirds.tasks.ask import label_batch

PRICE = Price(Decimal("0.15"), Decimal("0.60"))
TIMES = 40


def settings_of(server: FakeOpenAI, dataset: Path, tmp_path: Path) -> dict[str, Any]:
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60&grouping=none&concurrency=2"
    where = {"store": str(tmp_path / "store.sqlite"), "out": str(tmp_path / "out")}
    return {"dataset": str(dataset), "oracle": oracle, "votes": 1, "budget": Decimal(1), **where}


def booked(tmp_path: Path) -> int:
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        assert store.check.problems() == []
        return sum(line.paid + line.unknown for line in store.costs.lines())


def test_a_discovery_stops_and_says_so(server: FakeOpenAI, dataset: Path, tmp_path: Path) -> None:
    server.abilities = replace(server.abilities, overcharge=TIMES)
    settings = DiscoverSettings(**settings_of(server, dataset, tmp_path), queries=3, strategy="adaptive-triple")
    stopped = run_discovery(prepare(settings), run_id="first").progress
    assert stopped.stopped is StopReason.UNAVAILABLE
    assert "charged 0.0" in stopped.message
    assert "run again" in stopped.message
    assert sum(not charge.probe for charge in server.book) <= 2
    assert booked(tmp_path) == server.spent(PRICE)
    for _ in range(3):  # one whose ratio is higher still may follow
        again = run_discovery(prepare(settings), run_id="again").progress
    assert again.stopped is StopReason.QUERIES


def test_an_enrichment_stops_at_once_and_keeps_what_was_answered(
    server: FakeOpenAI, dataset: Path, tmp_path: Path
) -> None:
    server.abilities = replace(server.abilities, overcharge=TIMES)
    table = tmp_path / "features.csv"
    pd.DataFrame({"name": WORDS, "definition": [f"It mentions a {word}." for word in WORDS]}).to_csv(table)
    settings = EnrichSettings(**settings_of(server, dataset, tmp_path), features=str(table))
    with pytest.raises(OracleLost, match=r"charged .* for a request that costs at most .* look at the provider's bill"):
        enrich_with(settings)
    assert sum(not charge.probe for charge in server.book) <= 2
    assert booked(tmp_path) == server.spent(PRICE)


def test_a_batch_of_labels_is_not_tried_again_after_it() -> None:
    is_tried_again = label_batch.retry_condition_fn
    assert is_tried_again is not None
    lost, overcharged = BatchLost("away"), BatchLost("charged too much")
    overcharged.may_pass = Overcharged.may_pass
    tried = [is_tried_again(label_batch, None, Failed(data=error)) for error in (lost, overcharged)]  # type: ignore[arg-type]
    assert tried == [True, False]
