"""Collect work done on Mechanical Turk: approve it, pay, book, and only then count the votes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from flows.reviewing.mturk.publish import OWNER, BudgetRefusal, TurkClient, claim_keys, explained, post_planned
from flows.settings import micro, micro_of
from models import in_usd
from store import AnswerRecord, Request, Store
from store.review import Hit

SUBMITTED, APPROVED, REJECTED = "Submitted", "Approved", "Rejected"
BONUS_FEE = Decimal("1.2")


@dataclass
class Collected:
    approved: int = 0
    paid: int = 0  # micro-dollars
    votes: int = 0
    bonuses: int = 0
    waiting: int = 0  # tasks that people may still take
    empty: list[str] | None = None  # assignments submitted without an answer: to be judged by a person
    refused: str = ""  # why a task that was planned is not posted

    def lines(self) -> list[str]:
        lines = [
            f"{self.approved} assignments approved, {self.votes} votes counted, {in_usd(self.paid, 2)} paid"
            + (f", {self.bonuses} bonuses" if self.bonuses else "")
            + f"; {self.waiting} tasks still open"
        ]
        lines += [f"a planned task was given up, its questions are on the page: {self.refused}"] * bool(self.refused)
        return lines + [
            f"assignment {name} came without answers: judge it on Amazon's page" for name in self.empty or ()
        ]


def collect(store: Store, client: TurkClient, market: str, *, bonus: Decimal | None = None) -> Collected:
    """Approve and book what was submitted, count its votes, and release what was not taken.

    Idempotent, also after a crash: what was approved is found as approved, and what was booked is not booked twice."""
    result = Collected(empty=[])
    try:
        post_planned(store, client, market)
    except BudgetRefusal as refusal:
        result.refused = str(refusal)
    for hit in store.queue.mturk.hits():
        if hit.state == "posted" and hit.terms["market"] == market:
            _collect_hit(store, client, hit, result, bonus)
    return result


def _collect_hit(store: Store, client: TurkClient, hit: Hit, result: Collected, bonus: Decimal | None) -> None:
    booked = _booked(store, hit)
    open_ones = 0
    for assignment in _assignments(client, hit):
        name, status = assignment["AssignmentId"], assignment["AssignmentStatus"]
        worker = f"mturk {assignment['WorkerId']}"
        if status == REJECTED:
            store.queue.mturk.refuse(hit.token, name)
            continue
        if status == SUBMITTED and not store.queue.mturk.submitted(hit.token, name, worker):
            open_ones += 1
            result.empty = [*(result.empty or []), name]
            continue
        if status == SUBMITTED:
            _call(client.approve_assignment, AssignmentId=name, OverrideRejection=False)
            result.approved += 1
        if name not in booked:
            _book(store, hit, assignment, sorted(set(claim_keys(hit)) - set(booked.values())))
            booked = _booked(store, hit)
            result.paid += hit.terms["bound"]
        if bonus is not None:
            result.bonuses += _pay_bonus(store, client, hit, assignment, bonus)
        paid = hit.terms["bound"] + _bonus_paid(store, name)
        result.votes += store.queue.mturk.confirm(hit.token, name, worker, paid)
    task = _call(client.get_hit, HITId=hit.hit_id)["HIT"]
    left = task["NumberOfAssignmentsAvailable"] + task["NumberOfAssignmentsPending"] + open_ones
    if left:
        result.waiting += 1
        return
    store.claims.release(OWNER, set(claim_keys(hit)) - set(booked.values()))
    store.queue.mturk.set_state(hit.token, "collected")


def _assignments(client: TurkClient, hit: Hit) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    while True:
        page = _call(
            client.list_assignments_for_hit,
            HITId=hit.hit_id,
            AssignmentStatuses=[SUBMITTED, APPROVED, REJECTED],
            MaxResults=100,
            **more,
        )
        found += page["Assignments"]
        if not page.get("NextToken"):
            return found
        more = {"NextToken": page["NextToken"]}


def _booked(store: Store, hit: Hit) -> dict[str, str]:
    """Assignments that are in the books, with the claim under which they are."""
    kept = store.answers.lookup(claim_keys(hit))
    return {answer["assignment"]: key for key, answer in kept.items()}


def _book(store: Store, hit: Hit, assignment: dict[str, Any], free: list[str]) -> None:
    _record(store, hit, free[0], assignment, hit.terms["bound"])


def _record(store: Store, hit: Hit, key: str, assignment: dict[str, Any], cost: int) -> None:
    market = hit.terms["market"]
    paid = {"assignment": assignment["AssignmentId"], "worker": assignment["WorkerId"], "hit": hit.hit_id, "paid": cost}
    record = AnswerRecord(
        key=key,
        fence=store.claims.last_fence(key),
        oracle=f"mturk:{market}",
        kind="assignment",
        question={"questions": list(hit.items)},
        answer=paid,
        cost=cost,
        requests=1,
        identity={"kind": "mturk", "model": market},
    )
    store.answers.record(hit.run_id, [record])


def _bonus_key(assignment: str) -> str:
    return f"mturk/bonus/{assignment}"


def _bonus_paid(store: Store, assignment: str) -> int:
    kept = store.answers.lookup([_bonus_key(assignment)])
    return sum(int(answer.get("paid", 0)) for answer in kept.values())


def _pay_bonus(store: Store, client: TurkClient, hit: Hit, assignment: dict[str, Any], bonus: Decimal) -> int:
    """One bonus per assignment, however often it is asked for: reserved first, sent with a token, and looked for among
    those that were paid when it is not certain whether it was."""
    name = assignment["AssignmentId"]
    key = _bonus_key(name)
    if store.answers.lookup([key]):
        return 0
    cost = micro(bonus * BONUS_FEE) if hit.terms["market"] == "production" else 0
    run = next(row for row in store.runs.overview() if row["run_id"] == hit.run_id)
    budget = run["settings"].get("budget")
    asked = [Request(key, cost, f"mturk:{hit.terms['market']}", "bonus")]
    limit = None if budget is None else micro_of(budget)
    claimed = store.claims.claim(hit.run_id, run["scope"], asked, owner=OWNER, lease_seconds=3600, budget=limit)
    if claimed.refused:
        return 0
    store.claims.mark_sent(OWNER, [key])
    paid = _call(client.list_bonus_payments, AssignmentId=name, MaxResults=100)["BonusPayments"]
    if not paid:
        _call(
            client.send_bonus,
            WorkerId=assignment["WorkerId"],
            BonusAmount=f"{bonus:.2f}",
            AssignmentId=name,
            Reason="Thank you for careful answers.",
            UniqueRequestToken=hashlib.sha256(key.encode()).hexdigest(),
        )
    _record(store, hit, key, assignment, cost)
    return 1


def _call(method: Any, **request: Any) -> dict[str, Any]:
    try:
        reply: dict[str, Any] = method(**request)
        return reply
    except Exception as error:
        raise explained(error) from None
