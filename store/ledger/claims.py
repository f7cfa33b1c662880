"""Who may ask what. A claim reserves the price of a question and keeps others from asking it while its lease lasts.

Whoever settles or claims locks the balance of the scope first, then charges by key: nobody waits in a circle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Double,
    Row,
    Select,
    Text,
    bindparam,
    func,
    literal_column,
    select,
    update,
)

from store.ledger.runs import Balance, RunRow, lock_free_scopes, locked_balance, move, reserve
from store.schema import CLAIMED, LIVE, RELEASED, SENT, UNKNOWN, answers, charges, runs, storable
from store.sql import given, insert_or_nothing, listed

# Written out, so that the databases see that the partial indexes serve the query.
_IS_LIVE: ColumnElement[bool] = charges.c.state.in_([bindparam(None, s, literal_execute=True) for s in LIVE])


class Request(NamedTuple):
    """A question that a run wants to ask, and the most that it can cost."""

    key: str
    upper_bound: int
    oracle: str = ""
    kind: str = ""


@dataclass(slots=True)
class Claimed:
    """What became of each request."""

    granted: dict[str, int] = field(default_factory=dict)  # with its fence: ask these
    sent: set[str] = field(default_factory=set)  # of these, marked as sent already
    answered: list[str] = field(default_factory=list)  # an answer is kept by now
    held: list[str] = field(default_factory=list)  # someone else is asking
    refused: list[str] = field(default_factory=list)  # the budget does not allow it


class Terms(NamedTuple):
    """Under which a batch is claimed."""

    owner: str
    token: str
    lease_seconds: float
    budget: int | None
    now: float
    sending: int = 0  # so many are sent at once: the claim marks them


def claim(
    connection: Connection, run: RunRow, requests: Sequence[Request], terms: Terms, is_dead: Callable[[str], bool]
) -> Claimed:
    """Free what the dead have left, then claim in order what nobody has answered or holds, while the budget lasts.

    Once one does not fit the budget, nothing after it that costs anything is granted either."""
    balance = locked_balance(connection, run.scope)
    latest = _latest_charges(connection, sorted({request.key for request in requests}))
    holders = {row.owner for row in latest.values() if row.state in LIVE}
    ended, freed = _bury(connection, run.scope, filter(is_dead, holders), terms.now)
    result, wanted = _decide(requests, latest, ended, terms, balance + freed)
    if result.refused:  # the dead may hold more of the budget
        spenders = connection.execute(_OWNERS_IN, {"in_scope": run.scope}).scalars().all()
        more, freed_more = _bury(connection, run.scope, filter(is_dead, spenders), terms.now)
        result, wanted = _decide(requests, latest, ended | more, terms, balance + freed + freed_more)
    taken = _take(connection, run, [wanted[key] for key in sorted(wanted)], result, terms)
    for key in set(wanted) - taken:  # another process was quicker by a moment
        del result.granted[key]
        result.sent.discard(key)
        result.held.append(key)
    reserve(connection, run.scope, sum(wanted[key].upper_bound for key in taken), terms.budget)
    return result


def _decide(
    requests: Sequence[Request],
    latest: Mapping[str, Row[Any]],
    ended: Collection[tuple[str, int]],
    terms: Terms,
    balance: Balance,
) -> tuple[Claimed, dict[str, Request]]:
    """What to do with each request, and the ones that are to be claimed now."""
    result, wanted = Claimed(), dict[str, Request]()
    left = None if terms.budget is None else terms.budget - balance.spent - balance.reserved
    for request in {request.key: request for request in requests}.values():
        before = latest.get(request.key)
        if before is not None and before.answered:
            result.answered.append(request.key)
        elif before is not None and before.state in LIVE and (before.key, before.fence) not in ended:
            if before.token == terms.token:  # this very call was committed, only its acknowledgement was lost
                result.granted[request.key] = before.fence
                if before.state == SENT:
                    result.sent.add(request.key)
            else:
                result.held.append(request.key)
        elif left is not None and request.upper_bound > max(left, 0):
            result.refused.append(request.key)
            left = 0
        else:
            result.granted[request.key] = before.fence + 1 if before is not None else 1
            wanted[request.key] = request
            if len(result.sent) < terms.sending:
                result.sent.add(request.key)
            left = None if left is None else left - request.upper_bound
    return result, wanted


_WANTED = given(key=Text, fence=BigInteger, state=Text, oracle=Text, kind=Text, reserved=BigInteger)
_NEW_CHARGE: dict[str, ColumnElement[Any]] = {
    **dict(_WANTED.c.items()),
    "run": bindparam("of_run", type_=BigInteger),
    "owner": bindparam("mine", type_=charges.c.owner.type),
    "token": bindparam("of_token", type_=Text),
    "lease_seconds": bindparam("lease", type_=Double),
    "lease_until": bindparam("until", type_=Double),
    "claimed_at": bindparam("at", type_=Double),
    **{name: literal_column("0") for name in ("cost", "requests", "input_tokens", "output_tokens", "seconds")},
}
_TAKE = (
    insert_or_nothing(charges)
    .from_select(list(_NEW_CHARGE), select(*_NEW_CHARGE.values()).where(_WANTED.c.fence > 0))
    .returning(charges.c.key)
)


def _take(connection: Connection, run: RunRow, requests: Sequence[Request], decided: Claimed, terms: Terms) -> set[str]:
    """Enter the claims; the keys of those that nobody else has entered first."""
    if not requests:
        return set()
    fences, sent = decided.granted, decided.sent
    rows = [
        (key, fences[key], SENT if key in sent else CLAIMED, storable(oracle), storable(kind), bound)
        for key, bound, oracle, kind in requests
    ]
    values = {
        "rows": rows,
        "of_run": run.run,
        "mine": terms.owner,
        "of_token": terms.token,
        "lease": terms.lease_seconds,
        "until": terms.now + terms.lease_seconds,
        "at": terms.now,
    }
    return set(connection.execute(_TAKE, values).scalars().all())


_CLAIM_COLUMNS = (charges.c.key, charges.c.fence, charges.c.state, charges.c.reserved, runs.c.scope)
_LIVE_CLAIMS = select(*_CLAIM_COLUMNS).join(runs, runs.c.id == charges.c.run).where(_IS_LIVE).order_by(charges.c.key)
_MINE = _LIVE_CLAIMS.where(charges.c.key.in_(listed()), charges.c.owner == bindparam("mine")).with_for_update(
    of=charges
)
_ENDED = _LIVE_CLAIMS.where(charges.c.lease_until <= bindparam("now")).order_by(None)
_OF_OWNERS = _LIVE_CLAIMS.where(charges.c.owner.in_(bindparam("gone", expanding=True)))
_OWNERS_IN = (
    select(charges.c.owner)
    .distinct()
    .join(runs, runs.c.id == charges.c.run)
    .where(_IS_LIVE, runs.c.scope == bindparam("in_scope"))
)
# Every answer has a charge, so the charges tell which questions are answered.
_CHARGES = (
    select(*(charges.c[name] for name in ("key", "fence", "state", "owner", "token")), answers.c.id.label("answered"))
    .outerjoin(answers, answers.c.key == charges.c.key)
    .where(charges.c.key.in_(listed()))
    .order_by(charges.c.key, charges.c.fence)
)


def _bury(
    connection: Connection, scope: int, owners: Iterable[str], now: float
) -> tuple[set[tuple[str, int]], Balance]:
    """End the claims whose lease is over and those of these owners; which they were, and what the scope got back."""
    searches: list[tuple[Select[Any], dict[str, Any]]] = [(_ENDED, {"now": now})]
    if gone := list(owners):
        searches.append((_OF_OWNERS, {"gone": gone}))
    seen = [row for search, values in searches for row in connection.execute(search, values)]
    if not seen:
        return set(), Balance()
    free = {scope, *lock_free_scopes(connection, [row.scope for row in seen if row.scope != scope])}
    dead = {}
    for search, values in searches:  # a row that another transaction has locked is being settled by it
        for row in connection.execute(search.with_for_update(of=charges, skip_locked=True), values):
            if row.scope in free:
                dead[row.key, row.fence] = row
    return set(dead), _end(connection, list(dead.values()), now).get(scope, Balance())


def bury_dead(connection: Connection, scope: int, is_dead: Callable[[str], bool], now: float) -> None:
    """End the claims of the scope whose owners have died."""
    owners = connection.execute(_OWNERS_IN, {"in_scope": scope}).scalars().all()
    _bury(connection, scope, filter(is_dead, owners), now)


def _latest_charges(connection: Connection, keys: Sequence[str]) -> dict[str, Row[Any]]:
    return {row.key: row for row in connection.execute(_CHARGES, {"keys": keys}).all()}


_END = (
    update(charges)
    .where(charges.c.key == bindparam("of_key"), charges.c.fence == bindparam("of_fence"))
    .values(state=bindparam("now_state"), settled_at=bindparam("at"))
)
_SENT = (
    update(charges)
    .where(_IS_LIVE, charges.c.key.in_(listed()), charges.c.owner == bindparam("mine"))
    .values(state=SENT, lease_until=bindparam("at") + charges.c.lease_seconds)
    .returning(charges.c.key)
)


def _end(connection: Connection, claims: Sequence[Row[Any]], now: float) -> dict[int, Balance]:
    """Free the reservation of claims that were never sent; what was sent may have been charged, so it stays spent."""
    changes: dict[int, Balance] = {}
    ended = []
    for row in claims:
        state, kept = (UNKNOWN, row.reserved) if row.state == SENT else (RELEASED, 0)
        ended.append({"of_key": row.key, "of_fence": row.fence, "now_state": state, "at": now})
        changes[row.scope] = changes.get(row.scope, Balance()) + Balance(kept, -row.reserved)
    if ended:
        connection.execute(_END, ended)
        move(connection, changes)
    return changes


def _mine(connection: Connection, owner: str, keys: Iterable[str]) -> Sequence[Row[Any]]:
    """The owner's live claims among the keys, locked."""
    return connection.execute(_MINE, {"keys": sorted(set(keys)), "mine": owner}).all()


def sent(connection: Connection, owner: str, keys: Iterable[str], now: float) -> set[str]:
    """Note that these are about to be sent, and start their leases anew. A key missing from the result was lost."""
    return set(connection.execute(_SENT, {"keys": sorted(set(keys)), "mine": owner, "at": now}).scalars().all())


def release(connection: Connection, owner: str, keys: Iterable[str], now: float) -> None:
    """Give back claims for which nothing was charged, whether or not they had been marked as sent."""
    mine = _mine(connection, owner, keys)
    ended = [{"of_key": row.key, "of_fence": row.fence, "now_state": RELEASED, "at": now} for row in mine]
    if ended:
        connection.execute(_END, ended)
        changes: dict[int, Balance] = {}
        for row in mine:
            changes[row.scope] = changes.get(row.scope, Balance()) + Balance(0, -row.reserved)
        move(connection, changes)


def lost(connection: Connection, owner: str, keys: Iterable[str], now: float) -> None:
    """Give up claims at once rather than by their lease: what was sent becomes unknown and stays spent."""
    _end(connection, _mine(connection, owner, keys), now)


def end_every(connection: Connection, now: float) -> None:
    """End all claims, as when their owners have died: in a copy of a store nobody will ever settle them."""
    _end(connection, connection.execute(_LIVE_CLAIMS).all(), now)


def last_fence(connection: Connection, key: str) -> int:
    return connection.execute(select(func.max(charges.c.fence)).where(charges.c.key == key)).scalar() or 0


def renew(connection: Connection, owner: str, now: float) -> None:
    """Start all leases of the owner anew, for calls that take longer than one lease."""
    connection.execute(
        update(charges).where(_IS_LIVE, charges.c.owner == owner).values(lease_until=now + charges.c.lease_seconds)
    )
