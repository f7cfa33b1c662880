"""Settles requests of unknown cost by hand, once the provider's bill shows what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import BigInteger, Connection, bindparam, cast, func, insert, select, update

from store.errors import StoreError
from store.ledger.books import CHARGE, Charge, book, locked_balance
from store.ledger.runs import RunRepository, called
from store.schema import PAID, UNKNOWN, charges, runs, settlements
from store.transactions import reads, writes


class Unsettled(NamedTuple):
    """Charges of one run and oracle that are in doubt, and the most that they may have cost."""

    run_id: str
    name: str
    oracle: str
    kind: str
    calls: int
    micro: int


class Settlement(NamedTuple):
    """What was settled: how many charges, at most how much they might have cost, and what they did cost."""

    calls: int
    before: int
    cost: int


# What a provider's batch may still answer is not settled by hand.
_IN_DOUBT = (charges.c.in_doubt > 0, charges.c.state.in_((PAID, UNKNOWN)), charges.c.batch.is_(None))
_CLEAR = (
    update(charges)
    .where(charges.c.key == bindparam("of_key"), charges.c.fence == bindparam("of_fence"))
    .values(in_doubt=0, cost=charges.c.cost + bindparam("more"))
)


class Settlements(RunRepository):
    @reads
    def unsettled(self, connection: Connection, run: str | None = None) -> list[Unsettled]:
        """By run, oracle and kind: of the runs that are called so (see `called`), or of every run."""
        columns = (runs.c.run_id, runs.c.name, charges.c.oracle, charges.c.kind)
        summed = select(
            *columns, func.count().label("calls"), cast(func.sum(charges.c.in_doubt), BigInteger).label("micro")
        )
        chosen = summed.join(runs, runs.c.id == charges.c.run).where(*_IN_DOUBT, called(run))
        grouped = chosen.group_by(runs.c.id, *columns).order_by(runs.c.id, *columns)
        return [Unsettled(**row) for row in connection.execute(grouped).mappings()]

    @writes
    def settle(self, connection: Connection, run: str | None, cost: int, reason: str) -> Settlement:
        """Book `cost` in place of all that is in doubt, spread over it, and log each. Raises StoreError where that is
        more than the bounds allow."""
        query = select(*CHARGE)
        found = query.join(runs, runs.c.id == charges.c.run).where(*_IN_DOUBT, called(run))
        for scope in sorted({row.scope for row in connection.execute(found)}):
            locked_balance(connection, scope)
        locked = found.order_by(charges.c.key, charges.c.fence).with_for_update(of=charges)
        rows = [Charge._make(row) for row in connection.execute(locked)]
        before = sum(row.in_doubt for row in rows)
        if cost > before:
            raise StoreError(
                f"{cost} micro-dollars are more than the {before} that are in doubt: look at the bill again, "
                "what it shows beyond that is of other calls"
            )
        shares, now = _spread(cost, [row.in_doubt for row in rows]), self._clock()
        if rows:
            pairs = list(zip(rows, shares, strict=True))
            connection.execute(_CLEAR, [{"of_key": r.key, "of_fence": r.fence, "more": part} for r, part in pairs])
            logged = [
                {"key": row.key, "fence": row.fence, "in_doubt": row.in_doubt, "cost": part}
                | {"reason": reason, "settled_at": now}
                for row, part in pairs
            ]
            connection.execute(insert(settlements), logged)
            book(connection, [(row, row._replace(in_doubt=0, cost=row.cost + part)) for row, part in pairs])
        return Settlement(len(rows), before, cost)


def _spread(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in proportion to the weights, to the last unit."""
    shares, done, weight_done, total_weight = [], 0, 0, max(sum(weights), 1)
    for weight in weights:
        weight_done += weight
        shares.append(total * weight_done // total_weight - done)
        done += shares[-1]
    return shares
