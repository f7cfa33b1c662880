"""Runs and what they may spend. A run is one execution; runs of one scope are repetitions that share a budget.

What was booked before there was a run, such as finding out who answers, handed to the run that uses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select, update

from store.errors import StoreError
from store.schema import runs, scopes, storable
from store.sql import KEYS, insert_new


class RunRow(NamedTuple):
    """How the tables refer to a run and its scope."""

    run: int
    scope: int
    scope_name: str


@dataclass(frozen=True, slots=True)
class Balance:
    """What a scope has spent and what is set aside for questions under way, in micro-dollars."""

    spent: int = 0
    reserved: int = 0

    def __add__(self, other: Balance) -> Balance:
        return Balance(self.spent + other.spent, self.reserved + other.reserved)


def begin_run(connection: Connection, run_id: str, scope: str, described: Mapping[str, Any], now: float) -> RunRow:
    """Enter the run, or enter it again where an execution is taken up under its old id."""
    insert_new(connection, scopes, [{"scope": scope, "spent": 0, "reserved": 0}])
    scope_row = connection.execute(select(scopes.c.id).where(scopes.c.scope == scope)).scalar_one()
    entry = {"run_id": run_id, "scope": scope_row, **described, "status": "running", "started_at": now}
    insert_new(connection, runs, [entry])
    found = connection.execute(select(runs.c.id, runs.c.scope).where(runs.c.run_id == run_id)).one()
    if found.scope != scope_row:
        raise StoreError(f"run {run_id} was begun with other settings: give the new run an id of its own")
    connection.execute(
        update(runs).where(runs.c.id == found.id).values(**described, status="running", ended_at=None, summary=None)
    )
    return RunRow(found.id, found.scope, storable(scope))


def end_run(connection: Connection, run_id: str, status: str, summary: Mapping[str, Any], now: float) -> None:
    values = {"status": status, "summary": dict(summary), "ended_at": now}
    if connection.execute(update(runs).where(runs.c.run_id == run_id).values(values)).rowcount != 1:
        raise StoreError(f"run {run_id} is not in the store: begin it before it ends")


def find_run(connection: Connection, run_id: str) -> RunRow:
    joined = select(runs.c.id, runs.c.scope, scopes.c.scope.label("name")).join(scopes, scopes.c.id == runs.c.scope)
    found = connection.execute(joined.where(runs.c.run_id == run_id)).one_or_none()
    if found is None:
        raise StoreError(f"run {run_id} is not in the store: begin it before it asks")
    return RunRow(found.id, found.scope, found.name)


def run_overview(connection: Connection) -> list[dict[str, Any]]:
    """All runs, the latest first."""
    columns = [column for column in runs.c if column.name not in {"id", "scope"}]
    joined = select(*columns, scopes.c.scope).join(scopes, scopes.c.id == runs.c.scope)
    ordered = joined.order_by(runs.c.started_at.desc(), runs.c.id.desc())
    return [dict(row) for row in connection.execute(ordered).mappings()]


def balance_of(connection: Connection, scope: str) -> Balance:
    row = connection.execute(select(scopes.c.spent, scopes.c.reserved).where(scopes.c.scope == scope)).one_or_none()
    return Balance(row.spent, row.reserved) if row else Balance()


_BALANCE = select(scopes.c.spent, scopes.c.reserved).where(scopes.c.id == bindparam("at"))
_BALANCE_LOCKED = _BALANCE.with_for_update(key_share=True)
_FREE_SCOPES = select(scopes.c.id).where(scopes.c.id.in_(KEYS)).with_for_update(key_share=True, skip_locked=True)


def locked_balance(connection: Connection, scope: int) -> Balance:
    """The balance, which nobody else can change until the transaction ends."""
    row = connection.execute(_BALANCE_LOCKED, {"at": scope}).one()
    return Balance(row.spent, row.reserved)


def lock_free_scopes(connection: Connection, wanted: Iterable[int]) -> set[int]:
    """Lock those scopes that nobody else has locked: without waiting there is no deadlock."""
    return set(connection.execute(_FREE_SCOPES, {"keys": sorted(set(wanted))}).scalars())


_MOVE = (
    update(scopes)
    .where(scopes.c.id == bindparam("at"))
    .values(spent=scopes.c.spent + bindparam("more_spent"), reserved=scopes.c.reserved + bindparam("more_reserved"))
)
_RESERVE = (
    update(scopes)
    .where(scopes.c.id == bindparam("at"), scopes.c.spent + scopes.c.reserved + bindparam("price") <= bindparam("cap"))
    .values(reserved=scopes.c.reserved + bindparam("price"))
)


def move(connection: Connection, changes: Mapping[int, Balance]) -> None:
    """Add the changes to the balances of their scopes."""
    rows = [
        {"at": scope, "more_spent": change.spent, "more_reserved": change.reserved}
        for scope, change in sorted(changes.items())
        if change != Balance()
    ]
    if rows:
        connection.execute(_MOVE, rows)


def reserve(connection: Connection, scope: int, price: int, cap: int | None) -> None:
    """Set the price aside. The cap is part of the statement, so no mistake in arithmetic elsewhere can exceed it."""
    if cap is None or price == 0:
        move(connection, {scope: Balance(0, price)})
    elif connection.execute(_RESERVE, {"at": scope, "price": price, "cap": cap}).rowcount != 1:
        raise StoreError(
            f"a reservation of {price} micro-dollars does not fit the budget of {cap}: nothing was reserved"
        )
