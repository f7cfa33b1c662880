"""Waiting questions become tasks on Mechanical Turk. What is about to be posted is written down and reserved first."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from flows.errors import UsageError
from flows.reviewing.mturk.terms import HitTerms, external_question
from flows.settings import micro, micro_of
from models import Money, in_usd
from store import Claimed, Request, Store, new_owner
from store.review import COLLECTED, PLANNED, POSTED, Hit
from studio.review import SECRET, TASK, Signer

OWNER = "mturk"  # of what is posted. Not a process: tasks outlive the one that posted them
POSTING_SECONDS = 900.0  # outlasts the requests of a task
DAY = 86_400.0
ALREADY_THERE = "HITAlreadyExists"


class TurkClient(Protocol):
    """The part of boto3's client that is used."""

    def create_hit(self, **request: Any) -> dict[str, Any]: ...
    def get_hit(self, **request: Any) -> dict[str, Any]: ...
    def list_hits(self, **request: Any) -> dict[str, Any]: ...
    def list_assignments_for_hit(self, **request: Any) -> dict[str, Any]: ...
    def approve_assignment(self, **request: Any) -> dict[str, Any]: ...
    def send_bonus(self, **request: Any) -> dict[str, Any]: ...
    def list_bonus_payments(self, **request: Any) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Plan:
    """Tasks that could be posted, each with its questions and how many people it needs."""

    terms: HitTerms
    tasks: tuple[tuple[tuple[int, ...], int], ...]

    @property
    def assignments(self) -> int:
        return sum(people for _, people in self.tasks)

    @property
    def cost(self) -> Money:
        return sum(people * self.terms.bound(people) for _, people in self.tasks)

    def __str__(self) -> str:
        questions = sum(len(items) for items, _ in self.tasks)
        price = (
            f"at most {in_usd(self.cost, 2, at_most=True)}, fees included"
            if self.terms.market.pays
            else "nothing is paid"
        )
        return (
            f"{self.terms.market.name}: {questions} questions in {len(self.tasks)} tasks, {self.assignments} "
            f"assignments at {self.terms.reward:.2f} USD: {price}"
        )


def plan_tasks(store: Store, terms: HitTerms, *, queue: str | None, page_size: int) -> Plan:
    """Labels of one feature go together, as many as a page holds; a comparison is a task of its own."""
    together: dict[tuple[str, int], list[int]] = {}
    for item in store.queue.records.waiting(queue):
        missing = item["votes"] - item["filled"]
        if missing > 0 and not item["published"]:
            together.setdefault((item["page"] or item["digest"], missing), []).append(item["id"])
    tasks = [
        (tuple(items[start : start + page_size]), min(terms.assignments or missing, missing))
        for (_, missing), items in together.items()
        for start in range(0, len(items), page_size)
    ]
    plan = Plan(terms, tuple(tasks))
    if plan.cost > micro(terms.cap):
        raise UsageError(f"{plan}, which is more than --cap {terms.cap}: raise it, or ask fewer questions")
    return plan


class BudgetRefusal(UsageError):
    """A task was not posted, for the budget of its run does not allow it."""


def publish(store: Store, client: TurkClient, plan: Plan, address: str) -> int:
    """Reserve, write down, post; how many tasks were posted. Killed at any point, it is taken up by `post_planned`.

    Until a task is posted this process owns what is reserved for it: once it has died that is free again."""
    if not address.startswith("https://"):
        raise UsageError(f"workers cannot reach {address}: serve the page under an https address, given as --base-url")
    hits = [
        Hit(uuid.uuid4().hex, "", items, _terms(plan.terms, people, address), _run_for(store, items, plan.terms))
        for items, people in plan.tasks
    ]
    owner = new_owner()
    try:
        for hit in hits:
            _reserve(store, hit, owner)
        store.queue.mturk.plan(hits)
    except BaseException:
        store.claims.release(owner, [key for hit in hits for key in claim_keys(hit)])
        raise
    return post_planned(store, client, plan.terms.market.name, owner)


def _terms(terms: HitTerms, people: int, address: str) -> dict[str, Any]:
    return {"market": terms.market.name, "people": people, "bound": terms.bound(people), "address": address} | {
        "request": terms.request("", "", people)
    }


def _run_for(store: Store, items: Sequence[int], terms: HitTerms) -> str:
    """The run that waits for the questions: its books show what they cost, and its budget holds."""
    run_id = store.queue.waits.run_of(items)
    if run_id is None:
        run_id = f"mturk {items[0]}"
        store.runs.begin(
            run_id, run_id, name="mturk", flow="review", dataset="", oracle=f"mturk:{terms.market.name}", settings={}
        )
    return run_id


def claim_keys(hit: Hit) -> list[str]:
    """One claim per assignment: what it may cost is reserved until it is paid, or the task expires."""
    return [f"mturk/{hit.token}/{number}" for number in range(hit.terms["people"])]


def _reserve(store: Store, hit: Hit, owner: str) -> None:
    """What is reserved already stays so. Raises BudgetRefusal."""
    run = next(row for row in store.runs.overview() if row["run_id"] == hit.run_id)
    budget = run["settings"].get("budget")
    limit = None if budget is None else micro_of(budget)
    claimed = _claim(store, hit, run["scope"], owner, POSTING_SECONDS, limit)
    if claimed.refused:
        store.claims.release(owner, claimed.granted)
        raise BudgetRefusal(
            f"the budget of {budget} USD of run {run['name']} does not allow it: raise --budget and run it"
        )


def _claim(store: Store, hit: Hit, scope: str, owner: str, lease: float, budget: Money | None) -> Claimed:
    market, bound = hit.terms["market"], hit.terms["bound"]
    requests = [Request(key, bound, f"mturk:{market}", "assignment") for key in claim_keys(hit)]
    return store.claims.claim(hit.run_id, scope, requests, owner=owner, lease_seconds=lease, budget=budget)


def post_planned(store: Store, client: TurkClient, market: str, owner: str = "") -> int:
    """Post what was written down for this market and not yet posted; how many. What is found among those that are there
    is not sent again: a token protects against doubles for a day only. What a budget does not allow any more goes back
    to the page; then BudgetRefusal is raised once all others are posted."""
    planned = [hit for hit in store.queue.mturk.hits() if hit.state == PLANNED and hit.terms["market"] == market]
    there = _listed(client) if planned else {}
    owner, refused, posted = owner or new_owner(), list[BudgetRefusal](), 0
    for hit in planned:
        found = there.get(hit.token)
        try:
            found = found or _post(store, client, hit, owner)
        except BudgetRefusal as refusal:
            refused.append(refusal)
            store.queue.mturk.set_state(hit.token, COLLECTED)
            continue
        _keep_reserved(store, hit, owner)
        store.queue.mturk.set_state(hit.token, POSTED, found)
        posted += 1
    if refused:
        raise refused[0]
    return posted


def _post(store: Store, client: TurkClient, hit: Hit, owner: str) -> str:
    """Noted as a batch is: after a kill it stays spent until it is known whether the task is there."""
    signer, keys = Signer(store.queue.people.secret(SECRET)), claim_keys(hit)
    _reserve(store, hit, owner)
    store.claims.note_batch(owner, keys, f"mturk {hit.token}")
    try:
        return _create(client, hit, f"{hit.terms['address']}/task/{signer.sign(hit.token, TASK)}")
    except NotPosted:
        store.claims.note_batch(owner, keys, None)
        raise
    finally:  # if it is not known to be not posted, it stays spent
        store.claims.release(owner, keys)


def _keep_reserved(store: Store, hit: Hit, owner: str) -> None:
    """Of a task that is there, as long as assignments may come: it outlives every process."""
    keys = claim_keys(hit)
    scope = next(row["scope"] for row in store.runs.overview() if row["run_id"] == hit.run_id)
    store.claims.release(owner, keys)
    _claim(store, hit, scope, OWNER, hit.terms["request"]["LifetimeInSeconds"] + 60 * DAY, None)
    store.claims.mark_sent(OWNER, keys)
    store.claims.note_batch(OWNER, keys, None)


def _create(client: TurkClient, hit: Hit, address: str) -> str:
    token = {"RequesterAnnotation": hit.token, "UniqueRequestToken": hit.token}
    request = {**hit.terms["request"], **token, "Question": external_question(address)}
    try:
        return str(client.create_hit(**request)["HIT"]["HITId"])
    except Exception as error:
        if ALREADY_THERE not in str(error):
            raise (NotPosted if _is_refusal(error) else UsageError)(str(explained(error))) from None
    found = _listed(client).get(hit.token)
    if found is None:
        raise UsageError(
            "Mechanical Turk says that the task is there, but does not list it: run the same command again"
        )
    return found


def _listed(client: TurkClient) -> dict[str, str]:
    """All tasks of the account by the token that was written on them."""
    found: dict[str, str] = {}
    more: dict[str, Any] = {}
    while True:
        try:
            page = client.list_hits(MaxResults=100, **more)
        except Exception as error:
            raise explained(error) from None
        found |= {hit["RequesterAnnotation"]: hit["HITId"] for hit in page["HITs"] if hit.get("RequesterAnnotation")}
        if not page.get("NextToken"):
            return found
        more = {"NextToken": page["NextToken"]}


class NotPosted(UsageError):
    """The task is certainly not there."""


def _is_refusal(error: Exception) -> bool:
    """Whether Amazon has refused the request, or it was never sent. After a time-out the task may be there."""
    from botocore.exceptions import ClientError, NoCredentialsError, ParamValidationError

    if not isinstance(error, ClientError):
        return isinstance(error, NoCredentialsError | ParamValidationError)
    code, status = error.response["Error"]["Code"], error.response["ResponseMetadata"].get("HTTPStatusCode", 500)
    passing = any(word in code for word in ("Timeout", "Throttl", "ServiceFault"))
    return 400 <= status < 500 and status not in (408, 429) and not passing


def explained(error: Exception) -> UsageError:
    """Amazon's error, in one line with a remedy."""
    text = " ".join(str(error).split())
    return UsageError(f"Mechanical Turk: {text}: what was planned is kept; correct it and run the same command again")
