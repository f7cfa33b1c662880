"""Flows with a budget of a few requests: whole rows are bought while it lasts, and a larger one goes on from there."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.fake_openai import CHAT, BatchManners, FakeOpenAI
from tests.support.fake_openai.examples import WORDS
from tests.support.slow import slow
from twothirds.flows.discover.findings import StopReason
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models.oracle import AnswersPending
from twothirds.models.prices import Price
from twothirds.store import Store

PRICE = Price(Decimal("0.15"), Decimal("0.60"))


def oracle(server: FakeOpenAI, more: str = "") -> str:
    return f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60&retry_delay=0.001&grouping=example{more}"


def booked(store: Path, most: Decimal) -> int:
    with Store.open(str(store)) as opened:
        assert opened.check.problems() == []
        total = sum(line.paid + line.unknown for line in opened.costs.lines())
    assert total <= most * 1_000_000
    return total


@pytest.mark.parametrize("votes", [1, 3])
def test_an_enrichment_labels_whole_rows_while_the_budget_lasts_and_goes_on_with_a_larger_one(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, votes: int
) -> None:
    table = tmp_path / "features.csv"
    pd.DataFrame({"name": WORDS, "definition": [f"It mentions a {word}." for word in WORDS]}).to_csv(table)

    def enrich(place: str, budget: Decimal) -> Any:
        about = {"dataset": str(dataset), "features": str(table), "oracle": oracle(server), "votes": votes}
        where = {"store": str(tmp_path / f"{place}.sqlite"), "out": str(tmp_path / place)}
        return enrich_with(EnrichSettings(**about, **where, budget=budget))

    enrich("undisturbed", Decimal(1))
    labels = sum(not charge.probe for charge in server.book)
    usd = Decimal(server.spent_on_questions(PRICE)) / 1_000_000
    server.book.clear()
    small = (usd / labels * 8).quantize(Decimal("0.000001"))
    enrich("small", small)
    sent = [charge for charge in server.book if not charge.probe]
    assert 4 <= len(sent) <= 8
    assert server.spent(PRICE) <= booked(tmp_path / "small.sqlite", small)
    server.script(CHAT, ["prose", "504", "half the labels"])
    enrich("small", Decimal(1))
    once, twice = (pd.read_parquet(tmp_path / place / "labels.parquet") for place in ("undisturbed", "small"))
    pd.testing.assert_frame_equal(once.drop(columns="version"), twice.drop(columns="version"))


@pytest.mark.parametrize("more", [{"votes": 3}, *slow({}, {"labeller": "same"})])
def test_a_discovery_with_a_small_budget_stops_in_time_and_ends_as_it_would_have(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, more: dict[str, Any]
) -> None:
    if "labeller" in more:
        more = {"labeller": oracle(server, "&temperature=0.5")}

    def discover(place: str, budget: Decimal) -> Any:
        about = {
            "dataset": str(dataset),
            "oracle": oracle(server),
            "queries": 4,
            "votes": 1,
            "strategy": "adaptive-triple",
            **more,
        }
        where = {"store": str(tmp_path / f"{place}.sqlite"), "out": str(tmp_path / place)}
        return run_discovery(prepare(DiscoverSettings(**about, **where, budget=budget)), run_id=f"{place} {budget}")

    whole = discover("undisturbed", Decimal(1))
    usd = Decimal(booked(tmp_path / "undisturbed.sqlite", Decimal(1))) / 1_000_000
    stopped = []
    for share in (Decimal("0.2"), Decimal("0.5"), Decimal("0.8")):
        budget = (usd * share).quantize(Decimal("0.000001"))
        stopped.append(discover("small", budget).progress.stopped)
        spent = booked(tmp_path / "small.sqlite", budget)
    assert spent >= Decimal("0.4") * budget * 1_000_000
    assert set(stopped) == {StopReason.BUDGET}
    again = discover("small", Decimal(1))
    assert [one.feature for one in again.progress.findings] == [one.feature for one in whole.progress.findings]
    assert booked(tmp_path / "small.sqlite", Decimal(1)) <= 1.3 * float(usd) * 1_000_000


def test_a_discovery_collects_its_batch_with_a_smaller_budget_and_stops_then(
    server: FakeOpenAI, dataset: Path, tmp_path: Path
) -> None:
    server.batches.manners = BatchManners(polls=1000)
    store, least = tmp_path / "store.sqlite", Decimal("0.000001")
    by_batch = "&provider_batch=true&batch_wait=0.01&batch_poll=0.01&labels_per_request=4"
    settings = DiscoverSettings(
        dataset=str(dataset),
        oracle=oracle(server, by_batch),
        queries=4,
        strategy="adaptive-triple",
        store=str(store),
        out=str(tmp_path / "run"),
        votes=1,
    )
    with pytest.raises(AnswersPending):
        run_discovery(prepare(settings.model_copy(update={"budget": Decimal(1)})), run_id="first")
    server.batches.finish()
    assert 0 < server.spent(PRICE) <= booked(store, Decimal(1))
    outcome = run_discovery(prepare(settings.model_copy(update={"budget": least})), run_id="second")
    assert (len(outcome.progress.findings), outcome.progress.stopped) == (1, StopReason.BUDGET)
    assert len(server.batches.made) == 1
    assert booked(store, Decimal(1)) == server.spent(PRICE)
