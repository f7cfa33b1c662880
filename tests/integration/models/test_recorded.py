"""A cached oracle on a real store: nothing is paid twice, no budget is exceeded, nothing that came is lost."""

from __future__ import annotations

import multiprocessing
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.support.asking import CheckedMeter
from tests.support.made import crowd_of, random_truth, texts
from tests.support.stored_answers import every_request
from twothirds.models.cached import CachedOracle, Sending
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import (
    AnswersPending,
    BudgetExhausted,
    Feature,
    Label,
    Meter,
    Money,
    OracleUnavailable,
    Question,
    Reply,
    Request,
    Verdict,
    in_requests,
)
from twothirds.models.people.simulated import SimulatedOracle
from twothirds.store import Reply as StoredReply
from twothirds.store import Store
from twothirds.store.requests import Requests
from twothirds.store.schema import SENT

TRUTH = random_truth(50, 6)
PRICE = 10_000
SCOPE = "the same run"


def labels(n: int, voters: int = 1) -> list[Label]:
    return [Label(Feature("feature a"), example, v) for example in texts(50)[:n] for v in range(voters)]


def recorded(oracle: SimulatedOracle, store: Store, *, budget: Money | None = None, scope: str = SCOPE) -> CachedOracle:
    run_id = uuid.uuid4().hex
    store.runs.begin(run_id, scope, name="t", flow="test", dataset="d", oracle="o", settings={})
    return CachedOracle(oracle, RunLedger(store, run_id, scope, budget=budget))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


def test_what_is_known_is_not_asked_again(store: Store) -> None:
    first = recorded(crowd_of(TRUTH, price=PRICE), store)
    answers = {a.question: a.verdict for a in first.ask(labels(20))}
    again = recorded(crowd_of(TRUTH, price=PRICE), store)
    repeated = list(again.ask(labels(25)))
    assert {a.question: a.verdict for a in repeated if a.question in answers} == answers
    assert (first.ledger.paid_calls, first.ledger.cached_calls, first.ledger.cost) == (20, 0, 20 * PRICE)
    assert (again.ledger.paid_calls, again.ledger.cached_calls, again.ledger.cost) == (5, 20, 5 * PRICE)


def test_a_question_given_twice_is_paid_once_and_answered_twice(store: Store) -> None:
    oracle = recorded(crowd_of(TRUTH, price=PRICE), store)
    answers = list(oracle.ask(labels(3) + labels(3)))
    assert len(answers) == 6
    assert (oracle.ledger.paid_calls, oracle.ledger.cached_calls) == (3, 3)


def test_another_voter_crowd_or_seed_is_another_question(store: Store) -> None:
    for oracle in (crowd_of(TRUTH), crowd_of(TRUTH, seed=1), crowd_of(TRUTH, flip=0.1), crowd_of(1 - TRUTH)):
        assert all(not answer.cached for answer in recorded(oracle, store).ask(labels(4, voters=2)))


def test_a_budget_is_never_exceeded_at_32_calls_at_once_and_can_be_raised(store: Store) -> None:
    oracle = crowd_of(TRUTH, price=PRICE, latency=0.002, width=32)
    questions = labels(50, voters=5)
    limited = recorded(oracle, store, budget=100 * PRICE + PRICE // 2)
    with pytest.raises(BudgetExhausted, match="raise --budget"):
        list(limited.ask(questions))
    assert limited.ledger.paid_calls == 100
    assert store.runs.spent(SCOPE) == (100 * PRICE, 0)
    more = recorded(oracle, store, budget=120 * PRICE)
    with pytest.raises(BudgetExhausted):
        list(more.ask(questions))
    assert (more.ledger.paid_calls, more.ledger.cached_calls) == (20, 100)
    assert recorded(oracle, store, scope="another run", budget=PRICE).ledger.budget == PRICE


class Cautious(SimulatedOracle):
    """Its upper bound is three times what it costs in the end."""

    def plan(self, questions: Sequence[Question]) -> Iterator[Request]:
        return in_requests(questions, 3 * PRICE, 1)


def test_what_was_reserved_but_not_spent_buys_more_answers(store: Store) -> None:
    oracle = Cautious(
        texts(50), TRUTH, [f"feature {c}" for c in "abcdef"], behaviour=crowd_of(TRUTH, price=PRICE).behaviour
    )
    limited = recorded(oracle, store, budget=10 * PRICE)
    with pytest.raises(BudgetExhausted):
        list(limited.ask(labels(50)))
    assert limited.ledger.paid_calls == 8  # the ninth might cost three
    assert store.runs.spent(SCOPE) == (8 * PRICE, 0)


class Failing(SimulatedOracle):
    """Goes away after ten answers."""

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
        for count, reply in enumerate(super().send(requests, meter)):
            if count == 10:
                yield Reply(reply.request)
                raise OracleUnavailable("gone")
            yield reply


def test_what_came_before_a_failure_is_kept(store: Store) -> None:
    oracle = Failing(
        texts(50), TRUTH, [f"feature {c}" for c in "abcdef"], behaviour=crowd_of(TRUTH, price=PRICE).behaviour
    )
    failing = recorded(oracle, store)
    with pytest.raises(OracleUnavailable, match="gone"):
        list(failing.ask(labels(50)))
    healthy = recorded(crowd_of(TRUTH, price=PRICE), store)
    list(healthy.ask(labels(50)))
    assert (healthy.ledger.paid_calls, healthy.ledger.cached_calls) == (40, 10)
    assert not store.check.problems()


class Slow(SimulatedOracle):
    """Takes all questions and answers the first ten; the rest comes another day."""

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:  # noqa: ARG002 (nothing leaves)
        yield from list(super().send(requests, CheckedMeter()))[:10]
        raise AnswersPending("40 answers are yet to come: run the same command again")


def test_what_is_pending_holds_no_money_until_it_is_collected(store: Store) -> None:
    columns, behaviour = [f"feature {c}" for c in "abcdef"], crowd_of(TRUTH, price=PRICE).behaviour
    with pytest.raises(AnswersPending):
        list(recorded(Slow(texts(50), TRUTH, columns, behaviour=behaviour), store).ask(labels(50)))
    assert store.runs.spent(SCOPE) == (10 * PRICE, 0)
    collecting = recorded(crowd_of(TRUTH, price=PRICE), store, budget=50 * PRICE)
    assert len(list(collecting.ask(labels(50)))) == 50
    assert store.runs.spent(SCOPE) == (50 * PRICE, 0)
    assert not store.check.problems()


@pytest.fixture
def _in_no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is under way is waited for however slow the machine is."""
    monkeypatch.setattr("twothirds.models.cached.DRAIN_SECONDS", 120.0)


@pytest.mark.usefixtures("_in_no_hurry")
def test_stopping_early_keeps_what_was_under_way_and_frees_the_rest(store: Store) -> None:
    oracle = recorded(crowd_of(TRUTH, price=PRICE, latency=0.005, width=4), store)
    asking = oracle.ask(labels(50))
    next(asking)
    del asking  # closes it
    spent, reserved = store.runs.spent(SCOPE)
    assert reserved == 0
    assert 0 < spent < 50 * PRICE
    again = recorded(crowd_of(TRUTH, price=PRICE), store)
    list(again.ask(labels(50)))
    assert again.ledger.cached_calls * PRICE == spent


class Interruption:
    """Raised once, between two steps of the thread that collects and commits: after so many calls and returns there. A
    generator that yields does not return: what is raised there by a profiler would leave it without its end."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        steps = ("_collect", "_commit") if event == "return" else ("run", "_collect", "_commit")
        if code.co_filename == Sending.run.__code__.co_filename and code.co_name in steps:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


@pytest.mark.usefixtures("_in_no_hurry")
def test_no_answer_is_lost_whenever_an_interruption_comes(tmp_path: Path) -> None:
    ended, after = False, 0
    while not ended:
        after += 1
        with Store.open(str(tmp_path / f"{after}.sqlite")) as store:
            oracle, interruption = recorded(crowd_of(TRUTH, price=PRICE), store), Interruption(after)
            sys.setprofile(interruption)
            try:
                list(oracle.ask(labels(12)))
            except KeyboardInterrupt:
                pass
            finally:
                sys.setprofile(None)
            ended = interruption.left > 0
            answers = store.requests.count()
            assert sum(line.unknown_calls for line in store.costs.lines()) == 0, f"interrupted after {after} steps"
            assert store.runs.spent(SCOPE) == (answers * PRICE, 0), f"interrupted after {after} steps"
    assert after > 20


def test_what_is_in_doubt_stays_bounded_while_answers_wait_to_be_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    width, keep, in_doubt = 4, Requests.record, []

    def slowly(kept: Requests, run_id: str, replies: Sequence[StoredReply]) -> dict[str, dict[str, Any]]:
        time.sleep(0.05)
        sent = [one for one in every_request(store) if one.state == SENT]
        in_doubt.append(sum(one.questions - one.answered for one in sent))
        return keep(kept, run_id, replies)

    monkeypatch.setattr(Requests, "record", slowly)
    oracle = recorded(crowd_of(TRUTH, price=PRICE, latency=0.001, width=width), store)
    assert len(list(oracle.ask(labels(50, voters=4)))) == 200
    assert max(in_doubt) <= 5 * width


def test_a_refusal_is_an_answer_that_is_kept_and_booked(store: Store) -> None:
    oracle = recorded(crowd_of(TRUTH, price=PRICE, refuse=1.0), store)
    assert {a.verdict for a in oracle.ask(labels(5))} == {Verdict.REFUSED}
    assert oracle.ledger.cost == 5 * PRICE
    assert all(a.cached for a in recorded(crowd_of(TRUTH, refuse=1.0), store).ask(labels(5)))


def _ask_all(url: str, out: multiprocessing.Queue[tuple[int, int]]) -> None:
    with Store.open(url) as opened:
        oracle = recorded(crowd_of(TRUTH, price=PRICE, latency=0.003, width=8), opened)
        assert len(list(oracle.ask(labels(50, voters=4)))) == 200
        out.put((oracle.ledger.paid_calls, oracle.ledger.cached_calls))


def test_two_processes_pay_for_each_question_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    context = multiprocessing.get_context("spawn")
    counts: multiprocessing.Queue[tuple[int, int]] = context.Queue()
    workers = [context.Process(target=_ask_all, args=(url, counts)) for _ in range(2)]
    for worker in workers:
        worker.start()
    paid, cached = zip(*(counts.get(timeout=500) for _ in workers), strict=True)
    for worker in workers:
        worker.join()
    assert sum(paid) == 200
    assert sum(cached) == 200
    with Store.open(url) as opened:
        assert opened.runs.spent(SCOPE) == (200 * PRICE, 0)
