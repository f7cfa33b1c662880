"""People behind the same seam as every other oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conftest import Clock
from tests.support.asking import ask
from tests.support.made import texts
from tests.support.people import TruthfulPerson, at_work
from twothirds.discovery.questions import Kind
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.oracles import build_oracle
from twothirds.flows.reviewing import waiting
from twothirds.flows.settings import Environment
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import (
    Answer,
    AnswersPending,
    BudgetExhausted,
    Compare,
    Feature,
    Label,
    OracleError,
    Question,
    Verdict,
)
from twothirds.models.people.human import HumanOracle, HumanTerms
from twothirds.sources.load import load_dataset
from twothirds.store import Store
from twothirds.store.review.leases import LeaseTerms

BEARD = Feature("beard", "hair on the chin")
TRIPLE = Compare(Kind.TWO_OF_THREE, texts(3))


def asked(oracle: HumanOracle | CachedOracle, questions: list[Question]) -> tuple[list[Answer], AnswersPending | None]:
    answers: list[Answer] = []
    try:
        said = oracle.ask(questions) if isinstance(oracle, CachedOracle) else ask(oracle, questions)
        answers.extend(said)
    except AnswersPending as pending:
        return answers, pending
    return answers, None


def recorded(store: Store, oracle: HumanOracle, budget: int | None = None) -> CachedOracle:
    store.runs.begin("run", "scope", name="n", flow="f", dataset="d", oracle="human", settings={})
    return CachedOracle(oracle, RunLedger(store, "run", "scope", budget=budget))


def votes(n: int, count: int) -> list[Question]:
    return [Label(BEARD, example, voter) for example in texts(n) for voter in range(count)]


def test_what_is_unknown_waits_in_the_queue_and_what_is_answered_comes_out(store: Store) -> None:
    oracle = HumanOracle(store.queue)
    answers, pending = asked(oracle, votes(17, 3))
    assert answers == []
    assert str(pending) == "17 questions wait for 3 votes each: run `twothirds review`"
    assert pending is not None
    assert len(pending.items) == 17
    ann = store.queue.people.add("ann").id
    shown = store.queue.leases.next_page(ann, LeaseTerms(page_size=5))
    store.queue.votes.give(ann, {one.id: {"verdict": "yes"} for one in shown})
    answers, pending = asked(oracle, votes(17, 3))
    assert [(answer.verdict, answer.by, answer.question.voter) for answer in answers] == [(Verdict.YES, "ann", 0)] * 5
    assert str(pending).startswith("17 questions wait for 2 to 3 votes each")


def test_a_comparison_carries_name_definition_and_the_examples_meant(store: Store) -> None:
    oracle = HumanOracle(store.queue)
    asked(oracle, [TRIPLE])
    ann = store.queue.people.add("ann").id
    (shown,) = store.queue.leases.next_page(ann, LeaseTerms())
    said = {"verdict": "feature", "name": "beard", "definition": "hair on the chin", "shown": [0, 2]}
    store.queue.votes.give(ann, {shown.id: said})
    ((answer,), pending) = asked(oracle, [TRIPLE])
    assert pending is None
    assert (answer.feature, answer.shown, answer.by) == (BEARD, (0, 2), "ann")


def test_what_nobody_will_answer_is_refused_and_not_waited_for(store: Store, clock: Clock) -> None:
    oracle = HumanOracle(store.queue, terms=HumanTerms(deadline=2), clock=clock)
    asked(oracle, [TRIPLE])
    clock.now += 3 * 3600
    ((answer,), pending) = asked(oracle, [TRIPLE])
    assert pending is None
    assert answer.verdict is Verdict.REFUSED
    assert "deadline" in answer.note


def test_people_are_booked_once_and_nothing_stays_reserved_while_they_think(store: Store) -> None:
    oracle = HumanOracle(store.queue, terms=HumanTerms(price=50_000))
    ledger = recorded(store, oracle, budget=1_000_000)
    for _ in range(3):
        asked(ledger, votes(4, 1))
        assert store.runs.spent("scope") == (0, 0)
    ann = store.queue.people.add("ann").id
    shown = store.queue.leases.next_page(ann, LeaseTerms())
    store.queue.votes.give(ann, {one.id: {"verdict": "no"} for one in shown})
    for _ in range(2):
        answers, pending = asked(ledger, votes(4, 1))
        assert len(answers) == 4
        assert pending is None
        assert store.runs.spent("scope") == (200_000, 0)
    assert store.check.problems() == []


def test_no_more_is_asked_than_the_budget_allows(store: Store) -> None:
    ledger = recorded(store, HumanOracle(store.queue, terms=HumanTerms(hourly=30_000_000)), budget=3_000_000)
    _, pending = asked(ledger, votes(10, 1))
    assert pending is not None
    assert len(pending.items) == 3  # at most two minutes each
    ann = store.queue.people.add("ann").id
    store.queue.votes.give(ann, {one.id: {"verdict": "no"} for one in store.queue.leases.next_page(ann, LeaseTerms())})
    store.queue.votes.withdraw(ann)  # and none of it is paid for twice
    tight = recorded(store, HumanOracle(store.queue, terms=HumanTerms(price=1)), budget=0)
    with pytest.raises(BudgetExhausted, match=r"raise --budget"):
        list(tight.ask(votes(10, 1)))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("human?price=much", "price='much' is not a sum in USD"),
        ("human?hourly=-3", "must not be negative"),
        ("human?hourly=1e11", "hourly='1e11' is too large: give at most 1,000,000 USD"),
        ("simulated?price=1e12", "price='1e12' is too large: give a sum below 1,000,000,000,000 USD"),
        ("simulated?price=1e999999999", "is too large"),
        ("openai:m?price=1e12,1e12", "at most 1,000,000 USD per million tokens can be counted"),
        ("human?wage=3", "unknown parameter 'wage': choose among deadline, priority, about, avoid, skips"),
        ("human?skips=0", "skips must be at least 1"),
    ],
)
def test_terms_that_make_no_sense_are_refused_in_one_line(store: Store, spec: str, problem: str) -> None:
    faces = load_dataset("datasets/zoo")
    with pytest.raises(OracleError, match=problem):
        build_oracle(spec, faces, 0, Environment.read(), store)


def test_a_discovery_waits_for_people_and_goes_on_when_they_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "REGRET_SECONDS", 0.0)
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.02)
    settings = DiscoverSettings(
        dataset="datasets/zoo",
        oracle="human:animals",
        queries=3,
        votes=3,
        wait=True,
        store=str(tmp_path / "store.sqlite"),
        out=str(tmp_path / "run"),
    )
    prepared = prepare(settings)
    queue = prepared.store.queue
    people = [TruthfulPerson(queue, name, prepared.dataset) for name in ("ann", "bob", "cyd")]
    with at_work(*people):
        outcome = run_discovery(prepared, run_id="first")
    assert len(outcome.progress.findings) == 3
    truth = outcome.summary().truth
    assert truth is not None
    assert truth.mean_balanced_accuracy == 1.0
    again = run_discovery(prepare(settings), run_id="second")  # nobody is at work
    assert again.crowd.ledger.paid_calls == 0
    assert again.features() == outcome.features()


def test_what_is_withdrawn_is_asked_again_by_the_next_run(tmp_path: Path) -> None:
    settings = DiscoverSettings(
        dataset="datasets/zoo", oracle="human", queries=1, store=str(tmp_path / "s.sqlite"), out=str(tmp_path / "run")
    )

    def run_until_done(name: str) -> int:
        """How often it had to wait for that person."""
        waits = 0
        while True:
            prepared = prepare(settings)
            person = TruthfulPerson(prepared.store.queue, name, prepared.dataset)
            try:
                run_discovery(prepared, run_id=f"{name} {waits}")
                return waits
            except AnswersPending:
                waits += 1
                while person.answer_page():
                    pass

    assert run_until_done("ann") == 2
    store = prepare(settings).store
    ann = store.queue.people.find("ann")
    assert ann is not None
    assert store.queue.votes.withdraw(ann.id).answers == 102
    assert run_until_done("bob") == 2, "the comparison first, then labels of the feature that is named again"
    by = {row["by"]: row["state"] for row in store.queue.records.answers()}
    assert by == {"ann": "withdrawn", "bob": "given"}
    assert store.check.problems() == []
