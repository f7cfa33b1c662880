"""Mechanical Turk. Waiting questions become tasks there: what is about to be posted is written down and reserved first.
Work that was done is collected: it is approved, paid, booked, and only then are its votes counted."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol
from xml.sax.saxutils import escape

from twothirds.flows.errors import UsageError
from twothirds.flows.settings import micro, micro_of
from twothirds.models import MAX_PRICE_USD, Money, in_usd
from twothirds.store import Claimed, Reply, Respondent, Store, Wanted, new_owner, text_key
from twothirds.store.review import COLLECTED, PLANNED, POSTED, Hit
from twothirds.studio.review import SECRET, TASK, Signer

SCHEMA = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd"
FRAME_HEIGHT = 900
FEE, FEE_OF_MANY, MANY, LEAST_FEE = Decimal("0.2"), Decimal("0.4"), 10, Decimal("0.01")
APPROVAL_RATE = "000000000000000000L0"  # Amazon's qualification: percentage of assignments approved
LOCALE = "00000000000000000071"


@dataclass(frozen=True)
class Marketplace:
    name: str
    endpoint: str
    submit: str  # where a worker's browser hands an assignment in
    pays: bool


SANDBOX = Marketplace(
    "sandbox",
    "https://mturk-requester-sandbox.us-east-1.amazonaws.com",
    "https://workersandbox.mturk.com",
    pays=False,
)
PRODUCTION = Marketplace(
    "production", "https://mturk-requester.us-east-1.amazonaws.com", "https://www.mturk.com", pays=True
)


@dataclass(frozen=True)
class HitTerms:
    reward: Decimal  # USD per assignment, which is one page of questions
    cap: Decimal  # USD that all of it may cost
    market: Marketplace = SANDBOX
    assignments: int | None = None  # people per task (default: as many as votes are missing)
    lifetime_hours: float = 72.0
    duration_minutes: float = 30.0
    approved_percent: int | None = 95
    locale: str | None = None
    qualifications: tuple[str, ...] = ()  # types of your own that a worker must have
    title: str = "Look at examples and say what they have"
    description: str = "Mark the examples that have a feature, or name what some of three share."
    keywords: str = "images, labelling, categorisation"

    def __post_init__(self) -> None:
        if not 0 < self.reward <= MAX_PRICE_USD or self.reward != round(self.reward, 2):
            limits = f"at least 0.01 and at most {MAX_PRICE_USD:,}"
            raise UsageError(f"--reward {self.reward}: give whole cents per task, {limits}")
        if self.cap <= 0:
            raise UsageError(f"--cap {self.cap}: give the USD that all tasks together may cost")
        if self.assignments is not None and not 1 <= self.assignments <= 100:
            raise UsageError(f"--assignments {self.assignments}: from 1 to 100 people can be asked")
        if not 1 / 120 <= self.lifetime_hours <= 24 * 365 or not 0.5 <= self.duration_minutes <= 60 * 24 * 365:
            raise UsageError("--lifetime-hours and --duration-minutes must be from 30 seconds to one year")
        if self.approved_percent is not None and not 0 <= self.approved_percent <= 100:
            raise UsageError(f"--approved-percent {self.approved_percent} is not from 0 to 100")

    def bound(self, assignments: int) -> Money:
        """The most that one assignment of a task with so many can cost, Amazon's fee included; 0 in the sandbox."""
        fee = max(self.reward * (FEE_OF_MANY if assignments >= MANY else FEE), LEAST_FEE)
        return micro(self.reward + fee) if self.market.pays else 0

    def request(self, token: str, address: str, assignments: int) -> dict[str, Any]:
        """The arguments of CreateHIT. The token makes a repetition harmless for a day, and is found by listing."""
        return {
            "MaxAssignments": assignments,
            "LifetimeInSeconds": round(3600 * self.lifetime_hours),
            "AssignmentDurationInSeconds": round(60 * self.duration_minutes),
            "Reward": f"{self.reward:.2f}",
            "Title": self.title,
            "Description": self.description,
            "Keywords": self.keywords,
            "Question": external_question(address),
            "RequesterAnnotation": token,
            "QualificationRequirements": self._requirements(),
            "UniqueRequestToken": token,
        }

    def _requirements(self) -> list[dict[str, Any]]:
        wanted: list[dict[str, Any]] = []
        if self.approved_percent is not None and self.market.pays:  # workers of the sandbox have no history
            wanted.append(
                {
                    "QualificationTypeId": APPROVAL_RATE,
                    "Comparator": "GreaterThanOrEqualTo",
                    "IntegerValues": [self.approved_percent],
                }
            )
        if self.locale:
            place = {"Country": self.locale.upper()}
            wanted.append({"QualificationTypeId": LOCALE, "Comparator": "EqualTo", "LocaleValues": [place]})
        own = [{"QualificationTypeId": name, "Comparator": "Exists"} for name in self.qualifications]
        return [{**requirement, "ActionsGuarded": "DiscoverPreviewAndAccept"} for requirement in [*wanted, *own]]


def external_question(address: str) -> str:
    where = f"<ExternalURL>{escape(address)}</ExternalURL><FrameHeight>{FRAME_HEIGHT}</FrameHeight>"
    return f'<ExternalQuestion xmlns="{SCHEMA}">{where}</ExternalQuestion>'


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
        missing = item["missing"]
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
        for hit in hits:
            _release(store, hit, owner)
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


def claim_names(hit: Hit) -> list[str]:
    """One claim per assignment: what it may cost is reserved until it is paid, or the task expires."""
    return [f"mturk/{hit.token}/{number}" for number in range(hit.terms["people"])]


def _numbers(store: Store, names: Iterable[str]) -> list[int]:
    """The requests of the ledger that hold these claims."""
    return [number for number, _ in store.requests.positions(list(map(text_key, names))).values()]


def _release(store: Store, hit: Hit, owner: str) -> None:
    """Give up what is not paid, or leave what is noted as posted to whoever knows more."""
    store.requests.release(owner, _numbers(store, claim_names(hit)), uncharged=True)


def _reserve(store: Store, hit: Hit, owner: str) -> None:
    """What is reserved already stays so. Raises BudgetRefusal."""
    run = _run_of(store, hit)
    claimed = _claim(store, hit, claim_names(hit), owner, POSTING_SECONDS, _budget_of(run))
    if claimed.refused:
        store.requests.release(owner, [granted.request for granted in claimed.granted])
        raise BudgetRefusal(
            f"the budget of {run['settings']['budget']} USD of run {run['name']} does not allow it: raise --budget "
            "and run it"
        )


def _run_of(store: Store, hit: Hit) -> dict[str, Any]:
    return next(row for row in store.runs.overview() if row["run_id"] == hit.run_id)


def _budget_of(run: dict[str, Any]) -> Money | None:
    budget = run["settings"].get("budget")
    return None if budget is None else micro_of(budget)


def _claim(store: Store, hit: Hit, names: Sequence[str], owner: str, lease: float, budget: Money | None) -> Claimed:
    market, bound = hit.terms["market"], hit.terms["bound"]
    wanted = [Wanted((text_key(name),), bound, "assignment") for name in names]
    return store.requests.claim(hit.run_id, _market(market), wanted, owner=owner, lease_seconds=lease, budget=budget)


def _market(name: str) -> Respondent:
    return Respondent(f"mturk:{name}", {"kind": "mturk", "model": name})


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
    signer = Signer(store.queue.people.secret(SECRET))
    _reserve(store, hit, owner)
    numbers = _numbers(store, claim_names(hit))
    store.requests.note_batch(owner, numbers, f"mturk {hit.token}")
    try:
        return _create(client, hit, f"{hit.terms['address']}/task/{signer.sign(hit.token, TASK)}")
    except NotPosted:
        store.requests.note_batch(owner, numbers, None)
        raise
    finally:  # if it is not known to be not posted, it stays booked
        _release(store, hit, owner)


def _keep_reserved(store: Store, hit: Hit, owner: str) -> None:
    """Of a task that is there, as long as assignments may come: it outlives every process."""
    _release(store, hit, owner)
    names = claim_names(hit)
    _claim(store, hit, names, OWNER, hit.terms["request"]["LifetimeInSeconds"] + 60 * DAY, None)
    numbers = _numbers(store, names)
    store.requests.send(hit.run_id, OWNER, dict.fromkeys(numbers, hit.terms["bound"]), None)
    store.requests.note_batch(OWNER, numbers, None)


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
    hits = _pages("HITs", client.list_hits)
    return {hit["RequesterAnnotation"]: hit["HITId"] for hit in hits if hit.get("RequesterAnnotation")}


def _pages(entries: str, method: Any, **request: Any) -> Iterator[dict[str, Any]]:
    """The entries of all pages of a list."""
    token: dict[str, Any] = {}
    while True:
        page = _call(method, MaxResults=100, **request, **token)
        yield from page[entries]
        if not page.get("NextToken"):
            return
        token = {"NextToken": page["NextToken"]}


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
    statuses = [SUBMITTED, APPROVED, REJECTED]
    listed = _pages("Assignments", client.list_assignments_for_hit, HITId=hit.hit_id, AssignmentStatuses=statuses)
    for assignment in list(listed):
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
            free = sorted(set(claim_names(hit)) - set(booked.values()))
            _record(store, hit, free[0], assignment, hit.terms["bound"])
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
    _release(store, hit, OWNER)
    store.queue.mturk.set_state(hit.token, "collected")


def _booked(store: Store, hit: Hit) -> dict[str, str]:
    """Assignments that are in the books, with the claim under which they are."""
    name_of = {text_key(name): name for name in claim_names(hit)}
    booked = store.requests.answers(list(name_of))
    return {answer["assignment"]: name_of[key] for key, answer in booked.items()}


def _record(store: Store, hit: Hit, name: str, assignment: dict[str, Any], cost: int) -> None:
    if not _numbers(store, [name]):  # it was given back, and is paid all the same
        _claim(store, hit, [name], OWNER, POSTING_SECONDS, None)
    [number], key = _numbers(store, [name]), text_key(name)
    paid = {"assignment": assignment["AssignmentId"], "worker": assignment["WorkerId"], "hit": hit.hit_id, "paid": cost}
    answer = ({"claim": name, "questions": list(hit.items)}, paid)
    store.requests.record(hit.run_id, [Reply(number, (key,), {0: answer}, cost=cost, attempts=1)])


def _bonus_name(assignment: str) -> str:
    return f"mturk/bonus/{assignment}"


def _bonus_paid(store: Store, assignment: str) -> int:
    booked = store.requests.answers([text_key(_bonus_name(assignment))])
    return sum(int(answer.get("paid", 0)) for answer in booked.values())


def _pay_bonus(store: Store, client: TurkClient, hit: Hit, assignment: dict[str, Any], bonus: Decimal) -> int:
    """One bonus per assignment, however often it is asked for: reserved first, sent with a token, and looked for among
    those that were paid when it is not certain whether it was."""
    name = assignment["AssignmentId"]
    claim = _bonus_name(name)
    if store.requests.answers([text_key(claim)]):
        return 0
    cost = micro(bonus * BONUS_FEE) if hit.terms["market"] == "production" else 0
    run = _run_of(store, hit)
    wanted = [Wanted((text_key(claim),), cost, "bonus")]
    claimed = store.requests.claim(
        hit.run_id, _market(hit.terms["market"]), wanted, budget=_budget_of(run), owner=OWNER, lease_seconds=3600.0
    )
    if claimed.refused:
        return 0
    store.requests.send(hit.run_id, OWNER, dict.fromkeys(_numbers(store, [claim]), cost), None)
    paid = _call(client.list_bonus_payments, AssignmentId=name, MaxResults=100)["BonusPayments"]
    if not paid:
        _call(
            client.send_bonus,
            WorkerId=assignment["WorkerId"],
            BonusAmount=f"{bonus:.2f}",
            AssignmentId=name,
            Reason="Thank you for careful answers.",
            UniqueRequestToken=hashlib.sha256(claim.encode()).hexdigest(),
        )
    _record(store, hit, claim, assignment, cost)
    return 1


def _call(method: Any, **request: Any) -> dict[str, Any]:
    try:
        reply: dict[str, Any] = method(**request)
        return reply
    except Exception as error:
        raise explained(error) from None
