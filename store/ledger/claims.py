"""Claims: who may ask a question now. A claim reserves the price and keeps others from asking while its lease lasts.

A claim and its charge are one row (key, fence), in one of these states:

    claimed ──mark_sent──► sent ──answers.record──► paid
       │                    │ │
       │ release, abandon,  │ └──abandon, expiry──► unknown   (may have been charged: what is in doubt stays spent)
       │ expiry             │ release (known to be uncharged)
       └────────────────────┴─────────────────────► released  (costs nothing)

`in_doubt` is what requests of the claim may have cost that have not reported it: while it is sent, what would stay
spent if nothing more were heard; of a paid one, the bounds of attempts that failed before the one that was answered.

A claim whose question is in a provider's batch (note_batch) ends as unknown. When such a question is claimed again, the
old row is released and what it kept spent becomes the reservation of the new one: a batch is collected whatever is left
of the budget, and booked once.

An answer that arrives late is paid from whatever state its claim is in by then. A question that is claimed again after
unknown or released gets the next fence. Whoever claims or settles locks the balance of the scope first, then charges by
key, so that two transactions never wait for each other."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Double,
    Text,
    bindparam,
    func,
    insert,
    literal_column,
    select,
    update,
)

from store.errors import StoreUnavailable
from store.ledger.books import (
    LOCKED_CHARGES,
    Balance,
    Charge,
    add_to_balances,
    book,
    lock_free_scopes,
    locked_budget,
    reserve,
)
from store.ledger.expiry import (
    IS_LIVE,
    LIVE_CLAIMS,
    end_claims,
    expire_claims,
    expire_dead_owners,
    has_expired,
    is_dead,
    shorten_leases,
)
from store.ledger.runs import RunRepository, RunRow, Runs
from store.packed.answers import packed_times, unpack
from store.packed.claims import (
    PACKED_FENCE,
    NewClaim,
    claim_packs,
    claimed_packed,
    group_labels,
    mark_packed,
    packed_claims_of,
    take_out_keys,
)
from store.packed.keys import find_packed
from store.schema import CLAIMED, LIVE, PAID, RELEASED, SENT, UNKNOWN, answers, charges, runs, storable
from store.sql import json_array, or_nothing, values_table
from store.transactions import BatchExecutor, Clock, Transactions, reads, writes


class Request(NamedTuple):
    """A question that a run wants to ask, and the most that it can cost."""

    key: str
    upper_bound: int
    oracle: str = ""
    kind: str = ""
    replaces: float | None = None  # an answer that was kept before this time does not count


@dataclass(slots=True)
class Claimed:
    """What became of each request."""

    granted: dict[str, int] = field(default_factory=dict)  # with its fence: ask these
    sent: set[str] = field(default_factory=set)  # of these, marked as sent already
    answered: list[str] = field(default_factory=list)  # an answer is kept by now
    held: list[str] = field(default_factory=list)  # claimed by another owner
    refused: list[str] = field(default_factory=list)  # exceeds the budget


class ClaimTerms(NamedTuple):
    """For one call of `claim`, which the token identifies when its transaction is retried."""

    owner: str
    token: str
    lease_seconds: float
    budget: int | None
    now: float
    sending: int


_SEEN = ("key", "fence", "state", "owner", "token", "reserved", "in_doubt", "batch", "settled_at")
# Every answer has a charge, so the charges tell which questions are answered.
_CHARGES = (
    select(*(charges.c[name] for name in _SEEN), runs.c.scope, answers.c.answered_at.label("answered"))
    .join(runs, runs.c.id == charges.c.run)
    .outerjoin(answers, answers.c.key == charges.c.key)
    .where(charges.c.key.in_(json_array()))
    .order_by(charges.c.key, charges.c.fence)
)
_WANTED = values_table(
    key=Text, fence=BigInteger, state=Text, in_doubt=BigInteger, oracle=Text, kind=Text, reserved=BigInteger, batch=Text
)
_NEW_CHARGE: dict[str, ColumnElement[Any]] = {
    **dict(_WANTED.c.items()),
    "run": bindparam("of_run", type_=BigInteger),
    "owner": bindparam("of_owner", type_=charges.c.owner.type),
    "token": bindparam("of_token", type_=Text),
    "lease_seconds": bindparam("lease", type_=Double),
    "lease_until": bindparam("until", type_=Double),
    "claimed_at": bindparam("at", type_=Double),
    **{name: literal_column("0") for name in ("cost", "requests", "input_tokens", "output_tokens", "seconds")},
}
_INSERT = (
    insert(charges)
    .from_select(list(_NEW_CHARGE), or_nothing(select(*_NEW_CHARGE.values()).where(_WANTED.c.fence > 0)))
    .returning(charges.c.key)
)


class LatestCharge(NamedTuple):
    """The latest charge of a question, packed or not."""

    key: str
    fence: int
    state: str
    owner: str = ""
    token: str = ""
    reserved: int = 0
    in_doubt: int = 0
    batch: str | None = None
    settled_at: float | None = None
    scope: int = 0
    answered: float | None = None


def are_known(connection: Connection, keys: Sequence[str]) -> bool:
    """Whether any of these questions was ever claimed. Nothing is locked."""
    return bool(find_packed(connection, keys) or connection.execute(_CHARGES, {"keys": keys}).first())


def latest_charges(connection: Connection, keys: Sequence[str]) -> dict[str, LatestCharge]:
    """By key. Packs are read first: a claim that another process takes out of its pack meanwhile is seen twice then,
    and not missed."""
    found = find_packed(connection, keys)
    latest: dict[str, LatestCharge] = {}
    for key, at in packed_times(connection, found).items():
        latest[key] = LatestCharge(key, PACKED_FENCE, PAID, settled_at=at, answered=at)
    for claim in packed_claims_of(connection, {at.pack for at in found.values()}).values():
        for key, reserved, doubt in zip(claim.keys, claim.reserved, claim.in_doubt, strict=True):
            latest[key] = LatestCharge(
                key,
                PACKED_FENCE,
                state=CLAIMED if doubt is None else SENT,
                owner=claim.owner,
                token=claim.token,
                reserved=reserved,
                in_doubt=doubt or 0,
                scope=claim.scope,
            )
    others = [key for key in keys if key not in latest]
    values = {"keys": keys if found else others}
    rows = connection.execute(_CHARGES, values) if values["keys"] else ()
    return latest | {row[0]: LatestCharge._make(row) for row in rows}


def decide(
    requests: Sequence[Request],
    latest: Mapping[str, LatestCharge],
    ended: Collection[tuple[str, int]],
    in_batches: Mapping[str, InBatch],
    terms: ClaimTerms,
    scope: int,
    balance: Balance,
) -> tuple[Claimed, dict[str, Request]]:
    """What to do with each request, and the ones that are to be claimed now."""
    result, wanted = Claimed(), dict[str, Request]()
    left = None if terms.budget is None else terms.budget - balance.spent - balance.reserved
    own = {
        key: question.spent for key, question in in_batches.items() if question.scope == scope
    }  # are paid for: no budget refuses them
    for request in {request.key: request for request in requests}.values():
        before = latest.get(request.key)
        answered = None if before is None else before.answered
        if answered is not None and (request.replaces is None or answered >= request.replaces):
            result.answered.append(request.key)
        elif before is not None and before.state in LIVE and (before.key, before.fence) not in ended:
            if before.token == terms.token:  # this very call was committed, only its acknowledgement was lost
                result.granted[request.key] = before.fence
                if before.state == SENT:
                    result.sent.add(request.key)
            else:
                result.held.append(request.key)
        elif request.key in in_batches and not in_batches[request.key].locked:
            result.held.append(request.key)  # the books of its scope are in use: try again
        elif left is not None and request.key not in own and request.upper_bound > max(left, 0):
            result.refused.append(request.key)
            left = 0
        else:
            result.granted[request.key] = before.fence + 1 if before is not None else 1
            paid = own.get(request.key)
            wanted[request.key] = request if paid is None else request._replace(upper_bound=paid)
            if len(result.sent) < terms.sending:
                result.sent.add(request.key)
            if left is not None and request.key not in own:
                left -= request.upper_bound
    return result, wanted


def insert_claims(
    connection: Connection,
    run: RunRow,
    requests: Sequence[Request],
    decided: Claimed,
    terms: ClaimTerms,
    in_batches: Mapping[str, InBatch],
) -> set[str]:
    """Insert the claims; returns the keys of those that no other process has inserted first."""
    fences, sent = decided.granted, decided.sent
    texts = {
        text: storable(text)
        for text in {question.oracle for question in requests} | {question.kind for question in requests}
    }
    new = (
        NewClaim(question.key, texts[question.oracle], texts[question.kind], question.upper_bound, question.key in sent)
        for question in requests
        if fences[question.key] == PACKED_FENCE and question.replaces is None
    )
    packs = group_labels(new)
    lease = {"lease_seconds": terms.lease_seconds, "lease_until": terms.now + terms.lease_seconds}
    common = {"run": run.run, "owner": terms.owner, "token": terms.token, "claimed_at": terms.now, **lease}
    lost = claim_packs(connection, packs, common)
    together = {question.key for pack in packs for question in pack}
    single = [question for question in requests if question.key not in together]
    return (together - lost) | _insert_rows(connection, run, single, decided, terms, in_batches)


def _insert_rows(
    connection: Connection,
    run: RunRow,
    requests: Sequence[Request],
    decided: Claimed,
    terms: ClaimTerms,
    in_batches: Mapping[str, InBatch],
) -> set[str]:
    if not requests:
        return set()
    fences, sent = decided.granted, decided.sent
    lost = claimed_packed(connection, [question.key for question in requests if fences[question.key] == PACKED_FENCE])
    rows = [
        (
            question.key,
            fences[question.key],
            *((SENT, question.upper_bound) if question.key in sent else (CLAIMED, 0)),
            storable(question.oracle),
            storable(question.kind),
            question.upper_bound,
            in_batches[question.key].batch if question.key in in_batches else None,
        )
        for question in requests
        if question.key not in lost
    ]
    values = {
        "rows": rows,
        "of_run": run.run,
        "of_owner": terms.owner,
        "of_token": terms.token,
        "lease": terms.lease_seconds,
        "until": terms.now + terms.lease_seconds,
        "at": terms.now,
    }
    return set(connection.execute(_INSERT, values).scalars().all())


COLLECTABLE_SECONDS = 29 * 86_400.0  # providers delete the results of a batch after 30 days
_RELEASED = values_table(key=Text, fence=BigInteger)
_RELEASE = (
    update(charges)
    .where(charges.c.key == _RELEASED.c.key, charges.c.fence == _RELEASED.c.fence)
    .values(state=RELEASED, in_doubt=0)
)


class InBatch(NamedTuple):
    """A question that a batch holds, and what it keeps spent of which scope."""

    fence: int
    batch: str
    scope: int
    spent: int
    locked: bool = False


def unclaimed_in_batches(
    connection: Connection, latest: Iterable[LatestCharge], ended: Collection[tuple[str, int]], scope: int, now: float
) -> dict[str, InBatch]:
    """The questions that nobody has claimed and a batch holds."""
    found = dict[str, InBatch]()
    for charge in latest:
        is_stored = charge.state == UNKNOWN and now - (charge.settled_at or 0.0) < COLLECTABLE_SECONDS
        is_open = not charge.answered and (is_stored or (charge.key, charge.fence) in ended)
        if charge.batch is not None and is_open:
            spent = charge.in_doubt if charge.state == UNKNOWN else charge.reserved
            found[charge.key] = InBatch(charge.fence, charge.batch, scope=charge.scope, spent=spent)
    others = {question.scope for question in found.values()} - {scope}
    locked = {scope, *(lock_free_scopes(connection, others) if others else ())}
    return {key: question._replace(locked=question.scope in locked) for key, question in found.items()}


def move_reservations(connection: Connection, collected: Mapping[str, InBatch], scope: int) -> None:
    """Release the old rows of questions that are claimed again. In this scope what they kept spent is now reserved; in
    another one it is given back, for here it was reserved again."""
    if not collected:
        return
    rows = connection.execute(LOCKED_CHARGES, {"keys": sorted(collected)}).all()
    old = [
        question
        for question in map(Charge._make, rows)
        if question.state == UNKNOWN and question.fence == collected[question.key].fence
    ]
    if old:
        connection.execute(_RELEASE, {"rows": [(question.key, question.fence) for question in old]})
    book(connection, [(question, question._replace(state=RELEASED, in_doubt=0)) for question in old])
    add_to_balances(
        connection,
        {scope: Balance(0, sum(question.spent for question in collected.values() if question.scope == scope))},
    )


_OWN_CLAIMS = LIVE_CLAIMS.where(
    charges.c.key.in_(json_array()), charges.c.owner == bindparam("of_owner")
).with_for_update(of=charges)
_MARK_SENT = (
    update(charges)
    .where(IS_LIVE, charges.c.key.in_(json_array()), charges.c.owner == bindparam("of_owner"))
    .values(state=SENT, lease_until=bindparam("at") + charges.c.lease_seconds, in_doubt=charges.c.reserved)
    .returning(charges.c.key)
)
_LEAVING = values_table(key=Text, in_doubt=BigInteger)
_MARK_LEAVING = (
    update(charges)
    .where(IS_LIVE, charges.c.key == _LEAVING.c.key, charges.c.owner == bindparam("of_owner"))
    .values(state=SENT, lease_until=bindparam("at") + charges.c.lease_seconds, in_doubt=_LEAVING.c.in_doubt)
    .returning(charges.c.key)
)
_RAISED = values_table(key=Text, reserved=BigInteger)
_RESERVE_MORE = (
    update(charges)
    .where(IS_LIVE, charges.c.key == _RAISED.c.key, charges.c.owner == bindparam("of_owner"))
    .values(reserved=_RAISED.c.reserved)
)
_NOTE_BATCH = (
    update(charges)
    .where(IS_LIVE, charges.c.key.in_(json_array()), charges.c.owner == bindparam("of_owner"))
    .values(batch=bindparam("in_batch"), lease_until=bindparam("at") + charges.c.lease_seconds)
)
_IN_BATCHES = select(charges.c.key).where(charges.c.key.in_(json_array()), charges.c.batch.is_not(None)).distinct()


TOGETHER_SECONDS = 0.002  # requests that leave so close together are marked by one transaction


class Claims(RunRepository):
    def __init__(self, transactions: Transactions, clock: Clock, runs: Runs) -> None:
        super().__init__(transactions, clock, runs)
        # Where the store cannot be reached, each would only wait as long again by itself.
        self._leaving = BatchExecutor(self._mark_together, fails_all=(StoreUnavailable,), delay=TOGETHER_SECONDS)

    def claim(
        self,
        run_id: str,
        scope: str,
        requests: Sequence[Request],
        *,
        owner: str,
        lease_seconds: float,
        budget: int | None,
        sending: int = 0,
    ) -> Claimed:
        """Claim questions in order and reserve the most that each can cost, within the budget of the scope, or of
        the period in which the run began.

        The first `sending` of those granted are marked as sent too: the caller sends them next. Expired claims are
        ended first. Once one request exceeds the budget, nothing after it that costs anything is granted."""
        terms = ClaimTerms(owner, uuid.uuid4().hex, lease_seconds, budget, self._clock(), sending)
        return self._claim(run_id, scope, requests, terms) if requests else Claimed()

    @writes
    def _claim(
        self, connection: Connection, run_id: str, scope: str, requests: Sequence[Request], terms: ClaimTerms
    ) -> Claimed:
        run = self._runs.find(connection, run_id, scope)
        keys = sorted({request.key for request in requests})
        # Before the lock, for which others wait. What is claimed meanwhile is not inserted, whoever claims it.
        is_new, have_expired = not are_known(connection, keys), has_expired(connection, terms.now)
        balance = locked_budget(connection, run.scope, run.period)
        unpack(connection, [request.key for request in requests if request.replaces is not None])
        latest = {} if is_new else latest_charges(connection, keys)
        dead = set(filter(is_dead, {row.owner for row in latest.values() if row.state in LIVE}))
        ended, freed = set[tuple[str, int]](), Balance()
        if dead or have_expired:
            ended, freed = expire_claims(connection, run.scope, dead, terms.now)
        in_batches = unclaimed_in_batches(connection, latest.values(), ended, run.scope, terms.now)
        result, wanted = decide(requests, latest, ended, in_batches, terms, run.scope, balance + freed)
        if result.refused:  # dead owners may hold more of the budget
            more, freed_more = expire_dead_owners(connection, run.scope, terms.now)
            ended |= more
            in_batches = unclaimed_in_batches(connection, latest.values(), ended, run.scope, terms.now)
            result, wanted = decide(requests, latest, ended, in_batches, terms, run.scope, balance + freed + freed_more)
        if result.held or result.refused:
            shorten_leases(connection, terms.now)
        inserted = insert_claims(connection, run, [wanted[key] for key in sorted(wanted)], result, terms, in_batches)
        for key in set(wanted) - inserted:  # another process was faster
            del result.granted[key]
            result.sent.discard(key)
            result.held.append(key)
        collected = {key: in_batches[key] for key in sorted(inserted & in_batches.keys())}
        own = {key for key, request in collected.items() if request.scope == run.scope}
        price = sum(wanted[key].upper_bound for key in inserted - own)
        reserve(connection, run.scope, price, terms.budget, run.period)
        move_reservations(connection, collected, run.scope)
        return result

    @writes
    def note_batch(self, connection: Connection, owner: str, keys: Collection[str], batch: str | None) -> None:
        """Note which of a provider's batches holds these claims, before it is sent; None once they are in no batch that
        may still be charged or collected. Leases are renewed."""
        take_out_keys(connection, keys, owner)
        values = {"keys": sorted(set(keys)), "of_owner": owner, "in_batch": batch, "at": self._clock()}
        connection.execute(_NOTE_BATCH, values)

    @reads
    def in_batches(self, connection: Connection, keys: Sequence[str]) -> list[str]:
        """Those of the questions, in their order, that a provider's batch holds or has held."""
        held = set(connection.execute(_IN_BATCHES, {"keys": list(keys)}).scalars()) if keys else set()
        return [key for key in keys if key in held]

    @writes
    def mark_sent(self, connection: Connection, owner: str, keys: Collection[str]) -> set[str]:
        """Mark claims as sent, just before they are, and renew their leases. A key that is not returned was claimed by
        another owner meanwhile: do not send it."""
        now = self._clock()
        marked = mark_packed(connection, owner, dict.fromkeys(keys), now)
        others = sorted(set(keys) - marked)
        values = {"keys": others, "of_owner": owner, "at": now}
        return marked.union(connection.execute(_MARK_SENT, values).scalars()) if others else marked

    def mark_leaving(self, owner: str, in_doubt: Mapping[str, int]) -> set[str]:
        """The same for an oracle that announces every request, just before it leaves, with the most that this one and
        those before it may have cost. A key that is not returned is another owner's by now: do not send it.

        Requests that leave at the same time are marked together, by the same statements."""
        return self._leaving.put((owner, in_doubt))

    def _mark_together(self, requests: list[tuple[str, Mapping[str, int]]]) -> list[set[str]]:
        leaving: dict[str, dict[str, int]] = {}
        for owner, in_doubt in requests:
            leaving.setdefault(owner, {}).update(in_doubt)
        marked = self._mark_leaving(leaving)
        return [marked[owner] & in_doubt.keys() for owner, in_doubt in requests]

    @writes
    def _mark_leaving(self, connection: Connection, leaving: Mapping[str, Mapping[str, int]]) -> dict[str, set[str]]:
        """By owner, which of the claims are marked."""
        now, marked = self._clock(), dict[str, set[str]]()
        for owner, in_doubt in sorted(leaving.items()):
            marked[owner] = mark_packed(connection, owner, in_doubt, now)
            others = sorted((key, doubt) for key, doubt in in_doubt.items() if key not in marked[owner])
            values = {"rows": others, "of_owner": owner, "at": now}
            marked[owner].update(connection.execute(_MARK_LEAVING, values).scalars() if others else ())
        return marked

    @writes
    def reserve_more(
        self, connection: Connection, run_id: str, scope: str, owner: str, up_to: Mapping[str, int], budget: int | None
    ) -> bool:
        """Raise what is reserved for the owner's claims to these amounts, where it is less; False, and nothing is
        raised, if that exceeds the budget. Called before a request that the claims did not foresee."""
        run = self._runs.find(connection, run_id, scope)
        balance = locked_budget(connection, run.scope, run.period)
        take_out_keys(connection, up_to, owner)
        price, raised = _raised(connection, owner, up_to)
        if price and budget is not None and balance.spent + balance.reserved + price > budget:
            balance += expire_dead_owners(connection, run.scope, self._clock())[1]  # who may hold some of it
            price, raised = _raised(connection, owner, up_to)
            if price and balance.spent + balance.reserved + price > budget:
                return False
        if raised:
            connection.execute(_RESERVE_MORE, {"rows": raised, "of_owner": owner})
            reserve(connection, run.scope, price, budget, run.period)
        return True

    @writes
    def release(self, connection: Connection, owner: str, keys: Collection[str]) -> None:
        """Give back claims for which certainly nothing was charged, whether or not they are marked as sent."""
        take_out_keys(connection, keys, owner)
        own = connection.execute(_OWN_CLAIMS, {"keys": sorted(set(keys)), "of_owner": owner}).all()
        end_claims(connection, own, self._clock(), uncharged=True)

    @writes
    def abandon(self, connection: Connection, owner: str, keys: Collection[str]) -> int:
        """Give up claims that may have been charged, as after a time-out: what was sent becomes unknown. Returns what
        stays spent."""
        take_out_keys(connection, keys, owner)
        own = connection.execute(_OWN_CLAIMS, {"keys": sorted(set(keys)), "of_owner": owner}).all()
        return sum(change.spent for change in end_claims(connection, own, self._clock()).values())

    @reads
    def last_fence(self, connection: Connection, key: str) -> int:
        """The fence under which the question was last claimed; 0 if never."""
        last = connection.execute(select(func.max(charges.c.fence)).where(charges.c.key == key)).scalar() or 0
        return last or len(find_packed(connection, [key]))  # all that is packed is asked for the first time


def _raised(connection: Connection, owner: str, up_to: Mapping[str, int]) -> tuple[int, list[tuple[str, int]]]:
    """Which claims of the owner reserve less than this, and what they lack together."""
    own = connection.execute(_OWN_CLAIMS, {"keys": sorted(up_to), "of_owner": owner}).all()
    lacking = [row for row in own if row.reserved < up_to[row.key]]
    return sum(up_to[row.key] - row.reserved for row in lacking), [(row.key, up_to[row.key]) for row in lacking]
