"""A provider's batch lives on when the run that sent it has ended: it stays booked until it is collected, it is always
collected, and it is booked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.integration.conftest import Clock
from tests.integration.models.openai.conftest import PRICE
from tests.integration.models.openai.test_small_budgets import Bench
from tests.support.fake_openai import BATCHES, BatchManners, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from tests.support.made import crowd_of, random_truth
from twothirds.models.cached import Sending
from twothirds.models.crowd import Members, build_crowd
from twothirds.models.oracle import Answer, AnswersPending, BudgetExhausted, Label, OracleUnavailable, Overcharged
from twothirds.store import Store
from twothirds.store.requests import end_open_requests

QUESTIONS = labels(WORDS, texts(16))


class BatchBench(Bench):
    """Runs that ask by batches, each with an oracle of its own; no batch ends before it is told to."""

    def __init__(self, server: FakeOpenAI, store: Store) -> None:
        quick = {"provider_batch": True, "batch_poll": 0.01, "batch_wait": 0.02, "labels_per_request": 4}
        super().__init__(server, store, retry_delay=0.01, attempts=2, **quick)
        server.batches.manners = BatchManners(polls=1000)

    def ask(
        self, questions: Sequence[Label] = QUESTIONS, budget: int | None = None, scope: str = "scope", **changes: Any
    ) -> list[Answer]:
        with self.oracle(**changes) as oracle:
            return list(self.recorded(oracle, budget, scope).ask(questions))

    def books(self) -> tuple[int, int]:
        """Spent in the scope, and what `costs` comes to. Nothing is reserved, and the check finds nothing."""
        assert self.store.check.problems() == []
        spent, reserved = self.store.runs.spent("scope")
        assert reserved == 0
        lines = self.store.costs.lines()
        return spent, sum(line.paid + line.unknown for line in lines)

    @property
    def charged(self) -> int:
        return self.server.spent_on_questions(PRICE)


@pytest.fixture
def bench(server: FakeOpenAI, store: Store) -> BatchBench:
    return BatchBench(server, store)


def is_collected(bench: BatchBench, answers: Sequence[Answer]) -> None:
    assert wrong(answers) == []
    assert len(answers) == len(QUESTIONS)
    assert len(bench.server.batches.made) == 1
    assert bench.books() == (bench.charged, bench.charged)


def test_questions_that_no_batch_holds_wait_for_a_larger_budget_those_of_the_batch_do_not(
    bench: BatchBench,
) -> None:
    with pytest.raises(AnswersPending):
        bench.ask(QUESTIONS[40:], budget=bench.bound(QUESTIONS))
    bench.server.batches.finish()
    got: list[Answer] = []
    with bench.oracle(batch_questions=8) as oracle, pytest.raises(BudgetExhausted):
        got.extend(bench.recorded(oracle, budget=1).ask(QUESTIONS))
    assert len(bench.store.requests.answers([bench.recorded(oracle, 1).keys.of(one) for one in QUESTIONS])) == 40
    assert bench.books() == (bench.charged, bench.charged)


def test_a_batch_that_still_runs_stays_booked_however_often_it_is_looked_at(bench: BatchBench) -> None:
    running = r"batch_\d+ at 127.0.0.1:\d+ is still running.*run the same command again"
    for budget in (None, 1, 1):
        with pytest.raises(AnswersPending, match=running):
            bench.ask(budget=budget)
        assert bench.books() == (bench.bound(QUESTIONS), bench.bound(QUESTIONS))
    bench.server.batches.finish()
    is_collected(bench, bench.ask(budget=1))


def test_a_batch_stays_booked_while_its_server_is_away(bench: BatchBench) -> None:
    bench.server.script(BATCHES, [None, None, "503", "503", "503"])  # listed and created, then it is away
    with pytest.raises(OracleUnavailable):
        bench.ask()
    bench.server.batches.finish()
    assert 0 < bench.charged <= bench.books()[0]
    is_collected(bench, bench.ask(budget=1))


@pytest.mark.parametrize("created", [True, False])
def test_a_run_killed_around_the_creation_of_its_batch_pays_for_it_once(bench: BatchBench, created: bool) -> None:
    """Its claims are left as they are, and ended as those of a process that has died."""
    create = bench.server.batches._create
    if not created:
        bench.server.batches._create = lambda _body: (_ for _ in ()).throw(ConnectionError)  # type: ignore[assignment, method-assign]
    with bench.oracle() as oracle, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sending, "_give_up", lambda _: None)
        with pytest.raises((AnswersPending, OracleUnavailable)):
            list(bench.recorded(oracle, bench.bound(QUESTIONS)).ask(QUESTIONS))
    bench.server.batches._create = create  # type: ignore[method-assign]
    with bench.store.engine.execution_options(writes=True).begin() as connection:
        end_open_requests(connection, Clock().now)
    bench.server.batches.finish()
    assert bench.charged <= bench.books()[0] == bench.bound(QUESTIONS)
    assert bool(bench.charged) is created
    bench.server.batches.manners = BatchManners()
    is_collected(bench, bench.ask(budget=1, batch_wait=10))


@pytest.mark.parametrize("ends", ["failed", "expired", "cancelled"])
def test_a_batch_that_ends_badly_settles_what_it_did_not_charge(bench: BatchBench, ends: str) -> None:
    with pytest.raises(AnswersPending):
        bench.ask()
    bench.server.batches.made[0].manners = BatchManners(expired=0.0 if ends == "failed" else 0.5, seed=3)
    bench.server.batches.finish(ends)
    if ends == "failed":
        bench.server.book.clear()  # one that failed is not charged
        bench.server.batches.manners = BatchManners(ends="failed")
        with pytest.raises(
            OracleUnavailable, match=r"rejected batch .*without provider_batch"
        ):  # sent again, with the money of the first one
            bench.ask(budget=1)
        assert bench.books() == (0, 0)
        with pytest.raises(BudgetExhausted):
            bench.ask(budget=1)
        return
    assert 0 < bench.charged < bench.books()[0]
    with pytest.raises(AnswersPending):  # the rest is in another batch, with the money of the first one
        bench.ask(budget=1)
    assert len(bench.server.batches.made) == 2
    bench.server.batches.finish()
    assert bench.charged <= bench.books()[0] <= bench.bound(QUESTIONS)
    assert wrong(bench.ask(budget=1)) == []
    assert bench.books() == (bench.charged, bench.charged)


def test_another_scope_that_collects_the_batch_pays_for_it_within_its_own_budget(bench: BatchBench) -> None:
    with pytest.raises(AnswersPending):
        bench.ask()
    bench.server.batches.finish()
    with pytest.raises(BudgetExhausted):
        bench.ask(budget=1, scope="another")
    assert bench.books() == (bench.bound(QUESTIONS), bench.bound(QUESTIONS))
    assert wrong(bench.ask(scope="another")) == []
    assert bench.books() == (0, bench.charged)
    assert bench.store.runs.spent("another") == (bench.charged, 0)
    assert [answer.cached for answer in bench.ask()] == [True] * len(QUESTIONS)


def test_a_labeller_of_a_mixed_crowd_that_answers_by_batches_is_collected_too(bench: BatchBench) -> None:
    crowd = crowd_of(random_truth(16, 3))
    with bench.oracle() as oracle, pytest.raises(AnswersPending):
        list(build_crowd(Members(crowd, oracle), bench.ledger(None)).ask(QUESTIONS))
    bench.server.batches.finish()
    assert 0 < bench.charged <= bench.books()[0]
    with bench.oracle() as oracle:
        is_collected(bench, list(build_crowd(Members(crowd, oracle), bench.ledger(1)).ask(QUESTIONS)))


def test_after_a_batch_that_was_charged_above_its_bound_no_further_one_is_sent(bench: BatchBench) -> None:
    bench.server.abilities = replace(bench.server.abilities, overcharge=40)
    with pytest.raises(AnswersPending):
        bench.ask(QUESTIONS[:24], budget=10**6)
    bench.server.batches.finish()
    with bench.oracle() as oracle:
        recorded = bench.recorded(oracle, 10**6)
        for asked in (QUESTIONS[:24], QUESTIONS):
            with pytest.raises(Overcharged, match="look at the provider's bill"):
                list(recorded.ask(asked))
        assert bench.store.requests.count() == 24
    assert len(bench.server.batches.made) == 1
    assert bench.books() == (bench.charged, bench.charged)
    with pytest.raises(AnswersPending):
        bench.ask(QUESTIONS, budget=10**6)
    assert len(bench.server.batches.made) == 2
    booked, _ = bench.books()
    bench.server.batches.finish()
    assert len(bench.ask(QUESTIONS, budget=10**6)) == len(QUESTIONS)
    assert bench.books() == (bench.charged, bench.charged)
    assert bench.charged <= booked
