"""Claims: who may ask a question now. A claim reserves the price and keeps others from asking while its lease lasts.

A claim and its charge are one row (key, fence), in one of these states:

    claimed ──mark_sent──► sent ──answers.record──► paid
       │                    │ │
       │ release, abandon,  │ └──abandon, expiry──► unknown   (may have been charged: what is in doubt stays spent)
       │ expiry             │ release (known to be uncharged)
       └────────────────────┴─────────────────────► released  (costs nothing)

`in_doubt` is what requests of the claim may have cost that have not told it: while it is sent, what would stay spent if
nothing more were heard; of a paid one, the bounds of the attempts that failed before the one that was answered.

A claim whose question is in a provider's batch (note_batch) ends as unknown. When such a question is claimed again, the
old row is released and what it kept spent becomes the reservation of the new one: a batch is collected whatever is left
of the budget, and booked once.

An answer that arrives late is paid from whatever state its claim is in by then. A question that is claimed again after
unknown or released gets the next fence. Whoever claims or settles locks the balance of the scope first, then charges by
key, so that two transactions never wait for each other."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Double,
    Row,
    Text,
    bindparam,
    func,
    literal_column,
    select,
    update,
)

from store.errors import StoreUnavailable
from store.ledger.balances import Balance, locked_balance, reserve
from store.ledger.batches import InBatch, move_reservations, unclaimed_in_batches
from store.ledger.expiry import IS_LIVE, LIVE_CLAIMS, end_claims, expire_claims, expire_dead_owners, shorten_leases
from store.ledger.owners import is_dead
from store.ledger.runs import RunRepository, RunRow, Runs
from store.packed import (
    PACKED_FENCE,
    NewClaim,
    PackTerms,
    claim_packs,
    find_packed,
    group_labels,
    mark_packed,
    packed_claims_of,
    packed_times,
    take_out_keys,
    unpack,
)
from store.schema import CLAIMED, LIVE, PAID, SENT, answers, charges, runs, storable
from store.sql import given, insert_or_nothing, listed
from store.transactions import Clock, GroupCommit, Transactions, Work, reads, writes


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


_OWN_CLAIMS = LIVE_CLAIMS.where(charges.c.key.in_(listed()), charges.c.owner == bindparam("of_owner")).with_for_update(
    of=charges
)
_MARK_SENT = (
    update(charges)
    .where(IS_LIVE, charges.c.key.in_(listed()), charges.c.owner == bindparam("of_owner"))
    .values(state=SENT, lease_until=bindparam("at") + charges.c.lease_seconds, in_doubt=charges.c.reserved)
    .returning(charges.c.key)
)
_LEAVING = given(key=Text, in_doubt=BigInteger)
_MARK_LEAVING = (
    update(charges)
    .where(IS_LIVE, charges.c.key == _LEAVING.c.key, charges.c.owner == bindparam("of_owner"))
    .values(state=SENT, lease_until=bindparam("at") + charges.c.lease_seconds, in_doubt=_LEAVING.c.in_doubt)
    .returning(charges.c.key)
)
_NOTE_BATCH = (
    update(charges)
    .where(IS_LIVE, charges.c.key.in_(listed()), charges.c.owner == bindparam("of_owner"))
    .values(batch=bindparam("in_batch"), lease_until=bindparam("at") + charges.c.lease_seconds)
)
_SEEN = ("key", "fence", "state", "owner", "token", "reserved", "in_doubt", "batch", "settled_at")
# Every answer has a charge, so the charges tell which questions are answered.
_CHARGES = (
    select(*(charges.c[name] for name in _SEEN), runs.c.scope, answers.c.answered_at.label("answered"))
    .join(runs, runs.c.id == charges.c.run)
    .outerjoin(answers, answers.c.key == charges.c.key)
    .where(charges.c.key.in_(listed()))
    .order_by(charges.c.key, charges.c.fence)
)
_IN_BATCHES = select(charges.c.key).where(charges.c.key.in_(listed()), charges.c.batch.is_not(None)).distinct()
_WANTED = given(
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
    insert_or_nothing(charges)
    .from_select(list(_NEW_CHARGE), select(*_NEW_CHARGE.values()).where(_WANTED.c.fence > 0))
    .returning(charges.c.key)
)


@dataclass(slots=True, eq=False)
class _Leaving:
    """Claims whose request is about to leave, the most that is in doubt of each then, and what came of it."""

    owner: str
    in_doubt: Mapping[str, int]
    marked: set[str] = field(default_factory=set)
    error: StoreUnavailable | None = None


class Claims(RunRepository):
    def __init__(self, transactions: Transactions, clock: Clock, runs: Runs) -> None:
        super().__init__(transactions, clock, runs)
        self._leaving = GroupCommit(self._mark_together)

    def claim(
        self,
        run_id: str,
        scope: str,
        requests: Collection[tuple[str, int] | Request],
        *,
        owner: str,
        lease_seconds: float,
        budget: int | None,
        sending: int = 0,
    ) -> Claimed:
        """Claim questions in order and reserve the most that each can cost, within the budget of the scope.

        The first `sending` of those granted are marked as sent too: the caller sends them next. Expired claims are
        ended first. Once one request exceeds the budget, nothing after it that costs anything is granted."""
        terms = ClaimTerms(owner, uuid.uuid4().hex, lease_seconds, budget, self._clock(), sending)
        asked = [one if isinstance(one, Request) else Request(*one) for one in requests]
        return self._claim(run_id, scope, asked, terms) if asked else Claimed()

    @writes
    def _claim(
        self, connection: Connection, run_id: str, scope: str, requests: Sequence[Request], terms: ClaimTerms
    ) -> Claimed:
        run = self._runs.find(connection, run_id, scope)
        balance = locked_balance(connection, run.scope)
        unpack(connection, [request.key for request in requests if request.replaces is not None])
        latest = _latest(connection, sorted({request.key for request in requests}))
        holders = {row.owner for row in latest.values() if row.state in LIVE}
        ended, freed = expire_claims(connection, run.scope, filter(is_dead, holders), terms.now)
        kept = unclaimed_in_batches(connection, latest.values(), ended, run.scope, terms.now)
        result, wanted = _decide(requests, latest, ended, kept, terms, run.scope, balance + freed)
        if result.refused:  # dead owners may hold more of the budget
            more, freed_more = expire_dead_owners(connection, run.scope, terms.now)
            ended |= more
            kept = unclaimed_in_batches(connection, latest.values(), ended, run.scope, terms.now)
            result, wanted = _decide(requests, latest, ended, kept, terms, run.scope, balance + freed + freed_more)
        if result.held or result.refused:
            shorten_leases(connection, terms.now)
        inserted = _insert(connection, run, [wanted[key] for key in sorted(wanted)], result, terms, kept)
        for key in set(wanted) - inserted:  # another process was faster
            del result.granted[key]
            result.sent.discard(key)
            result.held.append(key)
        collected = {key: kept[key] for key in sorted(inserted & kept.keys())}
        own = {key for key, one in collected.items() if one.scope == run.scope}
        reserve(connection, run.scope, sum(wanted[key].upper_bound for key in inserted - own), terms.budget)
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
        """The same for an oracle that tells of every request, just before it leaves, the most that this one and those
        before it may have cost. A key that is not returned is another owner's by now: do not send it.

        Requests that leave at the same time are marked together, by the same statements."""
        request = _Leaving(owner, in_doubt)
        self._leaving.write(lambda _: request)
        if request.error is not None:
            raise request.error
        return request.marked

    def _mark_together(self, gathered: Work) -> list[_Leaving]:
        requests: list[_Leaving] = gathered(cast("Connection", None))  # the transaction is begun below
        leaving: dict[str, dict[str, int]] = {}
        for one in requests:
            leaving.setdefault(one.owner, {}).update(one.in_doubt)
        try:
            marked = self._mark_leaving(leaving)
        except StoreUnavailable as error:  # none would fare better alone, and each would wait as long
            for one in requests:
                one.error = error
            return requests
        for one in requests:
            one.marked = marked[one.owner] & one.in_doubt.keys()
        return requests

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


class _Latest(NamedTuple):
    """The latest charge of a question, packed or not."""

    key: str
    fence: int
    state: str
    owner: str
    token: str
    reserved: int
    in_doubt: int
    batch: str | None
    settled_at: float | None
    scope: int
    answered: float | None


def _latest(connection: Connection, keys: Sequence[str]) -> dict[str, Row[Any] | _Latest]:
    """By key. Packs are read first: a claim that another process takes out of its pack meanwhile is seen twice then,
    and not missed."""
    found = find_packed(connection, keys)
    latest: dict[str, Row[Any] | _Latest] = {}
    for key, at in packed_times(connection, found).items():
        latest[key] = _Latest(key, PACKED_FENCE, PAID, "", "", 0, 0, None, at, 0, at)
    for claim in packed_claims_of(connection, {at.pack for at in found.values()}).values():
        terms = (claim.owner, claim.token)
        for key, reserved, doubt in zip(claim.keys, claim.reserved, claim.in_doubt, strict=True):
            state = CLAIMED if doubt is None else SENT
            latest[key] = _Latest(key, PACKED_FENCE, state, *terms, reserved, doubt or 0, None, None, claim.scope, None)
    others = [key for key in keys if key not in latest]
    values = {"keys": keys if found else others}
    return latest | {row.key: row for row in connection.execute(_CHARGES, values)} if values["keys"] else latest


def _decide(
    requests: Sequence[Request],
    latest: Mapping[str, Row[Any] | _Latest],
    ended: Collection[tuple[str, int]],
    kept: Mapping[str, InBatch],
    terms: ClaimTerms,
    scope: int,
    balance: Balance,
) -> tuple[Claimed, dict[str, Request]]:
    """What to do with each request, and the ones that are to be claimed now."""
    result, wanted = Claimed(), dict[str, Request]()
    left = None if terms.budget is None else terms.budget - balance.spent - balance.reserved
    own = {key: one.spent for key, one in kept.items() if one.scope == scope}  # are paid for: no budget refuses them
    for request in {request.key: request for request in requests}.values():
        before = latest.get(request.key)
        if before is not None and _is_answered(before.answered, request.replaces):
            result.answered.append(request.key)
        elif before is not None and before.state in LIVE and (before.key, before.fence) not in ended:
            if before.token == terms.token:  # this very call was committed, only its acknowledgement was lost
                result.granted[request.key] = before.fence
                if before.state == SENT:
                    result.sent.add(request.key)
            else:
                result.held.append(request.key)
        elif request.key in kept and not kept[request.key].locked:  # the books of its scope are in use: try again
            result.held.append(request.key)
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


def _is_answered(at: float | None, replaces: float | None) -> bool:
    return at is not None and (replaces is None or at >= replaces)


def _insert(
    connection: Connection,
    run: RunRow,
    requests: Sequence[Request],
    decided: Claimed,
    terms: ClaimTerms,
    kept: Mapping[str, InBatch],
) -> set[str]:
    """Insert the claims; returns the keys of those that no other process has inserted first."""
    fences, sent = decided.granted, decided.sent
    texts = {text: storable(text) for text in {one.oracle for one in requests} | {one.kind for one in requests}}
    new = (
        NewClaim(one.key, texts[one.oracle], texts[one.kind], one.upper_bound, one.key in sent)
        for one in requests
        if fences[one.key] == PACKED_FENCE and one.replaces is None
    )
    packs = group_labels(new)
    lost = claim_packs(connection, packs, PackTerms(run.run, terms.owner, terms.token, terms.lease_seconds, terms.now))
    together = {one.key for pack in packs for one in pack}
    single = [one for one in requests if one.key not in together]
    return (together - lost) | _insert_rows(connection, run, single, decided, terms, kept)


def _insert_rows(
    connection: Connection,
    run: RunRow,
    requests: Sequence[Request],
    decided: Claimed,
    terms: ClaimTerms,
    kept: Mapping[str, InBatch],
) -> set[str]:
    if not requests:
        return set()
    fences, sent = decided.granted, decided.sent
    rows = [
        (
            one.key,
            fences[one.key],
            *((SENT, one.upper_bound) if one.key in sent else (CLAIMED, 0)),
            storable(one.oracle),
            storable(one.kind),
            one.upper_bound,
            kept[one.key].batch if one.key in kept else None,
        )
        for one in requests
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
