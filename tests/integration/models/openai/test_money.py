"""A model server that hangs, cuts, tears and lies, and keeps its own book: charged ≤ booked ≤ budget, always. Finding
out what it can do is a request of the run like others, in its budget."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import pytest

from tests.integration.models.openai.conftest import PRICE, Build, begin, config_of
from tests.support.asking import planned
from tests.support.fake_openai import CHAT, DECISIONS, IN_DOUBT, SPOILERS, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, text_example, texts, wrong
from tests.support.stored_answers import every_request
from twothirds.discovery.questions import Kind
from twothirds.flows.cli.store_check import check
from twothirds.models import CachedOracle, RunLedger
from twothirds.models.openai import OpenAIOracle
from twothirds.models.oracle import Answer, BudgetExhausted, Compare, OracleUnavailable, Overcharged, Question, Verdict
from twothirds.store import PROBE, Store

EXAMPLES = texts(12)
PASSING = ("429", "500", "503")
TIMEOUT = 0.4
PROBE_MOST = 1_350  # micro-dollars of one request of a probe: 1,000 tokens in and 2,000 out
ONE = labels(["cat"], EXAMPLES[:1])


def recorded(oracle: OpenAIOracle, store: Store, run: str = "run", budget: int | None = None) -> CachedOracle:
    begin(store, run)
    return CachedOracle(oracle, RunLedger(store, run, "scope", budget))


def questions(dice: random.Random, seed: int) -> list[Question]:
    examples = [text_example(f"{one.text} of {seed}") for one in EXAMPLES]  # no run knows another's answers
    asked: list[Question] = [*labels(WORDS[: dice.randint(1, 3)], examples[: dice.randint(1, 12)])]
    for _ in range(dice.randint(0, 3)):
        one, two, three = dice.sample(examples, 3)
        asked.append(Compare(Kind.TWO_OF_THREE, (one, two, three)))
    return list(dict.fromkeys(asked))


def one_run(store: Store, seed: int) -> None:
    """One command, started up to four times, with the cache folder kept or not."""
    dice = random.Random(seed)
    scope, budget, kept = f"scope {seed}", int(10 ** dice.uniform(3.2, 5.2)), dice.random() < 0.5
    config: dict[str, Any] = {
        "asks": dice.randint(1, 5),
        "attempts": dice.randint(1, 8),
        "concurrency": dice.randint(1, 6),
        "labels_per_request": dice.choice([1, 3, 20]),
        "grouping": dice.choice(["auto", "none"]),
        "timeout": 30.0,
        "retry_delay": 0.001,
    }
    kinds = dice.sample(sorted({*IN_DOUBT} - {"hang"}), 4) + dice.sample([*SPOILERS, *PASSING], 4)
    if dice.random() < 0.1:
        kinds, config["timeout"] = [*kinds, "hang"], TIMEOUT
    memory: dict[str, Any] = {}
    asked = questions(dice, seed)
    able = Abilities(decisions=dice.random() < 0.3, reasoning=dice.choice([0, 0, 300]))
    with FakeOpenAI(FakeModel(WORDS), able) as server:
        server.misbehave(dice.uniform(0.0, 0.7), sorted(kinds), seed)
        for attempt in range(dice.randint(1, 4)):
            memory, run_id = memory if kept else {}, f"{scope}, attempt {attempt}"
            begin(store, run_id, scope)
            with OpenAIOracle(config_of(server, **config), memory) as oracle:
                try:
                    answers = list(CachedOracle(oracle, RunLedger(store, run_id, scope, budget)).ask(asked))
                    assert wrong([one for one in answers if one.verdict in (Verdict.YES, Verdict.NO)]) == []
                except (BudgetExhausted, OracleUnavailable):
                    pass  # what was charged and booked until then counts
            booked, reserved = store.runs.spent(scope)
            assert reserved == 0, seed
            assert server.billed(PRICE) <= booked <= budget, (seed, attempt)


FEW, MANY = range(2), range(1_000, 1_200)


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
def test_random_runs_against_a_hostile_server_charge_no_more_than_is_booked(store: Store, seeds: range) -> None:
    for seed in seeds:
        one_run(store, seed)
    assert check(store).problems == []


@pytest.mark.parametrize("fault", [name for name in IN_DOUBT if name != "hang"])
def test_attempts_that_may_have_been_charged_are_booked_beside_the_one_that_succeeded(
    server: FakeOpenAI, store: Store, oracle_of: Build, fault: str
) -> None:
    oracle = oracle_of(retry_delay=0.001)
    server.processed.clear()
    server.script(CHAT, [fault, fault, None])
    [request] = planned(oracle, ONE)
    asking = recorded(oracle, store, budget=request.limit)
    [answer] = asking.ask(ONE)
    in_doubt = 2 * request.bound
    assert wrong([answer]) == []
    totals = store.costs.totals("run")
    assert (totals.paid, totals.unknown_calls, totals.unknown) == (answer.cost, 1, in_doubt)
    assert store.runs.spent("scope") == (answer.cost + in_doubt, 0)
    assert server.billed(PRICE) <= answer.cost + in_doubt <= request.limit
    assert (asking.ledger.cost, asking.ledger.in_doubt) == (answer.cost, in_doubt)
    assert check(store).problems == []


def test_no_more_attempts_are_made_than_the_limit_of_a_request_covers(
    server: FakeOpenAI, store: Store, oracle_of: Build
) -> None:
    oracle, before = oracle_of(retry_delay=0.001, asks=2, attempts=9), server.count(CHAT)
    server.script(CHAT, ["504"] * 9)
    [request] = planned(oracle, ONE)
    asking = recorded(oracle, store)
    with pytest.raises(OracleUnavailable, match="answers 504"):
        list(asking.ask(ONE))
    assert server.count(CHAT) - before == 2
    assert (store.runs.spent("scope"), asking.ledger.in_doubt) == ((request.limit, 0), request.limit)


def test_a_reply_that_is_no_json_object_is_asked_again_after_a_pause_and_never_kept(
    server: FakeOpenAI, store: Store, oracle_of: Build
) -> None:
    """Such as the page of a captive portal, which spoils every reply for a moment."""
    asking = recorded(oracle_of(retry_delay=0.1), store)
    server.script(CHAT, ["not JSON"] * 2)
    started = time.monotonic()
    answers = list(asking.ask(ONE))
    assert time.monotonic() - started >= 0.1 / 2 + 0.2 / 2
    assert wrong(answers) == []
    server.script(CHAT, ["not JSON"] * 9)
    with pytest.raises(OracleUnavailable, match="no JSON object"):
        list(asking.ask(labels(WORDS[2:3], EXAMPLES[:2])))
    assert store.requests.count() == len(answers), "nothing is recorded as unreadable"


# --- finding out what a server can do


def probing(server: FakeOpenAI, memory: dict[str, Any] | None = None) -> OpenAIOracle:
    return OpenAIOracle(config_of(server, attempts=2), memory)


def probes(store: Store) -> list[str]:
    """What became of the requests for finding out that may have been charged."""
    found = [request for request in every_request(store) if request.kind == PROBE]
    return ["in doubt" if request.in_doubt else "paid" for request in found]


def test_the_first_run_pays_for_the_probe_and_the_next_one_does_not(server: FakeOpenAI, store: Store) -> None:
    server.abilities, memory = Abilities(decisions=True), dict[str, Any]()
    costs = []
    for run in ("first", "second"):
        with probing(server, memory) as oracle:
            asking = recorded(oracle, store, run)
            assert len(list(asking.ask(ONE))) == 1
            costs.append(asking.ledger.cost)
    assert (server.count(CHAT), server.count(DECISIONS)) == (1, 1 + 1)
    assert costs == [server.spent(PRICE), 0]
    assert store.runs.spent("scope") == (server.spent(PRICE), 0)
    [line] = [line for line in store.costs.lines() if line.kind == PROBE]
    assert (line.run_id, line.oracle) == ("first", "openai:gpt-4o-mini")
    assert line.paid == server.spent(PRICE) - server.spent_on_questions(PRICE) > 0
    assert store.requests.count("scope") == 1, "it is no answer to a question"
    assert check(store).problems == []


def test_a_budget_that_even_the_probe_may_exceed_is_reported_before_anything_is_sent(
    server: FakeOpenAI, store: Store
) -> None:
    with probing(server) as oracle:
        with pytest.raises(BudgetExhausted, match="budget") as caught:
            list(recorded(oracle, store, "poor", PROBE_MOST - 1).ask(ONE))
        assert "\n" not in str(caught.value)
        assert server.requests == []
        assert len(list(recorded(oracle, store, "rich", 2 * PROBE_MOST).ask(ONE))) == 1


@pytest.mark.parametrize(("fault", "lost"), [("cut", 2), ("500", 0)])
def test_a_probe_that_fails_is_spent_where_it_may_have_been_charged(
    server: FakeOpenAI, store: Store, fault: str, lost: int
) -> None:
    server.script(CHAT, [fault] * 2)
    with probing(server) as oracle, pytest.raises(OracleUnavailable):
        list(recorded(oracle, store, "failing").ask(ONE))
    assert probes(store) == ["in doubt"] * bool(lost)
    assert store.runs.spent("scope") == (lost * PROBE_MOST, 0), "each attempt is a charge of its own"
    with probing(server) as oracle:
        list(recorded(oracle, store).ask(ONE))
    assert store.runs.spent("scope") == (server.spent(PRICE) + lost * PROBE_MOST, 0)
    assert check(store).problems == []


def test_probes_that_are_repeated_share_the_budget_of_the_run(server: FakeOpenAI, store: Store) -> None:
    """What the server can do is forgotten every time, as with a cache folder that is not kept."""
    server.abilities = Abilities(reasoning=1_500)  # a probe costs nearly what it may
    budget, refused = 15_000, 0
    for attempt in range(20):
        with probing(server) as oracle:
            try:
                asked = labels(["cat"], [text_example(f"a cat {attempt}")])
                list(recorded(oracle, store, f"attempt {attempt}", budget).ask(asked))
            except BudgetExhausted:
                refused += 1
        spent, reserved = store.runs.spent("scope")
        assert server.billed(PRICE) <= spent <= budget
        assert reserved == 0
    assert 0 < refused < 20
    assert check(store).problems == []


# --- charged above the bounds


IN_FLIGHT, TIMES = 16, 40
ASKED = labels(WORDS[:1], [text_example(f"{WORDS[number % 3]} {number}") for number in range(80)])
DEAR: dict[str, Any] = {"concurrency": IN_FLIGHT, "grouping": "none", "retry_delay": 0.001}


def test_after_the_first_reply_above_its_bound_only_what_was_in_flight_is_charged(
    server: FakeOpenAI, store: Store, oracle_of: Build
) -> None:
    server.abilities = Abilities(latency=0.05)
    oracle = oracle_of(**DEAR)
    before, charged_before = server.count(CHAT), server.billed(PRICE)
    server.abilities = replace(server.abilities, overcharge=TIMES)
    budget = sum(request.limit for request in planned(oracle, ASKED))
    with pytest.raises(Overcharged, match="run again"):
        list(recorded(oracle, store, "first", budget).ask(ASKED))
    sent, charged = server.count(CHAT) - before, server.billed(PRICE) - charged_before
    assert sent <= IN_FLIGHT
    spent, reserved = store.runs.spent("scope")
    assert (spent, reserved) == (charged, 0), "booked in full, and what was not sent is released"
    # A later run knows the ratio, and its budget holds although every reply costs as much again.
    more = spent + 40 * planned(oracle, ASKED)[-1].bound * 10
    with pytest.raises(BudgetExhausted):
        list(recorded(oracle, store, "again", more).ask(ASKED))
    assert server.count(CHAT) - before > sent, "it goes on"
    assert server.billed(PRICE) - charged_before <= store.runs.spent("scope")[0] <= more
    assert check(store).problems == []


def test_a_run_without_a_budget_goes_on_when_it_is_started_again(
    server: FakeOpenAI, store: Store, oracle_of: Build
) -> None:
    oracle, starts, answers = oracle_of(**DEAR), 0, list[Answer]()
    server.abilities = replace(server.abilities, overcharge=TIMES)
    while len(answers) < len(ASKED):
        starts += 1
        try:
            answers = list(recorded(oracle, store, f"run {starts}").ask(ASKED))
        except Overcharged:
            assert starts < 4, "bounds that were raised once or twice hold"
    assert wrong(answers) == []
    assert starts > 1


def test_an_unreadable_reply_above_its_bound_is_booked_in_full_and_not_repeated(
    server: FakeOpenAI, store: Store, oracle_of: Build
) -> None:
    oracle, before = oracle_of(**DEAR), server.count(CHAT)
    server.processed.clear()
    server.abilities = replace(server.abilities, overcharge=TIMES)
    server.script(CHAT, ["prose"])
    asking = recorded(oracle, store)
    for asked in (ASKED[:1], ASKED[1:2]):
        with pytest.raises(Overcharged):
            list(asking.ask(asked))
        assert server.count(CHAT) - before == 1
    assert store.runs.spent("scope") == (server.billed(PRICE), 0)
    assert check(store).problems == []
