"""Questions in a provider's batch: the batch lives on without the process that sent it, and so does what it may cost.

What such a question keeps spent (an unknown charge with `batch`) becomes the reservation of whoever claims it next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Connection, Row, Text, select, update

from store.ledger.balances import Balance, add_to_balances, lock_free_scopes
from store.ledger.books import CHARGE, Charge, book
from store.schema import RELEASED, UNKNOWN, charges, runs
from store.sql import json_array, values_table

COLLECTABLE_SECONDS = 29 * 86_400.0  # providers delete the results of a batch after 30 days

_OLD = (
    select(*CHARGE)
    .join(runs, runs.c.id == charges.c.run)
    .where(charges.c.key.in_(json_array()))
    .order_by(charges.c.key, charges.c.fence)
    .with_for_update(of=charges)
)
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
    locked: bool


def unclaimed_in_batches(
    connection: Connection, latest: Iterable[Row[Any] | Any], ended: Collection[tuple[str, int]], scope: int, now: float
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
    if not collected:
        return
    rows = connection.execute(_OLD, {"keys": sorted(collected)}).all()
    old = [one for one in map(Charge._make, rows) if one.state == UNKNOWN and one.fence == collected[one.key].fence]
    if old:
        connection.execute(_RELEASE, {"rows": [(one.key, one.fence) for one in old]})
    book(connection, [(one, one._replace(state=RELEASED, in_doubt=0)) for one in old])
    add_to_balances(connection, {scope: Balance(0, sum(one.spent for one in collected.values() if one.scope == scope))})
