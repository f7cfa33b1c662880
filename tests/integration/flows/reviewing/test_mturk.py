"""Mechanical Turk against botocore's Stubber: the real service model checks every request and reply."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from tests.integration.conftest import Clock
from tests.support.asking import ask as asked
from tests.support.made import texts
from twothirds.discovery.questions import Kind
from twothirds.flows.errors import UsageError
from twothirds.flows.reviewing.mturk import (
    PRODUCTION,
    HitTerms,
    Plan,
    claim_names,
    collect,
    plan_tasks,
    post_planned,
    publish,
)
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import AnswersPending, Compare, Feature, Label, Question
from twothirds.models.people.human import HumanOracle
from twothirds.store import Store
from twothirds.store.review.leases import LeaseTerms
from twothirds.store.review.mturk import Hit, unconfirmed

ADDRESS = "https://review.example.org"
HIT, WHEN = "3HIT", datetime(2026, 1, 1, tzinfo=UTC)
TERMS = HitTerms(Decimal("0.05"), Decimal("10"), PRODUCTION)
BOUND = 60_000  # five cents and Amazon's fifth


@pytest.fixture
def turk() -> Iterator[tuple[Any, Stubber]]:
    client = boto3.client(
        "mturk",
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        endpoint_url=PRODUCTION.endpoint,
    )
    with Stubber(client) as stub:
        yield client, stub
        stub.assert_no_pending_responses()


def enqueued(store: Store, questions: int = 5, votes: int = 2, budget: str | None = None) -> list[Question]:
    """A run that waits for labels, and one that waits for a comparison."""
    settings = {"budget": budget}
    store.runs.begin("run", "scope", name="faces", flow="discover", dataset="d", oracle="human", settings=settings)
    wanted: list[Question] = [Label(Feature("beard"), e, v) for e in texts(questions) for v in range(votes)]
    with pytest.raises(AnswersPending) as pending:
        list(asked(HumanOracle(store.queue), wanted))
    store.queue.waits.begin("run", pending.value.items)
    return wanted


def plan(store: Store, terms: HitTerms = TERMS) -> Plan:
    return plan_tasks(store, terms, queue=None, page_size=12)


def expect_created(stub: Stubber, hit_id: str = HIT) -> None:
    stub.add_response("list_hits", {"HITs": []}, {"MaxResults": 100})
    stub.add_response("create_hit", {"HIT": {"HITId": hit_id}}, expected_request())


def expected_request() -> dict[str, Any]:
    names = ("LifetimeInSeconds", "AssignmentDurationInSeconds", "Title", "Description", "Keywords", "Question")
    anything = dict.fromkeys((*names, "RequesterAnnotation", "UniqueRequestToken"), ANY)
    approved = {
        "QualificationTypeId": "000000000000000000L0",
        "Comparator": "GreaterThanOrEqualTo",
        "IntegerValues": [95],
        "ActionsGuarded": "DiscoverPreviewAndAccept",
    }
    return anything | {"MaxAssignments": 2, "Reward": "0.05", "QualificationRequirements": [approved]}


def posted(store: Store, turk: tuple[Any, Stubber]) -> Hit:
    expect_created(turk[1])
    assert publish(store, turk[0], plan(store), ADDRESS) == 1
    (hit,) = store.queue.mturk.hits()
    return hit


def work(store: Store, hit: Hit, worker: str, assignment: str) -> None:
    """What the page does when a worker answers."""
    name = f"mturk {worker}"
    who = store.queue.people.add(unconfirmed(name, assignment), is_worker=True).id
    shown = store.queue.mturk.lease_items(who, hit.items, name)
    store.queue.votes.give(who, {one.id: {"verdict": "yes"} for one in shown}, submission=assignment, held=True)


def assignment(name: str, worker: str, status: str = "Submitted") -> dict[str, Any]:
    return {"AssignmentId": name, "WorkerId": worker, "HITId": HIT, "AssignmentStatus": status}


def expect_listed(stub: Stubber, *found: dict[str, Any]) -> None:
    request = {"HITId": HIT, "AssignmentStatuses": ["Submitted", "Approved", "Rejected"], "MaxResults": 100}
    stub.add_response("list_assignments_for_hit", {"Assignments": list(found)}, request)


def expect_left(stub: Stubber, available: int = 0, pending: int = 0) -> None:
    task = {"HITId": HIT, "NumberOfAssignmentsAvailable": available, "NumberOfAssignmentsPending": pending}
    stub.add_response("get_hit", {"HIT": task}, {"HITId": HIT})


def expect_approved(stub: Stubber, *names: str) -> None:
    for name in names:
        stub.add_response("approve_assignment", {}, {"AssignmentId": name, "OverrideRejection": False})


def test_the_plan_says_what_it_costs_and_keeps_to_the_cap(store: Store) -> None:
    enqueued(store, questions=30)
    assert str(plan(store)) == (
        "production: 30 questions in 3 tasks, 6 assignments at 0.05 USD: at most 0.36 USD, fees included"
    )
    assert "nothing is paid" in str(plan(store, HitTerms(Decimal("0.05"), Decimal(10))))
    with pytest.raises(UsageError, match=r"0\.36 USD.*more than --cap 0\.35"):
        plan(store, HitTerms(Decimal("0.05"), Decimal("0.35"), PRODUCTION))
    many = HitTerms(Decimal("0.05"), Decimal(100), PRODUCTION, assignments=10)
    assert many.bound(10) == 70_000  # Amazon takes two fifths from ten assignments on


def test_each_comparison_is_a_task_of_its_own(store: Store) -> None:
    wanted: list[Question] = [Compare(Kind.TWO_OF_THREE, texts(5)[n : n + 3]) for n in range(3)]
    with pytest.raises(AnswersPending):
        list(asked(HumanOracle(store.queue), wanted))
    assert [len(items) for items, _ in plan(store).tasks] == [1, 1, 1]


def test_what_is_published_is_reserved_first_and_taken_from_the_page(store: Store, turk: tuple[Any, Stubber]) -> None:
    enqueued(store)
    ann = store.queue.people.add("ann").id
    hit = posted(store, turk)
    assert (hit.state, hit.hit_id, hit.run_id, len(hit.items)) == ("posted", HIT, "run", 5)
    assert store.runs.spent("scope") == (0, 2 * BOUND)
    assert store.queue.leases.next_page(ann, LeaseTerms()) == []
    assert plan(store).tasks == ()
    assert store.check.problems() == []


def test_workers_must_be_able_to_reach_the_page(store: Store, turk: tuple[Any, Stubber]) -> None:
    enqueued(store)
    with pytest.raises(UsageError, match="serve the page under an https address"):
        publish(store, turk[0], plan(store), "http://127.0.0.1:8765")


def test_what_was_handed_in_is_approved_booked_and_counted(store: Store, turk: tuple[Any, Stubber]) -> None:
    wanted = enqueued(store)
    hit = posted(store, turk)
    work(store, hit, "A1", "AS1")
    work(store, hit, "A2", "AS2")
    with pytest.raises(AnswersPending):  # held until Amazon confirms who handed in
        list(asked(HumanOracle(store.queue), wanted))
    expect_listed(turk[1], assignment("AS1", "A1"), assignment("AS2", "A2"))
    expect_approved(turk[1], "AS1", "AS2")
    expect_left(turk[1])
    result = collect(store, turk[0], "production")
    assert (result.approved, result.votes, result.paid) == (2, 10, 2 * BOUND)
    answers = list(asked(HumanOracle(store.queue), wanted))
    assert {answer.by for answer in answers} == {"mturk A1", "mturk A2"}
    assert sum(answer.cost for answer in answers) == 2 * BOUND
    assert store.runs.spent("scope") == (2 * BOUND, 0)
    (line,) = store.costs.lines("run")
    assert (line.oracle, line.kind, line.paid_calls, line.paid) == ("mturk:production", "assignment", 2, 2 * BOUND)
    assert store.check.problems() == []
    assert collect(store, turk[0], "production").lines() == [
        "0 assignments approved, 0 votes counted, 0.00 USD paid; 0 tasks still open"
    ]


def test_collecting_after_a_crash_books_nothing_twice(store: Store, turk: tuple[Any, Stubber]) -> None:
    enqueued(store)
    hit = posted(store, turk)
    work(store, hit, "A1", "AS1")
    for status in ("Submitted", "Approved", "Approved"):
        expect_listed(turk[1], assignment("AS1", "A1", status))
        if status == "Submitted":
            expect_approved(turk[1], "AS1")
        expect_left(turk[1], available=1)
        collect(store, turk[0], "production")
        assert store.runs.spent("scope") == (BOUND, BOUND)
    expect_listed(turk[1], assignment("AS1", "A1", "Approved"))
    expect_left(turk[1])  # its time is over and nobody else took it
    collect(store, turk[0], "production")
    assert store.runs.spent("scope") == (BOUND, 0)
    ann = store.queue.people.add("ann").id
    assert len(store.queue.leases.next_page(ann, LeaseTerms())) == 5, "what is missing is asked on the page again"


def test_an_assignment_without_answers_is_left_to_a_person(store: Store, turk: tuple[Any, Stubber]) -> None:
    enqueued(store)
    posted(store, turk)
    expect_listed(turk[1], assignment("AS1", "A1"))
    expect_left(turk[1], available=1)
    result = collect(store, turk[0], "production")
    assert result.lines()[1] == "assignment AS1 came without answers: judge it on Amazon's page"
    assert store.runs.spent("scope") == (0, 2 * BOUND)


def test_votes_of_a_rejected_assignment_do_not_count(store: Store, turk: tuple[Any, Stubber]) -> None:
    enqueued(store)
    hit = posted(store, turk)
    work(store, hit, "A1", "AS1")
    expect_listed(turk[1], assignment("AS1", "A1", "Rejected"))
    expect_left(turk[1], available=1)
    collect(store, turk[0], "production")
    assert store.queue.mturk.submitted(hit.token, "AS1", "mturk A1") == {"withdrawn": 5}


def test_what_was_planned_and_not_posted_is_posted_with_the_same_token(store: Store, turk: tuple[Any, Stubber]) -> None:
    enqueued(store)
    turk[1].add_response("list_hits", {"HITs": []}, {"MaxResults": 100})
    turk[1].add_client_error("create_hit", "ServiceFault", "try later", expected_params=expected_request())
    with pytest.raises(UsageError, match="try later"):
        publish(store, turk[0], plan(store), ADDRESS)
    (hit,) = store.queue.mturk.hits()
    assert hit.state == "planned"
    turk[1].add_response("list_hits", {"HITs": []}, {"MaxResults": 100})
    again = expected_request() | {"UniqueRequestToken": hit.token, "RequesterAnnotation": hit.token}
    turk[1].add_response("create_hit", {"HIT": {"HITId": HIT}}, again)
    assert post_planned(store, turk[0], "production") == 1
    assert store.runs.spent("scope") == (0, 2 * BOUND), "reserved once"


def test_after_a_day_what_is_there_is_found_before_anything_is_sent_again(
    store: Store, turk: tuple[Any, Stubber], clock: Clock
) -> None:
    enqueued(store)
    turk[1].add_response("list_hits", {"HITs": []}, {"MaxResults": 100})
    turk[1].add_client_error("create_hit", "RequestTimeout", "connection lost")
    with pytest.raises(UsageError, match="connection lost"):
        publish(store, turk[0], plan(store), ADDRESS)
    (hit,) = store.queue.mturk.hits()
    clock.now += 2 * 86_400
    first = {"HITs": [{"HITId": "3OTHER", "RequesterAnnotation": "another"}], "NextToken": "more"}
    turk[1].add_response("list_hits", first, {"MaxResults": 100})
    second = {"HITs": [{"HITId": HIT, "RequesterAnnotation": hit.token}]}
    turk[1].add_response("list_hits", second, {"MaxResults": 100, "NextToken": "more"})
    assert post_planned(store, turk[0], "production") == 1
    (hit,) = store.queue.mturk.hits()
    assert (hit.state, hit.hit_id) == ("posted", HIT)


def test_a_task_that_amazon_has_but_does_not_list_is_not_sent_again(store: Store, turk: tuple[Any, Stubber]) -> None:
    enqueued(store)
    turk[1].add_response("list_hits", {"HITs": []}, {"MaxResults": 100})
    turk[1].add_client_error("create_hit", "RequestError", "(AWS.MechanicalTurk.HITAlreadyExists)")
    turk[1].add_response("list_hits", {"HITs": [{"HITId": HIT, "RequesterAnnotation": "unknown"}]}, {"MaxResults": 100})
    with pytest.raises(UsageError, match="says that the task is there, but does not list it"):
        publish(store, turk[0], plan(store), ADDRESS)


def test_a_bonus_is_paid_once_with_a_token_and_booked(store: Store, turk: tuple[Any, Stubber]) -> None:
    enqueued(store)
    hit = posted(store, turk)
    work(store, hit, "A1", "AS1")
    bonus = {"WorkerId": "A1", "BonusAmount": "0.02", "AssignmentId": "AS1", "Reason": ANY, "UniqueRequestToken": ANY}
    for first in (True, False):
        expect_listed(turk[1], assignment("AS1", "A1", "Submitted" if first else "Approved"))
        if first:
            expect_approved(turk[1], "AS1")
            turk[1].add_response(
                "list_bonus_payments", {"BonusPayments": []}, {"AssignmentId": "AS1", "MaxResults": 100}
            )
            turk[1].add_response("send_bonus", {}, bonus)
        expect_left(turk[1], available=1)
        assert collect(store, turk[0], "production", bonus=Decimal("0.02")).bonuses == int(first)
    assert store.runs.spent("scope") == (BOUND + 24_000, BOUND)


def test_a_bonus_of_which_it_is_not_certain_is_looked_for_before_it_is_sent(
    store: Store, turk: tuple[Any, Stubber], clock: Clock
) -> None:
    enqueued(store)
    hit = posted(store, turk)
    work(store, hit, "A1", "AS1")
    expect_listed(turk[1], assignment("AS1", "A1"))
    expect_approved(turk[1], "AS1")
    turk[1].add_response("list_bonus_payments", {"BonusPayments": []}, {"AssignmentId": "AS1", "MaxResults": 100})
    turk[1].add_client_error("send_bonus", "RequestTimeout", "connection lost")
    with pytest.raises(UsageError, match="connection lost"):
        collect(store, turk[0], "production", bonus=Decimal("0.02"))
    clock.now += 2 * 86_400
    paid = {"BonusPayments": [{"WorkerId": "A1", "BonusAmount": "0.02", "AssignmentId": "AS1", "GrantTime": WHEN}]}
    expect_listed(turk[1], assignment("AS1", "A1", "Approved"))
    turk[1].add_response("list_bonus_payments", paid, {"AssignmentId": "AS1", "MaxResults": 100})
    expect_left(turk[1], available=1)
    assert collect(store, turk[0], "production", bonus=Decimal("0.02")).bonuses == 1
    assert claim_names(hit)


def test_what_was_paid_is_split_among_the_votes_to_the_micro_dollar_and_booked_once(
    store: Store, turk: tuple[Any, Stubber]
) -> None:
    wanted = enqueued(store, questions=7)
    hit = posted(store, turk)
    bonus, fee_included = Decimal("0.02"), 24_000
    total = 2 * (BOUND + fee_included)
    for name, worker in (("AS1", "A1"), ("AS2", "A2")):
        work(store, hit, worker, name)
    expect_listed(turk[1], assignment("AS1", "A1"), assignment("AS2", "A2"))
    for name in ("AS1", "AS2"):
        expect_approved(turk[1], name)
        turk[1].add_response("list_bonus_payments", {"BonusPayments": []}, {"AssignmentId": name, "MaxResults": 100})
        turk[1].add_response("send_bonus", {})
    expect_left(turk[1])
    collect(store, turk[0], "production", bonus=bonus)
    shares = [row["cost"] for row in store.queue.records.answers()]
    assert sorted(set(shares)) == [12_000]  # 84,000 among seven
    recorded = CachedOracle(HumanOracle(store.queue), RunLedger(store, "run", "scope"))
    answers = list(recorded.ask(wanted))
    assert sum(answer.cost for answer in answers) == recorded.ledger.cost == total
    assert store.runs.spent("scope") == (total, 0), "nothing is booked twice"
    assert sum(line.paid for line in store.costs.lines("run")) == total
    again = list(CachedOracle(HumanOracle(store.queue), RunLedger(store, "run", "scope")).ask(wanted))
    assert sum(answer.cost for answer in again) == total
    assert store.check.problems() == []


def test_a_remainder_falls_on_the_first_votes_and_counting_again_changes_nothing(store: Store) -> None:
    enqueued(store, questions=7)
    hit = Hit("token", "", tuple(item["id"] for item in store.queue.records.waiting()), {}, "run")
    store.queue.mturk.plan([hit])
    work(store, hit, "A1", "AS1")
    for counted in (7, 0):
        assert store.queue.mturk.confirm("token", "AS1", "mturk A1", BOUND) == counted
        assert [row["cost"] for row in store.queue.records.answers()] == [8572, 8572, 8572, 8571, 8571, 8571, 8571]
