"""Questions in a provider's batch: the batch lives on without the process that sent it, and so does what it may cost.

What such a question keeps spent (an unknown charge with `batch`) becomes the reservation of whoever claims it next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Connection, Row, Text, update

from store.ledger.balances import Balance, add_to_balances, lock_free_scopes
from store.schema import RELEASED, UNKNOWN, charges
from store.sql import given

COLLECTABLE_SECONDS = 29 * 86_400.0  # providers delete the results of a batch after 30 days

_MOVED = given(key=Text, fence=BigInteger)
_MOVE = (
    update(charges)
    .where(charges.c.key == _MOVED.c.key, charges.c.fence == _MOVED.c.fence, charges.c.state == UNKNOWN)
    .values(state=RELEASED, in_doubt=0)
    .returning(charges.c.key)
)


class InBatch(NamedTuple):
    """A question that a batch holds, and what it keeps spent of which scope."""

    fence: int
    batch: str
    scope: int
    spent: int
    locked: bool


def unclaimed_in_batches(
    connection: Connection, latest: Iterable[Row[Any]], ended: Collection[tuple[str, int]], scope: int, now: float
) -> dict[str, InBatch]:
    """The questions that nobody has claimed and a batch holds."""
    found = []
    for row in latest:
        is_kept = row.state == UNKNOWN and now - (row.settled_at or 0.0) < COLLECTABLE_SECONDS
        if row.batch is not None and not row.answered and (is_kept or (row.key, row.fence) in ended):
            found.append(row)
    if not found:
        return {}
    locked = {scope, *lock_free_scopes(connection, [row.scope for row in found if row.scope != scope])}
    return {
        row.key: InBatch(
            row.fence,
            row.batch,
            row.scope,
            row.in_doubt if row.state == UNKNOWN else row.reserved,
            row.scope in locked,
        )
        for row in found
    }


def move_reservations(connection: Connection, collected: Mapping[str, InBatch], scope: int) -> None:
    """Release the old rows of questions that are claimed again. In this scope what they kept spent is now reserved; in
    another one it is given back, for here it was reserved anew."""
    rows = [(key, one.fence) for key, one in collected.items()]
    moved = set(connection.execute(_MOVE, {"rows": rows}).scalars()) if rows else set()
    changes: dict[int, Balance] = {}
    for key, one in collected.items():
        change = Balance(-one.spent if key in moved else 0, one.spent if one.scope == scope else 0)
        changes[one.scope] = changes.get(one.scope, Balance()) + change
    add_to_balances(connection, changes)
