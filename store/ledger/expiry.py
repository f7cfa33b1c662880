"""Ends claims whose lease has expired or whose owner has died: what was sent stays spent, the rest is released.

The lock on the caller's scope is held before; other scopes and charges are locked only if that needs no waiting."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, exists, literal_column, or_, select, update

from store.ledger.books import CHARGE, Balance, Charge, book, lock_free_scopes
from store.packed.claims import packed_owners, shorten_packed, take_out_all, take_out_ended
from store.schema import LIVE, RELEASED, SENT, UNKNOWN, charges, packed_claims, runs

# Written out, so that the databases see that the partial indexes serve the query.
IS_LIVE: ColumnElement[bool] = charges.c.state.in_([literal_column(f"'{s}'") for s in LIVE])
LIVE_CLAIMS = select(*CHARGE).join(runs, runs.c.id == charges.c.run).where(IS_LIVE).order_by(charges.c.key)
_EXPIRED = LIVE_CLAIMS.where(charges.c.lease_until <= bindparam("now")).order_by(None)
_EXPIRED_PACKED = exists().where(packed_claims.c.lease_until <= bindparam("now"))
_HAS_EXPIRED = select(or_(_EXPIRED_PACKED, exists().where(IS_LIVE, charges.c.lease_until <= bindparam("now"))))
_OF_OWNERS = LIVE_CLAIMS.where(charges.c.owner.in_(bindparam("owners", expanding=True)))
_OWNERS_IN_SCOPE = (  # `run + 0`: by the index of live claims, not by that of all charges of the runs
    select(charges.c.owner)
    .distinct()
    .join(runs, runs.c.id == charges.c.run + 0)
    .where(IS_LIVE, runs.c.scope == bindparam("in_scope"))
)
# No lease is longer than its own length from now: one that is was written by a clock that was ahead.
_AHEAD = (
    select(charges.c.key.label("of_key"), charges.c.fence.label("of_fence"), charges.c.lease_seconds)
    .where(IS_LIVE, charges.c.lease_until > bindparam("now") + charges.c.lease_seconds + 1)
    .with_for_update(skip_locked=True)
)
_SHORTEN = (
    update(charges)
    .where(charges.c.key == bindparam("of_key"), charges.c.fence == bindparam("of_fence"))
    .values(lease_until=bindparam("until"))
)
_END = (
    update(charges)
    .where(charges.c.key == bindparam("of_key"), charges.c.fence == bindparam("of_fence"))
    .values(state=bindparam("new_state"), in_doubt=bindparam("doubt"), settled_at=bindparam("at"))
)


def has_expired(connection: Connection, now: float) -> bool:
    """Whether the lease of any claim has. Nothing is locked."""
    return bool(connection.execute(_HAS_EXPIRED, {"now": now}).scalar())


def expire_claims(
    connection: Connection, scope: int, dead_owners: Iterable[str], now: float
) -> tuple[set[tuple[str, int]], Balance]:
    """End the claims whose lease has expired and those of dead owners; returns key and fence of each, and by how much
    the balance of the scope has changed."""
    owners = list(dead_owners)
    take_out_ended(connection, scope, owners, now, lock_free_scopes)
    searches: list[tuple[Select[Any], dict[str, Any]]] = [(_EXPIRED, {"now": now})]
    if owners:
        searches.append((_OF_OWNERS, {"owners": owners}))
    seen = [row for search, values in searches for row in connection.execute(search, values)]
    if not seen:
        return set(), Balance()
    locked = {scope, *lock_free_scopes(connection, [row.scope for row in seen if row.scope != scope])}
    expired = {}
    for search, values in searches:  # a row that another transaction has locked is being settled by it
        for row in connection.execute(search.with_for_update(of=charges, skip_locked=True), values):
            if row.scope in locked:
                expired[row.key, row.fence] = row
    return set(expired), end_claims(connection, list(expired.values()), now).get(scope, Balance())


def expire_dead_owners(connection: Connection, scope: int, now: float) -> tuple[set[tuple[str, int]], Balance]:
    """The same for all owners of claims in the scope that have died."""
    owners = set(connection.execute(_OWNERS_IN_SCOPE, {"in_scope": scope}).scalars())
    owners |= packed_owners(connection, scope)
    return expire_claims(connection, scope, filter(is_dead, owners), now)


def shorten_leases(connection: Connection, now: float) -> None:
    """Let leases that are further ahead than a lease can be expire as if they began now."""
    shorten_packed(connection, now)
    ahead = connection.execute(_AHEAD, {"now": now}).all()
    if ahead:
        rows = [{"of_key": row.of_key, "of_fence": row.of_fence, "until": now + row.lease_seconds} for row in ahead]
        connection.execute(_SHORTEN, rows)


def end_claims(
    connection: Connection, claims: Sequence[Row[Any]], now: float, *, uncharged: bool = False
) -> dict[int, Balance]:
    """Release claims that were never sent; one that was sent may have been charged, so it becomes unknown and what its
    requests may have cost stays spent, unless it is known to be `uncharged`. One that a provider's batch holds keeps
    its reservation spent in any case, until the batch is collected. Returns the changes of the balances."""
    changes, ended = [], []
    for row in claims:
        charge = Charge._make(row)
        state, in_doubt = (UNKNOWN, charge.in_doubt) if charge.state == SENT and not uncharged else (RELEASED, 0)
        if charge.batch is not None:
            state, in_doubt = UNKNOWN, charge.reserved
        ended.append({"of_key": charge.key, "of_fence": charge.fence, "new_state": state, "doubt": in_doubt, "at": now})
        changes.append((charge, charge._replace(state=state, in_doubt=in_doubt)))
    if ended:
        connection.execute(_END, ended)
    return book(connection, changes)


def end_all_claims(connection: Connection, now: float) -> None:
    """End every claim: in the copy of a store no owner will settle them."""
    take_out_all(connection)
    end_claims(connection, connection.execute(LIVE_CLAIMS).all(), now)


_MARK = "process"
_ENDED = {"Z", "X"}  # ended, but not yet collected by its parent


def new_owner() -> str:
    """A unique name that tells in which process it was made."""
    process = os.getpid()
    _state, started = _status(process) or ("", "0")
    return "/".join([_MARK, _machine(), str(process), started, uuid.uuid4().hex[:16]])


def is_dead(owner: str) -> bool:
    """Whether the owner is certainly dead: a process of this machine, since its last boot, that no longer runs."""
    fields = owner.split("/")
    if len(fields) != 5:
        return False
    mark, machine, process, started, _ = fields
    if mark != _MARK or machine != _machine() or not process.isdecimal() or started == "0":
        return False
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass  # it exists and belongs to another user
    status = _status(int(process))
    return status is not None and (status[0] in _ENDED or status[1] != started)


@cache
def _machine() -> str:
    """Host, boot and process namespace: only within the same three does a process number mean the same."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return f"{socket.gethostname()}~{uuid.uuid4().hex}"  # other processes cannot tell whether it lives
    return f"{socket.gethostname()}~{boot}~{namespace}".replace("/", "_")


def _status(process: int) -> tuple[str, str] | None:
    """State and start, in ticks since boot; None where that cannot be read."""
    try:
        line = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = line.rpartition(")")[2].split()
    return fields[0], fields[19]
