"""Settles requests of unknown cost by hand, once the provider's bill shows what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import BigInteger, Connection, bindparam, cast, func, insert, select, update

from twothirds.store.budgets import add_booked, lock_scope
from twothirds.store.errors import StoreError
from twothirds.store.runs import RunRepository, called
from twothirds.store.schema import CLOSED, oracles, requests, runs, settlements
from twothirds.store.transactions import reads, writes


class Unsettled(NamedTuple):
    """Requests of one run and oracle that are in doubt, and the most that they may have cost."""

    run_id: str
    name: str
    oracle: str
    kind: str
    requests: int
    micro: int


class Settlement(NamedTuple):
    """What was settled: how many requests, at most how much they might have cost, and what they did cost."""

    requests: int
    before: int
    cost: int


_IN_DOUBT = (requests.c.in_doubt > 0, requests.c.state == CLOSED)  # what a batch may still answer is open
_CLEAR = (
    update(requests)
    .where(requests.c.id == bindparam("at"))
    .values(
        in_doubt=0,
        cost=requests.c.cost + bindparam("share"),
        booked=requests.c.booked - requests.c.in_doubt + bindparam("share"),
    )
)


class Settlements(RunRepository):
    @reads
    def unsettled(self, connection: Connection, run: str | None = None) -> list[Unsettled]:
        """By run, oracle and kind: of the runs that are called so (see `called`), or of every run."""
        columns = (runs.c.run_id, runs.c.name, oracles.c.name.label("oracle"), requests.c.kind)
        summed = select(
            *columns, func.count().label("requests"), cast(func.sum(requests.c.in_doubt), BigInteger).label("micro")
        )
        joined = summed.join(runs, runs.c.id == requests.c.run).join(oracles, oracles.c.id == requests.c.oracle)
        grouped = joined.where(*_IN_DOUBT, called(run)).group_by(runs.c.id, *columns).order_by(runs.c.id, *columns)
        return [Unsettled(**row) for row in connection.execute(grouped).mappings()]

    @writes
    def settle(self, connection: Connection, run: str | None, cost: int, reason: str) -> Settlement:
        """Book `cost` in place of all that is in doubt, spread over it, and log each. Raises StoreError where that is
        more than the bounds allow."""
        query = select(requests.c.id, requests.c.run, requests.c.in_doubt, runs.c.scope)
        found = query.join(runs, runs.c.id == requests.c.run).where(*_IN_DOUBT, called(run))
        for scope in sorted({row.scope for row in connection.execute(found)}):
            lock_scope(connection, scope)
        rows = connection.execute(found.order_by(requests.c.id).with_for_update(of=requests)).all()
        before = sum(row.in_doubt for row in rows)
        if cost > before:
            raise StoreError(
                f"{cost} micro-dollars are more than the {before} that are in doubt: look at the bill again, "
                "what it shows beyond that is of other calls"
            )
        shares, now, changes = _spread(cost, [row.in_doubt for row in rows]), self._clock(), Counter[int]()
        logged = []
        for row, share in zip(rows, shares, strict=True):
            changes[row.run] += share - row.in_doubt
            log = {"request": row.id, "in_doubt": row.in_doubt, "cost": share, "reason": reason, "settled_at": now}
            logged.append(log)
        if rows:
            connection.execute(
                _CLEAR, [{"at": row.id, "share": share} for row, share in zip(rows, shares, strict=True)]
            )
            connection.execute(insert(settlements), logged)
            add_booked(connection, changes)
        return Settlement(len(rows), before, cost)


def _spread(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in proportion to the weights, to the last unit."""
    shares, done, weight_done, total_weight = [], 0, 0, max(sum(weights), 1)
    for weight in weights:
        weight_done += weight
        shares.append(total * weight_done // total_weight - done)
        done += shares[-1]
    return shares
