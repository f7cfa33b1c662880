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

from sqlalchemy import (
    BigInteger,
    Connection,
    Double,
    Row,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

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
    scope_row,
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


_OPEN = (
    select(requests, runs.c.scope)
    .join(runs, runs.c.id == requests.c.run)
    # Written out, so that the databases see that the partial index serves the query.
    .where(requests.c.state != literal_column(f"'{CLOSED}'"))
    .order_by(requests.c.id)
)
_OVER = or_(
    requests.c.batch.is_(None),
    requests.c.owner != NOBODY,
    requests.c.asked_at <= bindparam("now", type_=Double) - COLLECTABLE_SECONDS,
)
_UNORDERED = _OPEN.order_by(None)  # by the index of open requests, not by that of all
_EXPIRED = _UNORDERED.where(requests.c.lease_until <= bindparam("now", type_=Double), _OVER)
_OF_OWNERS = _UNORDERED.where(requests.c.owner.in_(bindparam("owners", expanding=True)))
_OWN = _OPEN.where(requests.c.id.in_(KEYS), requests.c.owner == bindparam("of_owner"))
_OWNERS_IN_SCOPE = (
    select(requests.c.owner)
    .distinct()
    .join(runs, runs.c.id == requests.c.run)
    .where(requests.c.state != literal_column(f"'{CLOSED}'"), runs.c.scope == bindparam("in_scope"))
)
# No lease is longer than its own length from now: one that is was written by a clock that was ahead.
_SHORTEN = (
    update(requests)
    .where(
        requests.c.state != literal_column(f"'{CLOSED}'"),
        requests.c.lease_until > bindparam("now", type_=Double) + requests.c.lease_seconds + 1,
    )
    .values(lease_until=bindparam("now", type_=Double) + requests.c.lease_seconds)
)
_POSITIONS = select(questions.c.key, questions.c.request, questions.c.position).where(questions.c.key.in_(KEYS))
_HOLDERS = select(requests, runs.c.scope).join(runs, runs.c.id == requests.c.run).where(requests.c.id.in_(KEYS))
_ANSWERS = (
    select(requests.c.id, requests.c.content, requests.c.run, runs.c.scope, requests.c.kind, requests.c.answered_at)
    .join(runs, runs.c.id == requests.c.run)
    .where(requests.c.id.in_(KEYS), requests.c.content.is_not(None))
)
_GIVE_BACK = delete(questions).where(questions.c.key.in_(KEYS), questions.c.request == bindparam("of"))
_POINT = (
    update(questions)
    .where(questions.c.key == bindparam("of_key"), questions.c.request == bindparam("from_request"))
    .values(request=bindparam("to_request"), position=bindparam("to_position"))
)
_DROP = (
    update(requests)
    .where(requests.c.id == bindparam("at"))
    .values(dropped=requests.c.dropped + bindparam("more_dropped"))
)
_LEAVE = update(requests).where(requests.c.id == bindparam("at")).values(owner=NOBODY)
_END = (
    update(requests)
    .where(requests.c.id == bindparam("at"))
    .values(
        state=CLOSED,
        owner=NOBODY,
        token="",
        batch=None,
        keys=None,
        booked=bindparam("new_booked"),
        in_doubt=bindparam("new_in_doubt"),
    )
)
_PART_WITH = (
    update(requests)
    .where(requests.c.id == bindparam("at"))
    .values(booked=requests.c.booked - bindparam("share"), in_doubt=requests.c.in_doubt - bindparam("share"))
)
_SCOPE_OF = select(runs.c.scope).join(requests, requests.c.run == runs.c.id).where(requests.c.id == bindparam("at"))
_DELETE = delete(requests).where(requests.c.id == bindparam("at"))
_MOST = bindparam("most", type_=BigInteger)
_SEND = (
    update(requests)
    .where(
        requests.c.id == bindparam("at"),
        requests.c.owner == bindparam("of_owner"),
        requests.c.state != CLOSED,
        requests.c.booked >= _MOST,
    )
    .values(
        state=SENT,
        lease_until=bindparam("now", type_=Double) + requests.c.lease_seconds,
        # Never less than before: whoever sends again knows perhaps not of all that has left.
        in_doubt=case(
            (requests.c.cost + requests.c.in_doubt < _MOST, _MOST - requests.c.cost), else_=requests.c.in_doubt
        ),
    )
)
_COUNTS = ("cost", "in_doubt", "attempts", "input_tokens", "output_tokens", "seconds")
_WRITTEN = (*_COUNTS, "state", "owner", "token", "batch", "keys", "booked", "answered", "dropped")
_RECORD = (
    update(requests)
    .where(requests.c.id == bindparam("at"))
    .values({name: bindparam(f"new_{name}", type_=requests.c[name].type) for name in _WRITTEN})
)
_WITH_CONTENT = _RECORD.values({name: bindparam(f"new_{name}") for name in ("answered_at", "content", "checksum")})


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
        oracle = _oracle_row(connection, respondent)
        lock_budget(connection, run)
        connection.execute(_SHORTEN, {"now": now})
        _end_all(connection, run.scope, _EXPIRED, {"now": now}, now)
        held = _held(connection, wanted)
        if dead := {holder.owner for _, holder in held.values() if holder.state != CLOSED and is_dead(holder.owner)}:
            _end_all(connection, run.scope, _OF_OWNERS, {"owners": sorted(dead)}, now)
            held = _held(connection, wanted)
        new = _NewRequests(run=run.run, oracle=oracle, terms=terms, now=now)
        claimed, fresh, adoptable = _decide(wanted, held, terms)
        fits = _fitting(connection, run, fresh, terms.budget)
        if fits < len(fresh) and _end_dead_in(connection, run.scope, now):
            claimed, fresh, adoptable = _decide(wanted, _held(connection, wanted), terms)
            fits = _fitting(connection, run, fresh, terms.budget)
        claimed.refused = [request for request, _ in fresh[fits:]]
        if fits:
            reserve(connection, run, sum(request.bound for request, _ in fresh[:fits]), terms.budget)
            new.insert(connection, fresh[:fits], claimed)
        for number, keys in adoptable.items():
            _adopt(connection, run, number, keys, new, claimed)
        return claimed

    def send(self, run_id: str, owner: str, at_most: Mapping[int, int], budget: int | None) -> tuple[set[int], bool]:
        """Mark requests as sent, just before an attempt leaves, with the most that each may have cost after it. Where
        that is more than was reserved, more is reserved.

        Returns those that may leave, and whether the budget does not cover one of the others. A request that is not
        returned is another owner's by now."""
        marked = self._mark_sent(owner, at_most)
        more = {number: most for number, most in at_most.items() if number not in marked}
        if not more:
            return marked, False
        raised, is_refused = self._raise_and_send(run_id, owner, more, budget)
        return marked | raised, is_refused

    @writes
    def _mark_sent(self, connection: Connection, owner: str, at_most: Mapping[int, int]) -> set[int]:
        return _marked_sent(connection, owner, at_most, self._clock())

    @writes
    def _raise_and_send(
        self, connection: Connection, run_id: str, owner: str, at_most: Mapping[int, int], budget: int | None
    ) -> tuple[set[int], bool]:
        run, now = self._runs.find(connection, run_id), self._clock()
        lock_budget(connection, run)
        own = connection.execute(_OWN.with_for_update(of=requests), {"keys": list(at_most), "of_owner": owner}).all()
        lacking = {row.id: at_most[row.id] - row.booked for row in own if row.booked < at_most[row.id]}
        more = sum(lacking.values())
        if budget is not None and booked_against(connection, run) + more > budget:
            _end_dead_in(connection, run.scope, now)
            if booked_against(connection, run) + more > budget:
                return set(), True
        if lacking:
            reserve(connection, run, more, budget)
            raised = update(requests).where(requests.c.id == bindparam("at")).values(booked=bindparam("most"))
            connection.execute(raised, [{"at": number, "most": at_most[number]} for number in sorted(lacking)])
        return _marked_sent(connection, owner, {row.id: at_most[row.id] for row in own}, now), False

    @writes
    def record(self, connection: Connection, run_id: str, replies: Collection[Reply]) -> dict[str, dict[str, Any]]:
        """Store answers and book what they cost, also of requests that were closed meanwhile.

        Returns the stored answer of each question that another request had answered before: that is the one to use."""
        run, now = self._runs.find(connection, run_id), self._clock()
        by_number = {reply.request: reply for reply in replies}
        if not by_number:
            return {}
        lock_scope(connection, run.scope)
        locked = _HOLDERS.with_for_update(of=requests).order_by(requests.c.id)
        rows = {row.id: row for row in _in_chunks(connection, locked, sorted(by_number))}
        for number, reply in by_number.items():
            if number not in rows and (reply.answers or reply.cost or reply.in_doubt):
                raise StoreError(f"request {number} is not in the store: claim questions before asking them")
            if number in rows and reply.overcharge > 1.0:
                higher = (oracles.c.id == rows[number].oracle, oracles.c.overcharge < reply.overcharge)
                connection.execute(update(oracles).where(*higher).values(overcharge=reply.overcharge))
        return _Recording(connection, now).record([(rows[number], by_number[number]) for number in sorted(rows)])

    @writes
    def release(self, connection: Connection, owner: str, numbers: Collection[int], *, uncharged: bool = False) -> int:
        """Give requests up, and their questions back. What was sent may have been charged, so what is in doubt stays
        booked, unless it is known to be `uncharged`. One that a batch holds is left to be adopted. Returns what stays
        in doubt."""
        values = {"keys": sorted(set(numbers)), "of_owner": owner}
        own = connection.execute(_OWN.with_for_update(of=requests), values).all() if numbers else []
        return _end(connection, own, self._clock(), uncharged=uncharged)

    @writes
    def note_batch(self, connection: Connection, owner: str, numbers: Collection[int], batch: str | None) -> None:
        """Note which of a provider's batches holds these requests, before it is sent; None once they are in no batch
        that may still be charged or collected. Leases are renewed."""
        changed: dict[str, Any] = {"batch": batch, "lease_until": self._clock() + requests.c.lease_seconds}
        if batch is not None:
            changed |= {"state": SENT, "in_doubt": requests.c.booked - requests.c.cost, "asked_at": self._clock()}
        own = (requests.c.owner == owner, requests.c.state != CLOSED)
        for part in chunks(sorted(set(numbers))):
            connection.execute(update(requests).where(requests.c.id.in_(part), *own).values(changed))

    @writes
    def take_over(self, connection: Connection, account: str, run_id: str) -> int:
        """Book to the run what was spent in the scope `account` before the run existed, such as probing a server, and
        what is reserved there; from now on the account is the run's scope. Returns what was paid of it."""
        run = self._runs.find(connection, run_id)
        scope = scope_row(connection, account)
        for at in sorted({scope, run.scope}):
            lock_scope(connection, at)
        _end_dead_in(connection, scope, self._clock())
        taken = (runs.c.scope.in_([scope, run.scope]), runs.c.flow == PROBE, runs.c.id != run.run)
        probes = {row.id: row.booked for row in connection.execute(select(runs.c.id, runs.c.booked).where(*taken))}
        of_probes = requests.c.run.in_(list(probes))
        paid = connection.execute(select(func.sum(requests.c.cost)).where(of_probes)).scalar() or 0
        connection.execute(update(requests).where(of_probes).values(run=run.run))
        add_booked(connection, {run.run: sum(probes.values()), **{probe: -booked for probe, booked in probes.items()}})
        connection.execute(update(scopes).where(scopes.c.id == scope).values(taken_over_by=run.scope))
        empty = [*taken, runs.c.ended_at.is_not(None), ~exists().where(requests.c.run == runs.c.id)]
        connection.execute(delete(runs).where(*empty))
        return int(paid)

    @reads
    def overcharge(self, connection: Connection, respondent: Respondent) -> float:
        """How many times their bounds its requests may be charged; 1 where none was charged more."""
        of_oracle = oracles.c.digest == identity_digest(respondent.name, respondent.identity)
        return connection.execute(select(oracles.c.overcharge).where(of_oracle)).scalar() or 1.0

    @reads
    def in_batches(self, connection: Connection, keys: Sequence[str]) -> list[str]:
        """Those of the questions, in their order, that a provider's batch holds."""
        positions = positions_of(connection, keys)
        held = select(requests.c.id).where(requests.c.batch.is_not(None), requests.c.id.in_(KEYS))
        numbers = {row.id for row in _in_chunks(connection, held, sorted({at[0] for at in positions.values()}))}
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
        total = select(func.coalesce(func.sum(requests.c.answered - requests.c.dropped), 0))
        if scope is not None:
            of_scope = select(runs.c.id).join(scopes, scopes.c.id == runs.c.scope)
            total = total.where(requests.c.run.in_(of_scope.where(scopes.c.scope == storable(scope))))
        return int(connection.execute(total.where(requests.c.kind.not_in((PROBE, COMPUTED)))).scalar_one())


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
    at = positions_of(connection, [key]).get(key)
    if at is not None and stored_answers(connection, [key]):
        connection.execute(_GIVE_BACK, {"keys": [bytes.fromhex(key)], "of": at[0]})
        connection.execute(_DROP, {"at": at[0], "more_dropped": 1})


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
    return [row for part in chunks(values) for row in connection.execute(statement, {"keys": part})]


def positions_of(connection: Connection, keys: Collection[str]) -> dict[str, tuple[int, int]]:
    """To which request and position each of the questions leads."""
    found = _in_chunks(connection, _POSITIONS, [bytes.fromhex(key) for key in keys])
    return {key.hex(): (request, position) for key, request, position in found}


_Held = dict[str, tuple[int, Row[Any]]]  # by key: position and request


def _held(connection: Connection, wanted: Iterable[Wanted]) -> _Held:
    at = positions_of(connection, [key for request in wanted for key in request.keys])
    rows = {row.id: row for row in _in_chunks(connection, _HOLDERS, sorted({number for number, _ in at.values()}))}
    return {key: (position, rows[number]) for key, (number, position) in at.items() if number in rows}


_Fresh = list[tuple[Wanted, dict[str, int]]]  # with the requests that answered those of its questions asked again


def _decide(
    wanted: Sequence[Wanted], held: _Held, terms: ClaimTerms
) -> tuple[Claimed, _Fresh, Mapping[int, list[str]]]:
    """What to do with each request: the new ones, and the questions that can be adopted from requests in batches."""
    claimed, fresh, own = Claimed(), _Fresh(), dict[int, Row[Any]]()
    adoptable = defaultdict[int, list[str]](list)
    seen = set[str]()
    for request in wanted:
        keys, earlier = list[str](), dict[str, int]()
        for key in dict.fromkeys(request.keys):
            if key in seen:
                continue
            seen.add(key)
            if key not in held:
                keys.append(key)
                continue
            position, row = held[key]
            if row.state == CLOSED or (row.answered and decode(row.content)[position] is not None):
                if key in terms.again and row.answered_at < terms.again[key]:
                    earlier[key] = row.id
                    keys.append(key)
                else:
                    claimed.known.add(key)
            elif row.token == terms.token:  # this very call was committed, only its acknowledgement was lost
                own[row.id] = row
            elif row.batch is not None and row.owner == NOBODY:
                adoptable[row.id].append(key)
            else:
                claimed.held.add(key)
        if keys:
            fresh.append((Wanted(tuple(keys), request.bound, request.kind), earlier))
    claimed.granted = [Granted(row.id, tuple(split_keys(row.keys)), row.booked) for row in own.values()]
    return claimed, fresh, adoptable


def _fitting(connection: Connection, run: RunRow, fresh: _Fresh, budget: int | None) -> int:
    """How many of the requests, from the first on, the budget covers."""
    if budget is None:
        return len(fresh)
    left = max(budget - booked_against(connection, run), 0)
    return sum(1 for total in accumulate(request.bound for request, _ in fresh) if total <= left)


_INSERT = insert(requests).returning(requests.c.id, sort_by_parameter_order=True)


@dataclass(frozen=True, slots=True)
class _NewRequests:
    run: int
    oracle: int
    terms: ClaimTerms
    now: float

    def row(self, keys: Sequence[str], **changes: Any) -> dict[str, Any]:
        nothing = dict.fromkeys(("in_doubt", "cost", "attempts", "input_tokens", "output_tokens", "seconds"), 0)
        return {
            **nothing,
            "run": self.run,
            "oracle": self.oracle,
            "state": RESERVED,
            "owner": self.terms.owner,
            "token": self.terms.token,
            "lease_seconds": self.terms.lease_seconds,
            "lease_until": self.now + self.terms.lease_seconds,
            "questions": len(keys),
            "answered": 0,
            "dropped": 0,
            "asked_at": self.now,
            "keys": joined_keys(keys),
            "batch": None,
            **changes,
        }

    def insert(self, connection: Connection, fresh: _Fresh, claimed: Claimed) -> None:
        """A request that loses a question to a process that was faster is given up, and its questions are held."""
        rows = [self.row(wanted.keys, kind=storable(wanted.kind), booked=wanted.bound) for wanted, _ in fresh]
        numbers = connection.execute(_INSERT, rows).scalars().all()
        new, moves = list[dict[str, Any]](), list[_Move]()
        for number, (wanted, earlier) in zip(numbers, fresh, strict=True):
            for position, key in enumerate(wanted.keys):
                if key in earlier:
                    moves.append(_Move(bytes.fromhex(key), earlier[key], number, position))
                else:
                    new.append({"key": bytes.fromhex(key), "request": number, "position": position})
        # In the order of the keys: two transactions that want the same ones never wait for each other.
        moves.sort()
        new.sort(key=itemgetter("key"))
        if moves:
            drops = Counter(move.old for move in moves)
            connection.execute(_DROP, [{"at": old, "more_dropped": count} for old, count in sorted(drops.items())])
        moved = _point(connection, moves)
        inserted = insert_new(connection, questions, new)
        granted = [
            Granted(number, wanted.keys, wanted.bound) for number, (wanted, _) in zip(numbers, fresh, strict=True)
        ]
        if inserted < len(new) or moved < len(moves):
            granted = _without_lost(connection, granted, claimed, self.now)
        claimed.granted += granted


class _Move(NamedTuple):
    """A question that leads from one request to another from now on."""

    key: bytes
    old: int
    new: int
    position: int


def _point(connection: Connection, moves: Sequence[_Move]) -> int:
    """Let questions lead to other requests; how many did."""
    rows = [
        {"of_key": move.key, "from_request": move.old, "to_request": move.new, "to_position": move.position}
        for move in moves
    ]
    return connection.execute(_POINT, rows).rowcount if rows else 0


def _without_lost(connection: Connection, granted: Sequence[Granted], claimed: Claimed, now: float) -> list[Granted]:
    at = positions_of(connection, [key for grant in granted for key in grant.keys])
    kept = [grant for grant in granted if all(at.get(key, (0, 0))[0] == grant.request for key in grant.keys)]
    lost = {grant.request for grant in granted} - {grant.request for grant in kept}
    claimed.held.update(key for grant in granted if grant.request in lost for key in grant.keys)
    _end(connection, _in_chunks(connection, _OPEN.where(requests.c.id.in_(KEYS)), sorted(lost)), now)
    return kept


def _adopt(
    connection: Connection, run: RunRow, number: int, wanted: Sequence[str], new: _NewRequests, claimed: Claimed
) -> None:
    """Take over these questions of a request that a provider's batch holds, with their share of what it has booked.
    Within one scope they are paid for already, whatever the budget; the budget of another scope must cover them."""
    scope = connection.execute(_SCOPE_OF, {"at": number}).scalar()
    is_free = scope == run.scope or (scope is not None and lock_free_scopes(connection, [scope]))
    values = {"keys": [number], "of_owner": NOBODY}
    holder = connection.execute(_OWN.with_for_update(of=requests), values).one_or_none() if is_free else None
    left = [] if holder is None else _unanswered(connection, holder)
    mine = [key for key in left if key in wanted]
    if holder is None or not mine:  # the books of its scope are in use, or somebody was faster
        claimed.held.update(wanted)
        return
    booked = -(-holder.in_doubt * len(mine) // len(left))
    budget = new.terms.budget if scope != run.scope else None
    if budget is not None and booked_against(connection, run) + booked > budget:
        claimed.refused.append(Wanted(tuple(mine), booked, holder.kind))
        return
    row = new.row(mine, kind=holder.kind, booked=booked, in_doubt=booked)
    row |= {"oracle": holder.oracle, "state": SENT, "batch": holder.batch, "asked_at": holder.asked_at}
    adopted = int(connection.execute(_INSERT, [row]).scalar_one())
    _point(connection, [_Move(bytes.fromhex(key), holder.id, adopted, at) for at, key in enumerate(mine)])
    if len(mine) < len(left):
        connection.execute(_PART_WITH, {"at": holder.id, "share": booked})
    else:  # what was answered stays with the run that has paid for it
        connection.execute(_END, {"at": holder.id, "new_booked": holder.cost, "new_in_doubt": 0})
    changes = Counter({holder.run: -booked if len(mine) < len(left) else holder.cost - holder.booked})
    changes[run.run] += booked
    add_booked(connection, changes)
    claimed.granted.append(Granted(adopted, tuple(mine), booked, is_adopted=True))


def _unanswered(connection: Connection, row: Row[Any]) -> list[str]:
    """The questions that still lead to an open request and that it has not answered."""
    entries, keys = decode(row.content) if row.content else [], split_keys(row.keys)
    at = positions_of(connection, keys)
    return [
        key
        for position, key in enumerate(keys)
        if at.get(key) == (row.id, position) and (not entries or entries[position] is None)
    ]


def _marked_sent(connection: Connection, owner: str, at_most: Mapping[int, int], now: float) -> set[int]:
    terms = {"of_owner": owner, "now": now}
    return {
        number
        for number, most in sorted(at_most.items())
        if connection.execute(_SEND, {"at": number, "most": most, **terms}).rowcount
    }


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
    left, ended, deleted, changes, in_doubt = list[dict[str, Any]](), [], [], Counter[int](), 0
    for row in rows:
        if row.batch is not None and now - row.asked_at < COLLECTABLE_SECONDS:
            left.append({"at": row.id})
            in_doubt += row.booked - row.cost
            continue
        entries = decode(row.content) if row.content else []
        _give_back(connection, row, entries)
        doubt = row.in_doubt if row.state == SENT and not uncharged else 0
        if row.answered or row.cost or (row.state == SENT and not uncharged):
            ended.append({"at": row.id, "new_booked": row.cost + doubt, "new_in_doubt": doubt})
        else:
            deleted.append({"at": row.id})
        changes[row.run] += row.cost + doubt - row.booked
        in_doubt += doubt
    for statement, values in ((_LEAVE, left), (_END, ended), (_DELETE, deleted)):
        if values:
            connection.execute(statement, values)
    add_booked(connection, changes)
    return in_doubt


def _give_back(connection: Connection, row: Row[Any], entries: Sequence[Entry | None]) -> None:
    """The questions of a request that it has not answered are open again."""
    unanswered = [
        bytes.fromhex(key) for at, key in enumerate(split_keys(row.keys)) if not entries or entries[at] is None
    ]
    for part in chunks(unanswered):
        connection.execute(_GIVE_BACK, {"keys": part, "of": row.id})


class _Recording:
    """The answers of some replies, as they are stored."""

    def __init__(self, connection: Connection, now: float) -> None:
        self._connection = connection
        self._now = now
        self._earlier: dict[str, dict[str, Any]] = {}
        self._changes = Counter[int]()  # of what runs have booked

    def record(self, replies: Sequence[tuple[Row[Any], Reply]]) -> dict[str, dict[str, Any]]:
        keys = [reply.keys[position] for _, reply in replies for position in reply.answers]
        at = positions_of(self._connection, keys)
        others = sorted({number for number, _ in at.values()} - {row.id for row, _ in replies})
        locked = _HOLDERS.with_for_update(of=requests).order_by(requests.c.id)
        holders = {row.id: row for row in _in_chunks(self._connection, locked, others)} if others else {}
        holders |= {row.id: row for row, _ in replies}
        plain, with_content = list[dict[str, Any]](), list[dict[str, Any]]()
        for row, reply in replies:
            written = self._written(row, reply, at, holders)
            if written is not None:
                (with_content if "new_content" in written else plain).append(written)
        for statement, values in ((_RECORD, plain), (_WITH_CONTENT, with_content)):
            if values:
                self._connection.execute(statement, values)
        add_booked(self._connection, self._changes)
        return self._earlier

    def _written(
        self, row: Row[Any], reply: Reply, at: Mapping[str, tuple[int, int]], holders: Mapping[int, Row[Any]]
    ) -> dict[str, Any] | None:
        """The new values of a request; None where nothing is left of it."""
        entries = decode(row.content) if row.content else [None] * row.questions
        new = {position: entry for position, entry in reply.answers.items() if entries[position] is None}
        dropped = self._lead_here(row, reply, new, at, holders)
        for position, entry in new.items():
            entries[position] = entry
        closes = reply.closes or row.state == CLOSED or None not in entries
        if closes and row.state != CLOSED:
            _give_back(self._connection, row, entries)
        settled = _settled(self._connection, row.id) if row.state == CLOSED else 0
        cost = reply.cost + settled
        spent = cost + reply.in_doubt
        booked = spent if closes else max(row.booked, spent)
        self._changes[row.run] += booked - row.booked
        answered = len(entries) - entries.count(None)
        if closes and not (answered or spent or row.state == CLOSED):
            self._connection.execute(_DELETE, {"at": row.id})
            return None
        written = {f"new_{name}": getattr(reply, name) for name in _COUNTS}
        written |= {"at": row.id, "new_cost": cost, "new_booked": booked, "new_answered": answered}
        written |= {"new_state": CLOSED if closes else SENT, "new_dropped": row.dropped + dropped}
        kept = ("owner", "token", "batch", "keys")
        gone = {"owner": NOBODY, "token": "", "batch": None, "keys": None}
        written |= {f"new_{name}": gone[name] if closes else getattr(row, name) for name in kept}
        if new:
            content = encode(entries)
            written |= {"new_answered_at": self._now, "new_content": content, "new_checksum": checksum(content)}
        return written

    def _lead_here(
        self,
        row: Row[Any],
        reply: Reply,
        new: Mapping[int, Entry],
        at: Mapping[str, tuple[int, int]],
        holders: Mapping[int, Row[Any]],
    ) -> int:
        """Let the questions lead to their answers; returns how many of these others have answered before."""
        dropped, open_again = 0, []
        for position in new:
            key = reply.keys[position]
            number, place = at.get(key, (None, 0))
            if number == row.id:
                continue
            if number is None:  # it was given back, and nobody has asked since
                open_again.append({"key": bytes.fromhex(key), "request": row.id, "position": position})
                continue
            holder = holders[number]
            answer = decode(holder.content)[place] if holder.content else None
            if answer is not None:
                self._earlier[key] = answer[1]
                dropped += 1
            else:  # whoever asks it now will hear of this answer
                _point(self._connection, [_Move(bytes.fromhex(key), number, row.id, position)])
        insert_new(self._connection, questions, open_again)
        return dropped


def _settled(connection: Connection, number: int) -> int:
    """What was settled of it by hand stays booked beside a late answer."""
    query = select(func.coalesce(func.sum(settlements.c.cost), 0)).where(settlements.c.request == number)
    return int(connection.execute(query).scalar_one())
