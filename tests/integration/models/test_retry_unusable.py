"""Refused and unreadable answers are asked again on request: replaced, with both replies and both charges kept."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Clock
from tests.support.asking import CheckedMeter, Scripted, planned
from tests.support.fake_openai import LABELS, FakeOpenAI
from tests.support.fake_openai.examples import labels as word_labels
from tests.support.fake_openai.examples import texts as word_texts
from tests.support.made import crowd_of, random_truth, texts
from tests.support.stored_answers import dropped_answers
from twothirds.flows.cli.store_check import check
from twothirds.flows.run_context import retry_time
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.openai import OpenAIConfig, OpenAIOracle
from twothirds.models.oracle import Answer, BudgetExhausted, Feature, Label, Money, Question, Verdict
from twothirds.models.people.simulated import SimulatedOracle
from twothirds.store import Store, back_up, restore

TRUTH = random_truth(50, 6)
PRICE = 10_000
SCOPE = "the same run"


class Moody(SimulatedOracle):
    """Answers every third question with the verdict that is set, if one is."""

    mood: Verdict | None = Verdict.UNREADABLE
    asked = 0

    def _answer(self, question: Question) -> Answer:
        self.asked += 1
        spoiled = self.mood is not None and int(question.content["example"][:4], 16) % 3 == 0
        if spoiled and self.mood is not None:
            return Answer(question, self.mood, "moody", cost=PRICE, raw="<html>")
        return super()._answer(question)


@pytest.fixture
def moody() -> Moody:
    plain = crowd_of(TRUTH, price=PRICE)
    return Moody(texts(50), TRUTH, [f"feature {c}" for c in "abcdef"], behaviour=plain.behaviour)


QUESTIONS = [Label(Feature("feature a"), example) for example in texts(50)[:30]]
SPOILED = sum(int(question.content["example"][:4], 16) % 3 == 0 for question in QUESTIONS)


def begun(store: Store, *, on_request: bool = False, run_id: str = "") -> tuple[str, float]:
    run_id = run_id or uuid.uuid4().hex
    settings = {"retry_unusable": on_request}
    store.runs.begin(run_id, SCOPE, name="t", flow="test", dataset="d", oracle="o", settings=settings)
    return run_id, retry_time(store, run_id, [SCOPE], on_request=on_request)


def ask(store: Store, oracle: Any, *, retry: bool = True, budget: Money | None = None, end: str = "done") -> RunLedger:
    run_id, since = begun(store, on_request=retry)
    ledger = RunLedger(store, run_id, SCOPE, budget=budget, retry_unusable=since if retry else None)
    try:
        answers = list(CachedOracle(oracle, ledger).ask(QUESTIONS))
        assert len(answers) == 30
    finally:
        if end:
            store.runs.end(run_id, end, {})
    return ledger


def verdicts(store: Store, oracle: Any) -> set[str]:
    keys = CachedOracle(oracle, RunLedger(store, begun(store)[0], SCOPE)).keys
    return {kept["verdict"] for kept in store.requests.answers([keys.of(question) for question in QUESTIONS]).values()}


@pytest.mark.parametrize("mood", [Verdict.UNREADABLE, Verdict.REFUSED])
def test_what_was_unusable_is_asked_again_and_both_replies_and_charges_stay(
    store: Store, clock: Clock, moody: Moody, mood: Verdict
) -> None:
    assert SPOILED > 5
    moody.mood = mood
    assert ask(store, moody, retry=False).paid_calls == 30
    moody.mood = None
    clock.now += 10
    assert ask(store, moody, retry=False).paid_calls == 0  # nobody asked for it
    clock.now += 10
    again = ask(store, moody)
    assert (again.paid_calls, again.cached_calls, again.cost) == (SPOILED, 30 - SPOILED, SPOILED * PRICE)
    assert verdicts(store, moody) <= {"yes", "no"}
    dropped = [(answer["verdict"], answer["raw"], answer["cost"]) for answer in dropped_answers(store)]
    assert dropped == [(mood.value, "<html>", PRICE)] * SPOILED
    assert store.runs.spent(SCOPE) == ((30 + SPOILED) * PRICE, 0)
    assert sum(line.paid for line in store.costs.lines()) == (30 + SPOILED) * PRICE
    assert store.requests.count() == 30
    assert check(store).problems == []
    clock.now += 10
    assert ask(store, moody).paid_calls == 0  # all are usable by now


def test_what_is_unusable_again_replaces_too_and_a_resumed_run_does_not_pay_for_it(
    store: Store, clock: Clock, moody: Moody
) -> None:
    ask(store, moody, retry=False)
    clock.now += 10
    killed = ask(store, moody, end="")  # its entry still says that it is running
    assert killed.paid_calls == SPOILED
    clock.now += 10
    resumed = ask(store, moody, end="failed")
    assert (resumed.paid_calls, resumed.cached_calls) == (0, 30)
    clock.now += 10
    assert ask(store, moody).paid_calls == 0  # resumes both
    clock.now += 10
    assert ask(store, moody).paid_calls == SPOILED  # a new request
    assert len(dropped_answers(store)) == 2 * SPOILED
    assert check(store).problems == []


def test_a_request_does_not_resume_a_run_that_was_not_on_request(store: Store, clock: Clock, moody: Moody) -> None:
    ask(store, moody, retry=False, end="failed")
    clock.now += 10
    assert ask(store, moody).paid_calls == SPOILED


def test_a_budget_holds_for_what_is_asked_again(store: Store, clock: Clock, moody: Moody) -> None:
    ask(store, moody, retry=False)
    clock.now += 10
    with pytest.raises(BudgetExhausted):
        ask(store, moody, budget=33 * PRICE, end="stopped: budget")
    assert store.runs.spent(SCOPE) == (33 * PRICE, 0)
    clock.now += 10
    assert ask(store, moody, budget=100 * PRICE).paid_calls == SPOILED - 3
    assert check(store).problems == []


def test_two_at_once_ask_again_once(store: Store, clock: Clock, moody: Moody) -> None:
    ask(store, moody, retry=False)
    clock.now += 10
    first, second = begun(store, on_request=True), begun(store, on_request=True)
    moody.asked = 0
    books = [
        CachedOracle(moody, RunLedger(store, run_id, SCOPE, retry_unusable=since)) for run_id, since in (first, second)
    ]
    threads = [threading.Thread(target=lambda book=book: list(book.ask(QUESTIONS))) for book in books]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert moody.asked == SPOILED
    assert sum(book.ledger.paid_calls for book in books) == SPOILED
    assert check(store).problems == []


def test_a_late_answer_of_the_first_time_does_not_replace_the_second(store: Store, clock: Clock, moody: Moody) -> None:
    """A record whose acknowledgement was lost is written once more: it changes nothing."""
    ask(store, moody, retry=False)
    clock.now += 10
    run_id, since = begun(store, on_request=True)
    record = store.requests.record

    def twice(run_id: str, replies: Any) -> Any:
        record(run_id, replies)
        clock.now += 1
        return record(run_id, replies)

    store.requests.record = twice  # type: ignore[method-assign]
    moody.mood = None
    answers = list(CachedOracle(moody, RunLedger(store, run_id, SCOPE, retry_unusable=since)).ask(QUESTIONS))
    assert {answer.verdict for answer in answers} <= {Verdict.YES, Verdict.NO}
    assert len(dropped_answers(store)) == SPOILED
    assert check(store).problems == []


def test_replaced_answers_are_in_backups(store: Store, clock: Clock, moody: Moody, tmp_path: Path) -> None:
    ask(store, moody, retry=False)
    clock.now += 10
    ask(store, moody)
    back_up(store, tmp_path / "copy.sqlite", lambda *_: None)
    restore(tmp_path / "copy.sqlite", f"sqlite:///{tmp_path / 'restored.sqlite'}", lambda *_: None)
    with Store.open(str(tmp_path / "restored.sqlite")) as other:
        assert dropped_answers(other) == dropped_answers(store)
        assert check(other).problems == []


def test_what_people_have_given_up_stays_given_up(store: Store, clock: Clock) -> None:
    class Unwilling(Scripted):
        def answer(self, question: Question) -> Answer:
            return Answer(question, Verdict.REFUSED, "nobody")

    people = Unwilling("people", profile="people")
    ask(store, people, retry=False)
    clock.now += 10
    assert ask(store, people).paid_calls == 0
    assert len(people.questions) == 30


def test_an_answer_of_an_earlier_batch_is_not_collected_once_more(server: FakeOpenAI) -> None:
    """Not even for a question that was refused alone, whose reply the provider still has."""
    questions = word_labels(["cat"], word_texts(4))
    terms: dict[str, Any] = {"provider_batch": True, "batch_poll": 0.01, "labels_per_request": 1, "asks": 1}
    config = OpenAIConfig("gpt-4o-mini", server.base_url, **terms)
    server.batches.manners.spoiled, server.batches.manners.spoilers = 1.0, ("refusal",)
    with OpenAIOracle(config) as oracle:
        list(oracle.send(planned(oracle, questions)[:1], CheckedMeter()))  # the probe

        def verdicts_of(since: float = 0.0) -> set[Verdict]:
            requests = [replace(request, since=since) for request in planned(oracle, questions)]
            replies = list(oracle.send(requests, CheckedMeter()))
            return {answer.verdict for reply in replies for answer in reply.answers.values()}

        assert verdicts_of() == {Verdict.REFUSED}
        server.batches.manners.spoiled = 0.0
        assert verdicts_of() == {Verdict.REFUSED}  # collected, not sent
        assert verdicts_of(since=time.time() + 120) <= {Verdict.YES, Verdict.NO}
        verdicts_of(since=time.time())  # as a run does that goes on
    assert len(server.batches.made) == 2
    assert server.count(LABELS) == 0
