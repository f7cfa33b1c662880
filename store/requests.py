"""Requests: claimed, sent, answered. What a request may cost is booked before it leaves and corrected when it closes.

    reserved ──send──► sent ──record──► closed
       │                 └── release, lease over, owner dead ──► closed; what is in doubt stays booked
       └── release, lease over, owner dead ──► deleted

`in_doubt` of an open request is what would stay booked if nothing more were heard of it. A closed one has an answer to
each of its questions or to some or none, a cost, and what is still in doubt; only answered questions lead to it.

A request that a provider's batch holds does not expire: whoever wants one of its questions adopts it, with what it has
booked. A reply that comes late is booked and stored all the same; where another request has answered a question by
then, that answer counts. The id of a request is its fencing token: it is never used again."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, Row, bindparam, select, update

from twothirds.store.content import Entry, checksum, decode, encode, joined_keys, split_keys
from twothirds.store.engine import KEYS, chunks, insert_new, reads, writes
from twothirds.store.errors import StoreError
from twothirds.store.owners import is_dead
from twothirds.store.runs import (
    RunRepository,
    RunRow,
    add_booked,
    booked_against,
    lock_budget,
    lock_free_scopes,
    lock_scope,
    reserve,
)
from twothirds.store.schema import (
    CLOSED,
    COMPUTED,
    PROBE,
    RESERVED,
    SENT,
    oracles,
    questions,
    requests,
    runs,
    scopes,
    settlements,
    storable,
)

COLLECTABLE_SECONDS = 29 * 86_400.0  # providers delete the results of a batch after 30 days
NOBODY = ""  # the owner of a request that is left to be adopted


class Respondent(NamedTuple):
    """Whoever is asked: its name in tables, and all that its answers depend on."""

    name: str
    identity: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Questions that share a request, and the most that it can cost."""

    keys: tuple[str, ...]
    bound: int
    kind: str = "label"


class Granted(NamedTuple):
    """A request that the caller owns."""

    request: int
    keys: tuple[str, ...]
    booked: int
    is_adopted: bool = False  # a provider's batch holds its questions


@dataclass(slots=True)
class Claimed:
    granted: list[Granted] = field(default_factory=list)
    known: set[str] = field(default_factory=set)  # are answered by now
    held: set[str] = field(default_factory=set)  # others ask them
    refused: list[Wanted] = field(default_factory=list)  # beyond the budget


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for a request, perhaps not for all of its questions yet. Amounts are totals of the request so far,
    not increments: recording a reply twice changes nothing. `closes`: nothing more is expected."""

    request: int
    keys: tuple[str, ...]  # as they were granted
    answers: Mapping[int, Entry]  # by position: question and answer
    cost: int = 0
    in_doubt: int = 0
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    closes: bool = False
    overcharge: float = 1.0  # above 1 where it was charged above its bound: requests may cost so many times theirs


class StoredAnswer(NamedTuple):
    answer: dict[str, Any]
    run: int  # that has paid for it
    scope: int
    kind: str
    answered_at: float


class ClaimTerms(NamedTuple):
    owner: str
    token: str  # of the call, so that its repetition is recognised
    lease_seconds: float
    budget: int | None
    again: Mapping[str, float]


_IS_OPEN = requests.c.state != sa.literal_column(f"'{CLOSED}'")  # written out for the partial index
_NOW = bindparam("now", type_=sa.Double)
_AT = requests.c.id == bindparam("at")
_ROWS = select(requests, runs.c.scope).join(runs, runs.c.id == requests.c.run)
_HOLDERS = _ROWS.where(requests.c.id.in_(KEYS))
_LOCKED = _HOLDERS.order_by(requests.c.id).with_for_update(of=requests)
_OPEN = _ROWS.where(_IS_OPEN)
_IS_COLLECTABLE = sa.and_(
    requests.c.batch.is_not(None), requests.c.owner == NOBODY, requests.c.asked_at > _NOW - COLLECTABLE_SECONDS
)
_EXPIRED = _OPEN.where(requests.c.lease_until <= _NOW, ~_IS_COLLECTABLE)
_OF_OWNERS = _OPEN.where(requests.c.owner.in_(bindparam("owners", expanding=True)))
_OWN = _OPEN.where(requests.c.id.in_(KEYS), requests.c.owner == bindparam("of_owner")).order_by(requests.c.id)
_OWN = _OWN.with_for_update(of=requests)
_OWNERS_IN_SCOPE = (
    select(requests.c.owner)
    .distinct()
    .join(runs, runs.c.id == requests.c.run)
    .where(_IS_OPEN, runs.c.scope == bindparam("in_scope"))
)
# No lease is longer than its own length from now: one that is was written by a clock that was ahead.
_SHORTEN = (
    update(requests)
    .where(_IS_OPEN, requests.c.lease_until > _NOW + requests.c.lease_seconds + 1)
    .values(lease_until=_NOW + requests.c.lease_seconds)
)
_POSITIONS = select(questions.c.key, questions.c.request, questions.c.position).where(questions.c.key.in_(KEYS))
_ANSWERS = (
    select(requests.c.id, requests.c.content, requests.c.run, runs.c.scope, requests.c.kind, requests.c.answered_at)
    .join(runs, runs.c.id == requests.c.run)
    .where(requests.c.id.in_(KEYS), requests.c.content.is_not(None))
)
_INSERT = sa.insert(requests).returning(requests.c.id, sort_by_parameter_order=True)
_GIVE_BACK = sa.delete(questions).where(questions.c.key.in_(KEYS), questions.c.request == bindparam("of"))
_DROP = update(requests).where(_AT).values(dropped=requests.c.dropped + bindparam("more_dropped"))
_LEAVE = update(requests).where(_AT).values(owner=NOBODY)
_FORGOTTEN: dict[str, Any] = {"owner": NOBODY, "token": "", "batch": None, "keys": None}  # of a request that is closed
_END = (
    update(requests)
    .where(_AT)
    .values(state=CLOSED, booked=bindparam("new_booked"), in_doubt=bindparam("new_in_doubt"), **_FORGOTTEN)
)
_PART_WITH = (
    update(requests)
    .where(_AT)
    .values(booked=requests.c.booked - bindparam("share"), in_doubt=requests.c.in_doubt - bindparam("share"))
)
_DELETE = sa.delete(requests).where(_AT)
_RAISE = update(requests).where(_AT).values(booked=bindparam("most"))
_MOST = bindparam("most", type_=sa.BigInteger)
_SEND = (
    update(requests)
    .where(_AT, requests.c.owner == bindparam("of_owner"), requests.c.state != CLOSED, requests.c.booked >= _MOST)
    .values(
        state=SENT,
        lease_until=_NOW + requests.c.lease_seconds,
        # Never less than before: whoever sends again knows perhaps not of all that has left.
        in_doubt=sa.case(
            (requests.c.cost + requests.c.in_doubt < _MOST, _MOST - requests.c.cost), else_=requests.c.in_doubt
        ),
    )
)
_COUNTS = ("in_doubt", "attempts", "input_tokens", "output_tokens", "seconds")
_CONTENT = ("answered_at", "content", "checksum")
_WRITTEN = (*_COUNTS, *_FORGOTTEN, *_CONTENT, "cost", "state", "booked", "answered", "dropped")
_RECORD = update(requests).where(_AT)
_RECORD = _RECORD.values({name: bindparam(f"new_{name}", type_=requests.c[name].type) for name in _WRITTEN})


class Requests(RunRepository):
    def claim(
        self,
        run_id: str,
        respondent: Respondent,
        wanted: Sequence[Wanted],
        *,
        owner: str,
        lease_seconds: float,
        budget: int | None,
        again: Mapping[str, float] | None = None,
    ) -> Claimed:
        """Claim the right to send these requests, in order, while the budget covers their bounds. Questions that others
        ask, or have asked, are left out of them.

        `again`: answers to these questions from before that time are withdrawn, and asked again."""
        terms = ClaimTerms(owner, uuid.uuid4().hex, lease_seconds, budget, again or {})
        return self._claim(run_id, respondent, wanted, terms)

    @writes
    def _claim(
        self, connection: Connection, run_id: str, respondent: Respondent, wanted: Sequence[Wanted], terms: ClaimTerms
    ) -> Claimed:
        run, now = self._runs.find(connection, run_id), self._clock()
        if not wanted:
            return Claimed()
        claiming = _Claiming(connection, run, _oracle_row(connection, respondent), terms, now)
        lock_budget(connection, run)
        connection.execute(_SHORTEN, {"now": now})
        _end_all(connection, run.scope, _EXPIRED, {"now": now}, now)
        if any(request.kind == PROBE for request in wanted):  # nobody else wants what a dead process has probed
            _end_dead_in(connection, run.scope, now)
        held = _held(connection, wanted)
        if dead := {holder.owner for _, holder in held.values() if holder.state != CLOSED and is_dead(holder.owner)}:
            _end_all(connection, run.scope, _OF_OWNERS, {"owners": sorted(dead)}, now)
            held = _held(connection, wanted)
        claiming.decide(wanted, held)
        if claiming.fits() < len(claiming.fresh) and _end_dead_in(connection, run.scope, now):
            claiming.decide(wanted, _held(connection, wanted))
        claiming.insert(claiming.fits())
        for number, keys in claiming.adoptable.items():
            claiming.adopt(number, keys)
        return claiming.claimed

    @writes
    def send(
        self, connection: Connection, run_id: str, owner: str, at_most: Mapping[int, int], budget: int | None
    ) -> tuple[set[int], bool]:
        """Mark requests as sent, just before an attempt leaves, with the most that each may have cost after it. Where
        that is more than was reserved, more is reserved.

        Returns those that may leave, and whether the budget does not cover one of the others. A request that is not
        returned is another owner's by now."""
        now = self._clock()
        marked = _marked_sent(connection, owner, at_most, now)
        unmarked = [number for number in at_most if number not in marked]
        if not unmarked:
            return marked, False
        run = self._runs.find(connection, run_id)
        lock_budget(connection, run)
        own = connection.execute(_OWN, {"keys": unmarked, "of_owner": owner}).all()
        lacking = {row.id: at_most[row.id] - row.booked for row in own if row.booked < at_most[row.id]}
        more = sum(lacking.values())
        if budget is not None and booked_against(connection, run) + more > budget:
            _end_dead_in(connection, run.scope, now)
            if booked_against(connection, run) + more > budget:
                return marked, True
        if lacking:
            reserve(connection, run, more, budget)
            connection.execute(_RAISE, [{"at": number, "most": at_most[number]} for number in sorted(lacking)])
        return marked | _marked_sent(connection, owner, {row.id: at_most[row.id] for row in own}, now), False

    @writes
    def record(self, connection: Connection, run_id: str, replies: Collection[Reply]) -> dict[str, dict[str, Any]]:
        """Store answers and book what they cost, also of requests that were closed meanwhile.

        Returns the stored answer of each question that another request had answered before: that is the one to use."""
        run, by_number = self._runs.find(connection, run_id), {reply.request: reply for reply in replies}
        if not by_number:
            return {}
        lock_scope(connection, run.scope)
        rows = {row.id: row for row in _locked(connection, by_number)}
        for number, reply in by_number.items():
            if number not in rows and (reply.answers or reply.cost or reply.in_doubt):
                raise StoreError(f"request {number} is not in the store: claim questions before asking them")
            if number in rows and reply.overcharge > 1.0:
                higher = (oracles.c.id == rows[number].oracle, oracles.c.overcharge < reply.overcharge)
                connection.execute(update(oracles).where(*higher).values(overcharge=reply.overcharge))
        recording = _Recording(connection, [(rows[number], by_number[number]) for number in sorted(rows)])
        return recording.write(self._clock())

    @writes
    def release(self, connection: Connection, owner: str, numbers: Collection[int], *, uncharged: bool = False) -> int:
        """Give requests up, and their questions back. What was sent may have been charged, so what is in doubt stays
        booked, unless it is known to be `uncharged`. One that a batch holds is left to be adopted. Returns what stays
        in doubt."""
        own = connection.execute(_OWN, {"keys": sorted(set(numbers)), "of_owner": owner}).all() if numbers else []
        return _end(connection, own, self._clock(), uncharged=uncharged)

    @writes
    def note_batch(self, connection: Connection, owner: str, numbers: Collection[int], batch: str | None) -> None:
        """Note which of a provider's batches holds these requests, before it is sent; None once they are in no batch
        that may still be charged or collected. Leases are renewed."""
        changed: dict[str, Any] = {"batch": batch, "lease_until": self._clock() + requests.c.lease_seconds}
        if batch is not None:
            changed |= {"state": SENT, "in_doubt": requests.c.booked - requests.c.cost, "asked_at": self._clock()}
        for part in chunks(sorted(set(numbers))):
            own = update(requests).where(requests.c.id.in_(part), requests.c.owner == owner, requests.c.state != CLOSED)
            connection.execute(own.values(changed))

    @reads
    def overcharge(self, connection: Connection, respondent: Respondent) -> float:
        """How many times their bounds its requests may be charged; 1 where none was charged more."""
        of_oracle = oracles.c.digest == identity_digest(respondent.name, respondent.identity)
        return connection.execute(select(oracles.c.overcharge).where(of_oracle)).scalar() or 1.0

    @reads
    def in_batches(self, connection: Connection, keys: Sequence[str]) -> list[str]:
        """Those of the questions, in their order, that a provider's batch holds."""
        positions = positions_of(connection, keys)
        holders = _in_chunks(connection, _HOLDERS, sorted({number for number, _ in positions.values()}))
        numbers = {row.id for row in holders if row.batch is not None}
        return [key for key in keys if key in positions and positions[key][0] in numbers]

    @reads
    def positions(self, connection: Connection, keys: Collection[str]) -> dict[str, tuple[int, int]]:
        """To which request and position each of the questions leads."""
        return positions_of(connection, keys)

    @reads
    def lookup(self, connection: Connection, keys: Collection[str]) -> dict[str, StoredAnswer]:
        """The answers that are stored, by key."""
        return stored_answers(connection, keys)

    @reads
    def answers(self, connection: Connection, keys: Collection[str]) -> dict[str, dict[str, Any]]:
        """The same without who has paid for them."""
        return {key: stored.answer for key, stored in stored_answers(connection, keys).items()}

    @reads
    def count(self, connection: Connection, scope: str | None = None) -> int:
        """How many answers are stored, or how many of them the runs of a scope have paid for."""
        total = select(sa.func.coalesce(sa.func.sum(requests.c.answered - requests.c.dropped), 0))
        if scope is not None:
            of_scope = select(runs.c.id).join(scopes, scopes.c.id == runs.c.scope)
            total = total.where(requests.c.run.in_(of_scope.where(scopes.c.scope == storable(scope))))
        return int(connection.execute(total.where(requests.c.kind.not_in((PROBE, COMPUTED)))).scalar_one())


def positions_of(connection: Connection, keys: Collection[str]) -> dict[str, tuple[int, int]]:
    """To which request and position each of the questions leads."""
    found = _in_chunks(connection, _POSITIONS, [bytes.fromhex(key) for key in keys])
    return {key.hex(): (request, position) for key, request, position in found}


def stored_answers(connection: Connection, keys: Collection[str]) -> dict[str, StoredAnswer]:
    at, found = positions_of(connection, keys), dict[str, StoredAnswer]()
    wanted = defaultdict[int, list[tuple[str, int]]](list)
    for key, (number, position) in at.items():
        wanted[number].append((key, position))
    for row in _in_chunks(connection, _ANSWERS, sorted(wanted)):
        entries = decode(row.content)
        for key, position in wanted[row.id]:
            if (entry := entries[position]) is not None:
                found[key] = StoredAnswer(entry[1], row.run, row.scope, row.kind, row.answered_at)
    return found


def drop_answer(connection: Connection, key: str) -> None:
    """Take a question from the request that has answered it: the answer stays in the books, the question is open."""
    if stored_answers(connection, [key]):
        _drop(connection, positions_of(connection, [key])[key][0], [key])


def end_open_requests(connection: Connection, now: float) -> None:
    """In the copy of a store no owner will ever close them."""
    _end(connection, connection.execute(_OPEN).all(), now)


def identity_digest(name: str, identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([storable(name), dict(identity)], sort_keys=True).encode()).hexdigest()


_ORACLE = select(oracles.c.id).where(oracles.c.digest == bindparam("of_digest"))


def _oracle_row(connection: Connection, respondent: Respondent) -> int:
    digest = identity_digest(respondent.name, respondent.identity)
    number = connection.execute(_ORACLE, {"of_digest": digest}).scalar()
    if number is None:
        new = {"digest": digest, "name": respondent.name, "identity": dict(respondent.identity)}
        insert_new(connection, oracles, [new])
        number = connection.execute(_ORACLE, {"of_digest": digest}).scalar_one()
    return int(number)


def _in_chunks(connection: Connection, statement: Any, values: Sequence[Any]) -> list[Row[Any]]:
    return [row for part in chunks(values) for row in connection.execute(statement, {"keys": part}).all()]


def _locked(connection: Connection, numbers: Iterable[int]) -> list[Row[Any]]:
    """These requests, locked until the transaction ends."""
    return _in_chunks(connection, _LOCKED, sorted(numbers))


_Held = dict[str, tuple[int, Row[Any]]]  # by key: position and request


def _held(connection: Connection, wanted: Iterable[Wanted]) -> _Held:
    at = positions_of(connection, [key for request in wanted for key in request.keys])
    rows = {row.id: row for row in _in_chunks(connection, _HOLDERS, sorted({number for number, _ in at.values()}))}
    return {key: (position, rows[number]) for key, (number, position) in at.items() if number in rows}


class _Claiming:
    """One claim: what is decided about the requests that are wanted, within one transaction."""

    def __init__(self, connection: Connection, run: RunRow, oracle: int, terms: ClaimTerms, now: float) -> None:
        self._connection, self._run, self._oracle, self._terms, self._now = connection, run, oracle, terms, now
        self.claimed = Claimed()
        self.fresh: list[Wanted] = []  # with questions that nobody asks
        self.adoptable: defaultdict[int, list[str]] = defaultdict(list)  # by request that a batch holds
        self._earlier: dict[str, int] = {}  # of questions that are asked again: the request that has answered them

    def decide(self, wanted: Sequence[Wanted], held: _Held) -> None:
        self.claimed, self.fresh, self.adoptable = Claimed(), [], defaultdict(list)
        own, seen, again = dict[int, Row[Any]](), set[str](), self._terms.again
        for request in wanted:
            keys = []
            for key in dict.fromkeys(request.keys):
                if key in seen:
                    continue
                seen.add(key)
                if key not in held:
                    keys.append(key)
                    continue
                position, row = held[key]
                if row.state == CLOSED or (row.answered and decode(row.content)[position] is not None):
                    if key in again and row.answered_at < again[key]:
                        self._earlier[key] = row.id
                        keys.append(key)
                    else:
                        self.claimed.known.add(key)
                elif row.token == self._terms.token:  # this very call was committed, only its acknowledgement was lost
                    own[row.id] = row
                elif row.batch is not None and row.owner == NOBODY:
                    self.adoptable[row.id].append(key)
                else:
                    self.claimed.held.add(key)
            if keys:
                self.fresh.append(Wanted(tuple(keys), request.bound, request.kind))
        self.claimed.granted = [
            Granted(row.id, tuple(split_keys(row.keys)), row.booked, is_adopted=row.batch is not None)
            for row in own.values()
        ]

    def fits(self) -> int:
        """How many of the requests, from the first on, the budget covers."""
        if self._terms.budget is None:
            return len(self.fresh)
        left = max(self._terms.budget - booked_against(self._connection, self._run), 0)
        return sum(1 for total in accumulate(request.bound for request in self.fresh) if total <= left)

    def insert(self, fits: int) -> None:
        """Reserve and insert so many of the requests. One that loses a question to a process that was faster is given
        up, and its questions are held."""
        new, self.claimed.refused = self.fresh[:fits], self.fresh[fits:]
        if not new:
            return
        connection = self._connection
        reserve(connection, self._run, sum(wanted.bound for wanted in new), self._terms.budget)
        rows = [self._row(wanted.keys, kind=storable(wanted.kind), booked=wanted.bound) for wanted in new]
        numbers = connection.execute(_INSERT, rows).scalars().all()
        granted = [Granted(number, wanted.keys, wanted.bound) for number, wanted in zip(numbers, new, strict=True)]
        dropped = defaultdict[int, list[str]](list)
        for key in (key for wanted in new for key in wanted.keys if key in self._earlier):
            dropped[self._earlier[key]].append(key)
        for number, keys in sorted(dropped.items()):
            _drop(connection, number, keys)
        leads = {key: (grant.request, place) for grant in granted for place, key in enumerate(grant.keys)}
        if _lead(connection, leads) < len(leads):
            at = positions_of(connection, list(leads))
            lost = {number for key, (number, _) in leads.items() if at.get(key, (0, 0))[0] != number}
            self.claimed.held.update(key for grant in granted if grant.request in lost for key in grant.keys)
            _end(connection, _in_chunks(connection, _HOLDERS, sorted(lost)), self._now)
            granted = [grant for grant in granted if grant.request not in lost]
        self.claimed.granted += granted

    def adopt(self, number: int, wanted: Sequence[str]) -> None:
        """Take over these questions of a request that a provider's batch holds, with their share of what it has booked.
        Within one scope they are paid for already, whatever the budget; the budget of another scope must cover them."""
        connection, run, terms = self._connection, self._run, self._terms
        scope = connection.execute(select(runs.c.scope).join(requests).where(requests.c.id == number)).scalar()
        is_free = scope == run.scope or (scope is not None and lock_free_scopes(connection, [scope]))
        holder = connection.execute(_OWN, {"keys": [number], "of_owner": NOBODY}).one_or_none() if is_free else None
        left = [] if holder is None else _unanswered(connection, holder)
        mine = [key for key in left if key in wanted]
        if holder is None or not mine:  # the books of its scope are in use, or somebody was faster
            self.claimed.held.update(wanted)
            return
        share = -(-holder.in_doubt * len(mine) // len(left))
        budget = terms.budget if scope != run.scope else None
        if budget is not None and booked_against(connection, run) + share > budget:
            self.claimed.refused.append(Wanted(tuple(mine), share, holder.kind))
            return
        row = self._row(mine, kind=holder.kind, booked=share, in_doubt=share)
        row |= {"oracle": holder.oracle, "state": SENT, "batch": holder.batch, "asked_at": holder.asked_at}
        adopted = int(connection.execute(_INSERT, [row]).scalar_one())
        _give_back(connection, number, mine)
        _lead(connection, {key: (adopted, place) for place, key in enumerate(mine)})
        given = share
        if len(mine) < len(left):
            connection.execute(_PART_WITH, {"at": number, "share": share})
        else:  # what was answered stays with the run that has paid for it
            connection.execute(_END, {"at": number, "new_booked": holder.cost, "new_in_doubt": 0})
            given = holder.booked - holder.cost
        changes = Counter({run.run: share})
        changes[holder.run] -= given
        add_booked(connection, changes)
        self.claimed.granted.append(Granted(adopted, tuple(mine), share, is_adopted=True))

    def _row(self, keys: Sequence[str], **changes: Any) -> dict[str, Any]:
        terms = self._terms
        row: dict[str, Any] = dict.fromkeys((*_COUNTS, "cost", "answered", "dropped"), 0)
        row |= {"run": self._run.run, "oracle": self._oracle, "state": RESERVED, "batch": None}
        row |= {"owner": terms.owner, "token": terms.token, "asked_at": self._now, "lease_seconds": terms.lease_seconds}
        row |= {"lease_until": self._now + terms.lease_seconds, "questions": len(keys), "keys": joined_keys(keys)}
        return row | changes


def _lead(connection: Connection, leads: Mapping[str, tuple[int, int]]) -> int:
    """Let these questions, which lead nowhere, lead to requests and positions; how many did, for others may be faster.
    In the order of the keys: two transactions that want the same ones never wait for each other."""
    rows = [{"key": bytes.fromhex(key), "request": at[0], "position": at[1]} for key, at in leads.items()]
    return insert_new(connection, questions, sorted(rows, key=itemgetter("key")))


def _give_back(connection: Connection, number: int, keys: Sequence[str]) -> int:
    """Have these questions lead to the request no more: they are open again. How many did lead to it."""
    parts = chunks([bytes.fromhex(key) for key in keys])
    return sum(connection.execute(_GIVE_BACK, {"keys": part, "of": number}).rowcount for part in parts)


def _drop(connection: Connection, number: int, keys: Sequence[str]) -> None:
    """Take answered questions from a request, which keeps their answers in the books."""
    connection.execute(_DROP, {"at": number, "more_dropped": _give_back(connection, number, keys)})


def _entries(row: Row[Any]) -> list[Any]:
    """Questions and answers by position."""
    return decode(row.content) if row.content else [None] * row.questions


def _without_answer(row: Row[Any], entries: Sequence[Entry | None]) -> list[str]:
    return [key for key, entry in zip(split_keys(row.keys), entries, strict=True) if entry is None]


def _unanswered(connection: Connection, row: Row[Any]) -> list[str]:
    """The questions that still lead to an open request and that it has not answered."""
    keys = _without_answer(row, _entries(row))
    at = positions_of(connection, keys)
    return [key for key in keys if key in at and at[key][0] == row.id]


def _marked_sent(connection: Connection, owner: str, at_most: Mapping[int, int], now: float) -> set[int]:
    terms = {"of_owner": owner, "now": now}
    requested = sorted(at_most.items())
    return {at for at, most in requested if connection.execute(_SEND, {"at": at, "most": most, **terms}).rowcount}


def _end_all(connection: Connection, scope: int, search: Any, values: Mapping[str, Any], now: float) -> bool:
    """End these requests, as far as their scopes are not in use; whether there were any."""
    seen = connection.execute(search, values).all()
    if not seen:
        return False
    locked = {scope, *lock_free_scopes(connection, [row.scope for row in seen if row.scope != scope])}
    # A row that another transaction has locked is being closed by it.
    rows = connection.execute(search.with_for_update(of=requests, skip_locked=True), values).all()
    _end(connection, [row for row in rows if row.scope in locked], now)
    return True


def _end_dead_in(connection: Connection, scope: int, now: float) -> bool:
    owners = connection.execute(_OWNERS_IN_SCOPE, {"in_scope": scope}).scalars()
    dead = sorted(owner for owner in owners if is_dead(owner))
    return bool(dead) and _end_all(connection, scope, _OF_OWNERS, {"owners": dead}, now)


def _end(connection: Connection, rows: Iterable[Row[Any]], now: float, *, uncharged: bool = False) -> int:
    """Give back the questions that have no answer. What was never sent is deleted; what was sent stays, with what is in
    doubt. Returns that."""
    changes, in_doubt = Counter[int](), 0
    for row in rows:
        if row.batch is not None and now - row.asked_at < COLLECTABLE_SECONDS:
            connection.execute(_LEAVE, {"at": row.id})
            in_doubt += row.booked - row.cost
            continue
        _give_back(connection, row.id, _without_answer(row, _entries(row)))
        may_be_charged = row.state == SENT and not uncharged
        doubt = row.in_doubt if may_be_charged else 0
        if row.answered or row.cost or may_be_charged:
            connection.execute(_END, {"at": row.id, "new_booked": row.cost + doubt, "new_in_doubt": doubt})
        else:
            connection.execute(_DELETE, {"at": row.id})
        changes[row.run] += row.cost + doubt - row.booked
        in_doubt += doubt
    add_booked(connection, changes)
    return in_doubt


class _Recording:
    """Replies that are stored within one transaction, in which their requests are locked."""

    def __init__(self, connection: Connection, replies: Sequence[tuple[Row[Any], Reply]]) -> None:
        self._connection = connection
        self._replies = replies
        self._at = positions_of(connection, [reply.keys[place] for _, reply in replies for place in reply.answers])
        own = {row.id: row for row, _ in replies}
        others = _locked(connection, {number for number, _ in self._at.values()} - own.keys())
        self._entries = {row.id: _entries(row) for row in [*own.values(), *others]}  # by request
        self._earlier: dict[str, dict[str, Any]] = {}

    def write(self, now: float) -> dict[str, dict[str, Any]]:
        """Returns the answers by others that came first."""
        changes, written = Counter[int](), list[dict[str, Any]]()
        for row, reply in self._replies:
            values = self._values(row, reply, now)
            changes[row.run] += values["booked"] - row.booked
            if values["state"] == CLOSED != row.state and not (values["answered"] or values["booked"]):
                self._connection.execute(_DELETE, {"at": row.id})  # nothing is left of it
            else:
                written.append({"at": row.id} | {f"new_{name}": value for name, value in values.items()})
        if written:
            self._connection.execute(_RECORD, written)
        add_booked(self._connection, changes)
        return self._earlier

    def _values(self, row: Row[Any], reply: Reply, now: float) -> dict[str, Any]:
        entries = self._entries[row.id]
        new = {place: entry for place, entry in reply.answers.items() if entries[place] is None}
        dropped = self._lead_here(row.id, {reply.keys[place]: place for place in reply.answers}, new)
        for place, entry in new.items():
            entries[place] = entry
        closes = reply.closes or row.state == CLOSED or None not in entries
        if closes and row.state != CLOSED:
            _give_back(self._connection, row.id, _without_answer(row, entries))
        cost = reply.cost + (_settled(self._connection, row.id) if row.state == CLOSED else 0)
        spent = cost + reply.in_doubt
        kept = _FORGOTTEN if closes else {name: getattr(row, name) for name in _FORGOTTEN}
        content = {name: getattr(row, name) for name in _CONTENT}
        if new:
            encoded = encode(entries)
            content = {"answered_at": now, "content": encoded, "checksum": checksum(encoded)}
        return {
            **{name: getattr(reply, name) for name in _COUNTS},
            **kept,
            **content,
            "state": CLOSED if closes else SENT,
            "cost": cost,
            "booked": spent if closes else max(row.booked, spent),
            "answered": len(entries) - entries.count(None),
            "dropped": row.dropped + dropped,
        }

    def _lead_here(self, number: int, places: Mapping[str, int], new: Collection[int]) -> int:
        """Let the questions that were just answered lead to their answers; returns how many of these others have
        answered before."""
        dropped, leads = 0, dict[str, tuple[int, int]]()
        for key, place in places.items():
            holder, position = self._at.get(key, (None, 0))
            if holder == number:
                continue
            if holder is not None and (answer := self._entries[holder][position]) is not None:
                self._earlier[key] = answer[1]
                dropped += place in new
            elif place in new:
                if holder is not None:  # whoever asks it now will hear of this answer
                    _give_back(self._connection, holder, [key])
                leads[key] = self._at[key] = number, place
        _lead(self._connection, leads)
        return dropped


def _settled(connection: Connection, number: int) -> int:
    """What was settled of it by hand stays booked beside a late answer."""
    query = select(sa.func.coalesce(sa.func.sum(settlements.c.cost), 0)).where(settlements.c.request == number)
    return int(connection.execute(query).scalar_one())
