"""A small budget buys as much for a dollar as a large one, and is never exceeded: a label reserves its share of the
request that it travels in, and every further request is reserved before it leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from tests.integration.conftest import Clock
from tests.integration.models.openai.conftest import PRICE, begin, config_of
from tests.support.asking import learn, planned
from tests.support.fake_openai import CHAT, IN_DOUBT, SPOILERS, BatchManners, Failings, FakeOpenAI, LifelikeServer
from tests.support.fake_openai.examples import WORDS, labels, text_example, texts, wrong
from tests.support.made import crowd_of, random_truth
from tests.support.slow import slow
from twothirds.discovery import Kind
from twothirds.flows.cli.store_check import check
from twothirds.models.cached import CachedOracle, Sending
from twothirds.models.crowd import Asks, Members, build_crowd
from twothirds.models.ledger import RunLedger
from twothirds.models.openai import OpenAIOracle
from twothirds.models.oracle import (
    Answer,
    AnswersPending,
    BudgetExhausted,
    Compare,
    Feature,
    Label,
    Oracle,
    OracleUnavailable,
    Question,
    Verdict,
)
from twothirds.sources import Dataset, load_dataset
from twothirds.store import Store
from twothirds.store.requests import end_open_requests

NO_FAULTS = Failings(prose=0.0, too_many=0.0, broken=0.0, slow=0.0)
FAULTS = Failings(prose=0.15, too_many=0.05, broken=0.1, slow=0.0)
SCOPE = "scope"


@pytest.fixture(scope="module")
def faces() -> Dataset:
    return load_dataset("datasets/faces")


@pytest.fixture(scope="module")
def zoo() -> Dataset:
    return load_dataset("datasets/zoo")


def rows(dataset: Dataset, features: int, examples: int, votes: int = 1) -> list[Label]:
    """Example by example, as a panel asks."""
    assert dataset.truth is not None
    named = [Feature(name, f"{name} is clearly present.") for name in dataset.truth.columns[:features]]
    return [
        Label(one, example, voter) for example in dataset.examples[:examples] for one in named for voter in range(votes)
    ]


class Bench:
    """Runs with budgets on one store, each in a scope of its own that knows no other's answers."""

    def __init__(self, server: FakeOpenAI, store: Store, **changes: Any) -> None:
        self.server, self.store = server, store
        self.config = config_of(server, **{"retry_delay": 0.001} | changes)
        self.memory: dict[str, Any] = {}
        self.runs = 0
        with self.oracle() as oracle:
            learn(oracle)
        server.processed.clear()  # what it took to find out about the server

    def oracle(self, **changes: Any) -> OpenAIOracle:
        return OpenAIOracle(replace(self.config, **changes), self.memory)

    def ledger(self, budget: int | None, scope: str = SCOPE) -> RunLedger:
        self.runs += 1
        begin(self.store, f"run {self.runs}", scope)
        return RunLedger(self.store, f"run {self.runs}", scope, budget)

    def recorded(self, oracle: Oracle, budget: int | None, scope: str = SCOPE) -> CachedOracle:
        return CachedOracle(oracle, self.ledger(budget, scope))

    def bought(self, asked: Sequence[Question], budget: int | None, scope: str = SCOPE, **changes: Any) -> list[Answer]:
        """The answers until the budget is used up; it is not exceeded, by the server's own book."""
        before = self.charged
        with self.oracle(**changes) as oracle:
            got = bought(self.recorded(oracle, budget, scope), asked)
        spent, reserved = self.store.runs.spent(scope)
        assert reserved == 0
        assert self.charged - before <= spent
        assert budget is None or spent <= budget
        assert check(self.store).problems == []
        return got

    @property
    def charged(self) -> int:
        return self.server.billed(PRICE)

    def bound(self, asked: Sequence[Question], **changes: Any) -> int:
        with self.oracle(**changes) as oracle:
            return sum(request.bound for request in planned(oracle, asked))


def bought(recorded: Asks, asked: Sequence[Question]) -> list[Answer]:
    got: list[Answer] = []
    with suppress(BudgetExhausted):
        got.extend(recorded.ask(asked))
    return got


@pytest.fixture
def bench(server: FakeOpenAI, store: Store) -> Bench:
    return Bench(server, store)


@pytest.fixture
def lifelike(store: Store) -> Iterator[Callable[[Dataset, Failings], Bench]]:
    running: list[LifelikeServer] = []

    def start(dataset: Dataset, habits: Failings) -> Bench:
        running.append(LifelikeServer(dataset, habits, price=PRICE, seed=1).__enter__())
        return Bench(running[-1], store)

    yield start
    for one in running:
        one.__exit__(None, None, None)


@pytest.mark.parametrize("store_url", ["sqlite", *slow("postgresql")], indirect=True)
@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_a_budget_of_a_few_requests_buys_as_many_labels_for_a_dollar_as_a_large_one(
    lifelike: Callable[[Dataset, Failings], Bench], faces: Dataset, zoo: Dataset, kind: str
) -> None:
    dataset, asked = (faces, rows(faces, 40, 40)) if kind == "pictures" else (zoo, rows(zoo, 12, 101, votes=3))
    bench = lifelike(dataset, NO_FAULTS)
    assert len(bench.bought(asked, None)) == len(asked)
    whole, requests = bench.charged, len(bench.server.processed)
    for budget in (2, 5, 20):
        before = bench.charged
        got = bench.bought(asked, round(whole / requests * budget), f"{budget}", served_by=f"server of {budget}")
        per_dollar = len(got) / (bench.charged - before)
        share = 0.7 if budget == 2 else 0.8  # the last request may be smaller than the others
        assert per_dollar >= share * len(asked) / whole
        assert len(got) >= (0.5 if budget == 2 else 0.75) * len(asked) * budget / requests  # of the budget


def test_less_than_a_whole_request_buys_the_picture_with_as_many_features_as_fit(
    lifelike: Callable[[Dataset, Failings], Bench], faces: Dataset
) -> None:
    bench, asked = lifelike(faces, NO_FAULTS), rows(faces, 40, 2)
    alone, whole = bench.bound(asked[:1]), bench.bound(asked[:40])
    assert bench.bought(asked, alone // 2) == []
    got = bench.bought(asked, (alone + whole) // 2)
    assert 0 < len(got) < 40
    assert len({one.question.example.id for one in got if isinstance(one.question, Label)}) == 1
    assert len(bench.server.processed) == 1
    assert len(bench.bought(asked, None)) == len(asked)


@pytest.mark.parametrize("seed", [0, *slow(1, 2, 3)])
def test_a_budget_holds_whatever_the_server_does(
    lifelike: Callable[[Dataset, Failings], Bench], faces: Dataset, seed: int
) -> None:
    """With replies that are prose, cut, torn or never come, at every budget from one request up."""
    bench = lifelike(faces, FAULTS)
    asked: list[Question] = [*rows(faces, 25, 8), *comparisons(faces)]
    bench.server.misbehave(0.3, [*(set(IN_DOUBT) - {"hang"}), *SPOILERS, "429", "500"], seed)
    one = bench.bound(asked[:25])
    for budget in (one, 3 * one, 9 * one, 30 * one, None):
        before = bench.charged
        try:
            bench.bought(asked, budget, f"scope {budget}", served_by=f"server of {budget}", attempts=4)
        except OracleUnavailable:
            spent, reserved = bench.store.runs.spent(f"scope {budget}")
            assert (spent <= (budget or spent), reserved) == (True, 0)
        spent = bench.store.runs.spent(f"scope {budget}")[0]
        assert bench.charged - before <= spent
    assert bench.charged <= sum(
        bench.store.runs.spent(f"scope {at}")[0] for at in (one, 3 * one, 9 * one, 30 * one, None)
    )


def comparisons(dataset: Dataset) -> list[Compare]:
    one, two, three, four = dataset.examples[:4]
    return [Compare(Kind.TWO_OF_THREE, (one, two, three)), Compare(Kind.TWO_OF_THREE, (two, three, four))]


def test_what_the_budget_does_not_cover_to_the_end_is_booked_and_not_kept_as_unreadable(bench: Bench) -> None:
    asked = labels(WORDS, texts(3))
    most = bench.bound(asked)
    bench.server.script(CHAT, ["prose"])
    few = bench.bought(asked, most)  # by a smaller request, with what is left
    assert (len(few) < len(asked), wrong(few)) == (True, [])
    assert bench.store.requests.count() == len(few)
    assert bench.store.runs.spent(SCOPE) == (bench.charged, 0)
    answers = bench.bought(asked, 3 * most)
    assert (len(answers), wrong(answers)) == (len(asked), [])
    assert bench.store.runs.spent(SCOPE) == (bench.charged, 0)


def test_a_reply_that_lacks_some_labels_is_asked_for_them_only_if_the_budget_allows_it(bench: Bench) -> None:
    asked = labels(WORDS, texts(3))
    bench.server.script(CHAT, ["half the labels"])
    few = bench.bought(asked, bench.bound(asked))
    assert 0 < len(few) < len(asked)
    assert wrong(few) == []
    rest = bench.bought(asked, None)
    assert (len(rest), wrong(rest)) == (len(asked), [])


def test_runs_that_share_a_budget_do_not_exceed_it_together(bench: Bench) -> None:
    asked = [labels(WORDS, [one], voter) for one in texts(12) for voter in range(2)]
    budget = 8 * max(map(bench.bound, asked))
    bench.server.misbehave(0.2, ["prose", "half the labels", "504"], seed=3)
    parts = [[label for group in asked[place::3] for label in group] for place in range(3)]
    got: list[list[Answer]] = []
    with bench.oracle() as oracle:
        books = [bench.recorded(oracle, budget) for _ in parts]
        work = [
            threading.Thread(target=lambda of=book, part=part: got.append(bought(of, part)))
            for book, part in zip(books, parts, strict=True)
        ]
        for one in work:
            one.start()
        for one in work:
            one.join()
    spent, reserved = bench.store.runs.spent(SCOPE)
    assert (bench.charged <= spent <= budget, reserved, len(got)) == (True, 0, 3)
    assert sum(map(len, got)) > 0
    assert check(bench.store).problems == []


def test_a_killed_run_leaves_the_bound_of_what_it_really_sent(bench: Bench) -> None:
    asked = labels(WORDS, texts(3))
    most = bench.bound(asked)
    with bench.oracle() as oracle, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sending, "_give_up", lambda _: None)
        bench.server.script(CHAT, ["504"] * 9)
        assert bought(bench.recorded(oracle, most), asked) == []
    with bench.store.engine.execution_options(writes=True).begin() as connection:
        end_open_requests(connection, Clock().now)
    assert bench.charged <= most == bench.store.runs.spent(SCOPE)[0]
    assert check(bench.store).problems == []
    bench.server._scripts.clear()
    answers = bench.bought(asked, 2 * most)
    assert (len(answers), wrong(answers)) == (len(asked), [])


def test_a_batch_takes_what_the_budget_covers_and_what_it_spoils_waits_for_more(bench: Bench) -> None:
    asked = [label for one in texts(12) for label in labels(WORDS, [one])]
    quick: dict[str, Any] = {"provider_batch": True, "batch_poll": 0.01, "batch_wait": 10.0, "labels_per_request": 5}
    most = bench.bound(asked, **quick)
    answers = bench.bought(asked, most // 4, **quick)
    assert len(asked) // 4 < len(answers) < len(asked)
    assert wrong(answers) == []
    bench.server.batches.manners = BatchManners(polls=1000)
    with pytest.raises(AnswersPending):
        bench.bought(asked, most, **quick | {"batch_wait": 0.02})
    bench.server.batches.finish()
    spent, _ = bench.store.runs.spent(SCOPE)
    assert bench.server.spent_on_questions(PRICE) <= spent <= most
    assert wrong(bench.bought(asked, most, **quick)) == []
    assert bench.store.runs.spent(SCOPE) == (bench.server.spent_on_questions(PRICE), 0)


@pytest.mark.parametrize("share", [0.0, 0.5], ids=["below what is spent", "half of what is left"])
def test_a_lowered_budget_is_kept_from_the_next_request_on(bench: Bench, share: float) -> None:
    asked = labels(WORDS, [text_example(f"{WORDS[number % 3]} {number}") for number in range(30)])
    most, in_flight = bench.bound(asked), 3
    with bench.oracle(grouping="none", concurrency=in_flight, asks=1) as oracle:
        recorded = bench.recorded(oracle, None)
        recorded.ledger.set_budget(most)
        answers = recorded.ask(asked)
        assert len(list(islice(answers, 5))) == 5
        spent = bench.store.runs.spent(SCOPE)[0]
        allowed = spent + int(share * (most - spent))
        recorded.ledger.set_budget(allowed)
        sent = bench.server.count(CHAT)
        with pytest.raises(BudgetExhausted, match="is used up"):
            list(answers)
    spent, reserved = bench.store.runs.spent(SCOPE)
    assert (bench.charged, reserved) == (spent, 0)
    if share:
        assert 0.8 * allowed < spent <= allowed, "what is left is used"
    else:
        assert bench.server.count(CHAT) - sent <= in_flight
    assert check(bench.store).problems == []


def test_no_more_is_kept_for_a_comparison_than_one_request_costs(bench: Bench) -> None:
    one, two, three = texts(16)[13:]
    asked = [Compare(Kind.TWO_OF_THREE, (one, two, three))]
    [answer] = bench.bought(asked, bench.bound(asked))
    assert answer.verdict not in (Verdict.UNREADABLE, Verdict.REFUSED)


def test_the_labeller_of_a_mixed_crowd_buys_whole_requests_too(bench: Bench) -> None:
    asked = [label for example in texts(8) for label in labels(WORDS, [example])]
    budget = bench.bound(asked[:15])
    with bench.oracle(grouping="example") as oracle:
        members = Members(crowd_of(random_truth(8, 3)), oracle)
        got = bought(build_crowd(members, bench.ledger(budget)), asked)
    assert len(got) >= 10
    assert wrong(got) == []
    assert bench.charged == bench.store.runs.spent(SCOPE)[0] <= budget
