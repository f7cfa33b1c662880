"""A model server that hangs, cuts, tears and lies, and keeps its own book: charged ≤ booked ≤ budget, always."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from tests.support.fake_openai import CHAT, IN_DOUBT, SPOILERS, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, text_example, texts, wrong
from twothirds.discovery.questions import Kind
from twothirds.flows.cli.store_check import check
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import BudgetExhausted, Compare, OracleUnavailable, Question, Verdict
from twothirds.models.prices import Price
from twothirds.store import Store

PRICE = Price(Decimal("0.15"), Decimal("0.60"))
EXAMPLES = texts(12)
PASSING = ("429", "500", "503")
TIMEOUT = 0.4


def questions(dice: random.Random, seed: int) -> list[Question]:
    examples = [text_example(f"{one.text} of {seed}") for one in EXAMPLES]  # no run knows another's answers
    asked: list[Question] = [*labels(WORDS[: dice.randint(1, 3)], examples[: dice.randint(1, 12)])]
    for _ in range(dice.randint(0, 3)):
        one, two, three = dice.sample(examples, 3)
        asked.append(Compare(Kind.TWO_OF_THREE, (one, two, three)))
    return list(dict.fromkeys(asked))


def begin(store: Store, run_id: str, scope: str) -> None:
    store.runs.begin(run_id, scope, name=run_id, flow="f", dataset="d", oracle="o", settings={})


def one_run(store: Store, seed: int) -> None:
    """One command, started up to four times, with the cache folder kept or not."""
    dice = random.Random(seed)
    scope, budget, kept = f"scope {seed}", int(10 ** dice.uniform(3.2, 5.2)), dice.random() < 0.5
    config = OpenAIConfig("gpt-4o-mini", None, SecretStr("none"), price=PRICE, retry_delay=0.001, timeout=30.0)
    config = replace(
        config,
        asks=dice.randint(1, 5),
        attempts=dice.randint(1, 8),
        concurrency=dice.randint(1, 6),
        labels_per_request=dice.choice([1, 3, 20]),
        grouping=dice.choice(["auto", "none"]),
    )
    kinds = dice.sample(sorted({*IN_DOUBT} - {"hang"}), 4) + dice.sample([*SPOILERS, *PASSING], 4)
    if dice.random() < 0.1:
        kinds, config = [*kinds, "hang"], replace(config, timeout=TIMEOUT)
    memory: dict[str, Any] = {}
    asked = questions(dice, seed)
    able = Abilities(decisions=dice.random() < 0.3, reasoning=dice.choice([0, 0, 300]))
    with FakeOpenAI(FakeModel(WORDS), able) as server:
        server.misbehave(dice.uniform(0.0, 0.7), sorted(kinds), seed)
        for attempt in range(dice.randint(1, 4)):
            memory = memory if kept else {}
            started, run_id = replace(config, base_url=server.base_url), f"{scope}, attempt {attempt}"
            with OpenAIOracle(started, memory, store, budget, purpose=scope) as oracle:
                try:
                    oracle.connect()
                    begin(store, run_id, scope)
                    answers = list(CachedOracle(oracle, RunLedger(store, run_id, scope, budget=budget)).ask(asked))
                    assert wrong([one for one in answers if one.verdict in (Verdict.YES, Verdict.NO)]) == []
                except (BudgetExhausted, OracleUnavailable):
                    pass  # what was charged and booked until then counts
            sums = [store.runs.spent(scope), store.runs.spent(oracle.account)]
            assert [reserved for _, reserved in sums] == [0, 0], seed
            booked, charged = sum(spent for spent, _ in sums), server.billed(PRICE)
            assert charged <= booked <= budget, (seed, attempt)


FEW, MANY = range(2), range(1_000, 1_200)


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
def test_random_runs_against_a_hostile_server_charge_no_more_than_is_booked(store: Store, seeds: range) -> None:
    for seed in seeds:
        one_run(store, seed)
    assert check(store).problems == []


@pytest.mark.parametrize("fault", [name for name in IN_DOUBT if name != "hang"])
def test_attempts_that_may_have_been_charged_are_booked_beside_the_one_that_succeeded(
    server: FakeOpenAI, store: Store, fault: str
) -> None:
    asked: list[Question] = [*labels(["cat"], EXAMPLES[:1])]
    config = OpenAIConfig("gpt-4o-mini", server.base_url, SecretStr("none"), price=PRICE, retry_delay=0.001)
    with OpenAIOracle(config, {}) as oracle:
        oracle.connect()
        server.processed.clear()
        server.script(CHAT, [fault, fault, None])
        begin(store, "run", "scope")
        [most] = oracle.estimate(asked)
        recorded = CachedOracle(oracle, RunLedger(store, "run", "scope", budget=most))
        [answer] = recorded.ask(asked)
    assert (wrong([answer]), answer.in_doubt) == ([], most // 2)
    totals = store.costs.totals("run")
    assert (totals.paid, totals.unknown_calls, totals.unknown) == (answer.cost, 1, most // 2)
    assert store.runs.spent("scope") == (answer.cost + most // 2, 0)
    assert server.billed(PRICE) <= answer.cost + most // 2 <= most
    assert (recorded.ledger.cost, recorded.ledger.in_doubt) == (answer.cost, most // 2)
    assert check(store).problems == []


def test_no_more_attempts_are_made_than_the_reservation_covers(server: FakeOpenAI, store: Store) -> None:
    config = OpenAIConfig("gpt-4o-mini", server.base_url, SecretStr("none"), price=PRICE, retry_delay=0.001, asks=2)
    with OpenAIOracle(replace(config, attempts=9), {}) as oracle:
        oracle.connect()
        before = server.count(CHAT)
        server.script(CHAT, ["504"] * 9)
        begin(store, "run", "scope")
        asked = [*labels(["cat"], EXAMPLES[:1])]
        [most] = oracle.estimate(asked)
        recorded = CachedOracle(oracle, RunLedger(store, "run", "scope", budget=most))
        with pytest.raises(OracleUnavailable, match="answers 504"):
            list(recorded.ask(asked))
    assert server.count(CHAT) - before == 2
    assert (store.runs.spent("scope"), recorded.ledger.in_doubt) == ((most, 0), most)


def test_a_reply_that_is_no_json_object_is_asked_again_after_a_pause_and_never_kept(
    server: FakeOpenAI, store: Store
) -> None:
    """Such as the page of a captive portal, which spoils every reply for a moment."""
    config = OpenAIConfig("gpt-4o-mini", server.base_url, SecretStr("none"), price=PRICE, retry_delay=0.1)
    with OpenAIOracle(config, {}) as oracle:
        oracle.connect()
        server.script(CHAT, ["not JSON"] * 2)
        begin(store, "run", "scope")
        started = time.monotonic()
        answers = list(CachedOracle(oracle, RunLedger(store, "run", "scope")).ask(labels(WORDS[:1], EXAMPLES[:1])))
        assert time.monotonic() - started >= 0.1 / 2 + 0.2 / 2
        assert wrong(answers) == []
        server.script(CHAT, ["not JSON"] * 9)
        with pytest.raises(OracleUnavailable, match="no JSON object"):
            list(CachedOracle(oracle, RunLedger(store, "run", "scope")).ask(labels(WORDS[2:3], EXAMPLES[:2])))
    assert store.requests.count() == len(answers), "nothing is recorded as unreadable"
