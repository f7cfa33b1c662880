"""Finding out what a server can do is a charge like any other: claimed before, paid after, in the budget of a run."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.support.fake_openai import CHAT, DECISIONS, Abilities, FakeOpenAI
from tests.support.fake_openai.examples import labels, texts
from tests.support.store_steps import granted, reply, send
from tests.support.stored_answers import every_request
from twothirds.flows.cli.store_check import check
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import BudgetExhausted, OracleUnavailable
from twothirds.models.prices import Price
from twothirds.store import PROBE, Store, new_owner

PRICE = Price(Decimal("0.15"), Decimal("0.60"))
PROBE_MOST = 1_350  # micro-dollars of one request: 1,000 tokens in and 2,000 out
QUESTIONS = labels(["cat"], texts(8))


def begin(store: Store, run: str) -> None:
    store.runs.begin(run, f"scope of {run}", name=run, flow="f", dataset="d", oracle="o", settings={})


def oracle_of(server: FakeOpenAI, store: Store, memory: dict[str, Any], budget: int | None = None) -> OpenAIOracle:
    config = OpenAIConfig("gpt-4o-mini", server.base_url, price=PRICE, retry_delay=0.01, attempts=2)
    return OpenAIOracle(config, memory, store, budget)


def ask(server: FakeOpenAI, store: Store, run: str, memory: dict[str, Any], budget: int | None = None) -> CachedOracle:
    begin(store, run)
    with oracle_of(server, store, memory) as oracle:
        oracle.connect()
        recorded = CachedOracle(oracle, RunLedger(store, run, f"scope of {run}", budget=budget))
        list(recorded.ask(QUESTIONS))
    return recorded


def probes(store: Store) -> list[str]:
    """What became of the requests for finding out that may have been charged."""
    found = [request for request in every_request(store) if request.kind == PROBE]
    return ["paid" if request.answered else "in doubt" for request in found]


def test_the_first_run_pays_for_it_and_the_next_one_does_not(server: FakeOpenAI, store: Store) -> None:
    memory: dict[str, Any] = {}
    server.abilities = Abilities(decisions=True)
    with oracle_of(server, store, memory) as curious:
        curious.connect()
        assert store.runs.spent(curious.account) == (server.spent(PRICE), 0)
    first, second = ask(server, store, "first", memory), ask(server, store, "second", memory)
    assert (server.count(CHAT), server.count(DECISIONS)) == (1, 1 + 1)
    assert store.runs.spent("scope of first") == (server.spent(PRICE), 0)
    assert store.runs.spent(curious.account) == (0, 0)
    assert (first.ledger.cost, second.ledger.cost) == (server.spent(PRICE), 0)
    [line] = [line for line in store.costs.lines() if line.kind == PROBE]
    assert (line.run_id, line.oracle, line.paid_calls, line.requests) == ("first", "openai:gpt-4o-mini", 0, 2)
    assert line.paid == server.spent(PRICE) - server.spent_on_questions(PRICE) > 0
    assert (line.input_tokens > 0, line.output_tokens > 0) == (True, True)
    assert {row["run_id"] for row in store.runs.overview()} == {"first", "second"}
    assert store.requests.count("scope of first") == len(QUESTIONS), "it is no answer to a question"
    assert check(store).problems == []


def test_whoever_does_not_remember_asks_again_and_pays_again(server: FakeOpenAI, store: Store) -> None:
    for run in ("first", "second"):
        ask(server, store, run, {})
    assert probes(store) == ["paid", "paid"]
    assert sum(store.runs.spent(f"scope of {run}")[0] for run in ("first", "second")) == server.spent(PRICE)


def test_a_budget_that_even_this_may_exceed_is_reported_before_anything_is_sent(
    server: FakeOpenAI, store: Store
) -> None:
    with oracle_of(server, store, {}, budget=PROBE_MOST - 1) as oracle:
        with pytest.raises(BudgetExhausted, match=r"may take 0\.001350 USD more: raise --budget") as caught:
            oracle.connect()
        assert store.runs.spent(oracle.account) == (0, 0)
    assert "\n" not in str(caught.value)
    assert server.requests == []
    with oracle_of(server, store, {}, budget=2 * PROBE_MOST) as oracle:
        oracle.connect()


def test_a_run_whose_budget_has_no_room_for_it_takes_it_all_the_same_and_asks_nothing(
    server: FakeOpenAI, store: Store
) -> None:
    memory: dict[str, Any] = {}
    with oracle_of(server, store, memory) as oracle:
        oracle.connect()
    cost, probed = server.spent(PRICE), len(server.requests)
    with pytest.raises(BudgetExhausted):
        ask(server, store, "poor", memory, budget=cost - 1)
    assert (store.runs.spent("scope of poor"), store.runs.spent(oracle.account)) == ((cost, 0), (0, 0))
    assert len(server.requests) == probed
    assert check(store).problems == []


@pytest.mark.parametrize(("fault", "state"), [("cut", "in doubt"), ("500", "uncharged")])
def test_a_request_that_fails_is_spent_where_it_may_have_been_charged(
    server: FakeOpenAI, store: Store, fault: str, state: str
) -> None:
    server.script(CHAT, [fault] * 2)
    with oracle_of(server, store, {}) as oracle, pytest.raises(OracleUnavailable):
        oracle.connect()
    lost = 2 if state == "in doubt" else 0  # each attempt is a charge of its own
    assert probes(store) == [state] * lost
    assert store.runs.spent(oracle.account) == (lost * PROBE_MOST, 0)
    ask(server, store, "run", {})
    assert store.runs.spent("scope of run") == (server.spent(PRICE) + lost * PROBE_MOST, 0)
    assert check(store).problems == []


def test_a_reply_that_says_no_usage_is_booked_with_the_most_it_can_cost(server: FakeOpenAI, store: Store) -> None:
    server.script(CHAT, ["no usage"])
    with oracle_of(server, store, {}) as oracle:
        oracle.connect()
    assert store.runs.spent(oracle.account) == (PROBE_MOST, 0)


def test_probes_that_are_repeated_share_the_budget_of_the_run(server: FakeOpenAI, store: Store) -> None:
    """What the server can do is forgotten every time, as with a cache folder that is not kept."""
    server.abilities = Abilities(reasoning=1_500)  # a probe costs nearly what it may
    budget, refused = 15_000, 0
    for attempt in range(20):
        run = f"attempt {attempt}"
        store.runs.begin(run, "scope", name=run, flow="f", dataset="d", oracle="o", settings={})
        try:
            with oracle_of(server, store, {}, budget) as oracle:
                oracle.connect()
                list(CachedOracle(oracle, RunLedger(store, run, "scope", budget=budget)).ask(QUESTIONS[:1]))
        except BudgetExhausted:
            refused += 1
        spent, reserved = store.runs.spent("scope")
        assert server.billed(PRICE) <= spent <= budget
        assert (reserved, store.runs.spent(oracle.account)) == (0, (0, 0))
    assert 0 < refused < 20
    assert check(store).problems == []


def test_a_probe_that_is_under_way_elsewhere_when_the_run_takes_the_account_over_is_taken_along(
    server: FakeOpenAI, store: Store
) -> None:
    with oracle_of(server, store, {}) as oracle:
        account, owner = oracle.account, new_owner()
    store.runs.begin("other", account, name="other", flow=PROBE, dataset="", oracle="o", settings={})
    terms: dict[str, Any] = {"owner": owner, "run_id": "other"}
    [number] = granted(store, ["a"], price=PROBE_MOST, kind=PROBE, **terms)
    assert send(store, [number], PROBE_MOST, **terms) == {number}
    begin(store, "run")
    assert store.requests.take_over(account, "run") == 0
    assert (store.runs.spent("scope of run"), store.runs.spent(account)) == ((0, PROBE_MOST), (0, 0))
    store.requests.record("other", [reply(number, "a", cost=7)])
    assert store.runs.spent("scope of run") == (7, 0)
    assert store.runs.scope_of(account) == "scope of run"
    assert store.check.problems() == []
