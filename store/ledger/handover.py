"""Books to a run what was spent before it existed, such as probing a server."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, case, delete, exists, func, select, update

from store.ledger.claims import bury_dead
from store.ledger.runs import Balance, RunRow, locked_balance, move
from store.schema import LIVE, PAID, UNKNOWN, charges, runs, scopes, storable


def take_over(
    connection: Connection, account: str, run: RunRow, budget: int | None, is_dead: Callable[[str], bool], now: float
) -> int:
    """Book to the run whatever the account holds, unless that exceeds the budget; what was paid of it.

    Claims of the dead are ended first. What somebody alive is asking stays with the account until it is settled."""
    scope = connection.execute(select(scopes.c.id).where(scopes.c.scope == storable(account))).scalar()
    if scope is None or not connection.execute(select(runs.c.id).where(runs.c.scope == scope).limit(1)).all():
        return 0
    balances = {place: locked_balance(connection, place) for place in sorted({scope, run.scope})}
    bury_dead(connection, scope, is_dead, now)
    settled = [charges.c.run.in_(select(runs.c.id).where(runs.c.scope == scope)), charges.c.state.not_in(LIVE)]
    paid = func.sum(case((charges.c.state == PAID, charges.c.cost), else_=0))
    in_doubt = func.sum(case((charges.c.state == UNKNOWN, charges.c.reserved), else_=0))
    cost, unknown = (int(part or 0) for part in connection.execute(select(paid, in_doubt).where(*settled)).one())
    used = balances[run.scope].spent + balances[run.scope].reserved
    if budget is not None and cost + unknown > max(budget - used, 0):
        return 0
    connection.execute(update(charges).where(*settled).values(run=run.run))
    move(connection, {scope: Balance(-cost - unknown), run.scope: Balance(cost + unknown)})
    empty = ~exists().where(charges.c.run == runs.c.id)
    connection.execute(delete(runs).where(runs.c.scope == scope, runs.c.ended_at.is_not(None), empty))
    return cost
