"""A provider that charges more than the bounds of its requests: the run stops, and what leaves later is covered."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from pydantic import SecretStr

from tests.support.fake_openai import CHAT, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, text_example, wrong
from twothirds.flows.cli.store_check import check
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import BudgetExhausted, Overcharged
from twothirds.models.prices import Price
from twothirds.store import Store

PRICE = Price(Decimal("0.15"), Decimal("0.60"))
IN_FLIGHT = 16
TIMES = 40
ASKED = labels(WORDS[:1], [text_example(f"{WORDS[number % 3]} {number}") for number in range(80)])


def config_of(server: FakeOpenAI) -> OpenAIConfig:
    config = OpenAIConfig("gpt-4o-mini", server.base_url, SecretStr("none"), price=PRICE, retry_delay=0.001)
    return replace(config, concurrency=IN_FLIGHT, grouping="none")


def begin(store: Store, run_id: str) -> None:
    store.runs.begin(run_id, "scope", name=run_id, flow="f", dataset="d", oracle="o", settings={})


def recorded(oracle: OpenAIOracle, store: Store, run_id: str, budget: int) -> CachedOracle:
    begin(store, run_id)
    return CachedOracle(oracle, RunLedger(store, run_id, "scope", budget=budget))


def test_after_the_first_reply_above_its_bound_only_what_was_in_flight_is_charged(store: Store) -> None:
    with FakeOpenAI(FakeModel(WORDS), Abilities(latency=0.05)) as server:
        memory: dict[str, object] = {}
        with OpenAIOracle(config_of(server), memory) as oracle:
            oracle.connect()
            before, charged_before = server.count(CHAT), server.billed(PRICE)
            server.abilities = replace(server.abilities, overcharge=TIMES)
            budget = sum(oracle.estimate(ASKED))
            run = recorded(oracle, store, "first", budget)
            with pytest.raises(Overcharged) as stopped:
                list(run.ask(ASKED))
        sent, charged = server.count(CHAT) - before, server.billed(PRICE) - charged_before
        assert sent <= IN_FLIGHT
        spent, reserved = store.runs.spent("scope")
        assert (spent, reserved) == (charged, 0), "booked in full, and what was not sent is released"
        said = str(stopped.value)
        assert "openai:gpt-4o-mini at 127.0.0.1" in said
        assert "charged 0.00" in said
        assert "at most 0.00" in said
        assert "run again" in said
        assert "\n" not in said

        # A later run knows the ratio, and its budget holds although every reply costs as much again.
        with OpenAIOracle(config_of(server), memory) as oracle:
            oracle.connect()
            [plain, *_] = oracle.estimate(ASKED[-1:])
            more = spent + 10 * plain
            again = recorded(oracle, store, "again", more)
            assert oracle.estimate(ASKED[-1:])[0] > 2 * plain
            with pytest.raises(BudgetExhausted):
                list(again.ask(ASKED))
        assert server.count(CHAT) - before > sent, "it goes on"
        assert server.billed(PRICE) - charged_before <= store.runs.spent("scope")[0] <= more
    assert check(store).problems == []


def test_a_run_without_a_budget_goes_on_when_it_is_started_again(store: Store) -> None:
    with FakeOpenAI(FakeModel(WORDS), Abilities()) as server, OpenAIOracle(config_of(server), {}) as oracle:
        oracle.connect()
        server.abilities = replace(server.abilities, overcharge=TIMES)
        starts = 0
        for start in range(5):
            begin(store, f"run {start}")
            starts += 1
            run = CachedOracle(oracle, RunLedger(store, f"run {start}", "scope"))
            try:
                answers = list(run.ask(ASKED))
                break
            except Overcharged:
                continue
        assert wrong(answers) == []
        assert 2 <= starts <= 4, "bounds that were raised once or twice hold"


def test_an_unreadable_reply_above_its_bound_is_booked_in_full_and_not_repeated(store: Store) -> None:
    with FakeOpenAI(FakeModel(WORDS), Abilities()) as server, OpenAIOracle(config_of(server), {}) as oracle:
        oracle.connect()
        server.processed.clear()
        before = server.count(CHAT)
        server.abilities = replace(server.abilities, overcharge=TIMES)
        server.script(CHAT, ["prose"])
        run = recorded(oracle, store, "run", sum(oracle.estimate(ASKED[:1])))
        list(run.ask(ASKED[:1]))
        assert (server.count(CHAT) - before, store.runs.spent("scope")) == (1, (server.billed(PRICE), 0))
        with pytest.raises(Overcharged):
            list(run.ask(ASKED[1:2]))
        assert server.count(CHAT) - before == 1
    assert check(store).problems == []
