"""Budgets: what counts against one, and reserving more of it.

Each run has one number, the sum of what its requests have booked. The runs of a scope share a budget, or all runs of a
job that began in one period. Whoever reserves locks the scope first (and the job before it), then requests, then runs:
two transactions never wait for each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import BigInteger, Connection, bindparam, cast, func, select, text, update

from twothirds.store.errors import StoreError
from twothirds.store.periods import Period
from twothirds.store.schema import runs, scopes, storable
from twothirds.store.sql import KEYS


class RunRow(NamedTuple):
    """How the tables refer to a run and its scope."""

    run: int
    scope: int
    scope_name: str
    period: Period | None = None  # whose budget counts, in place of that of the scope


_LOCK_SCOPE = select(scopes.c.id).where(scopes.c.id == bindparam("at")).with_for_update(key_share=True)
_FREE_SCOPES = select(scopes.c.id).where(scopes.c.id.in_(KEYS)).with_for_update(key_share=True, skip_locked=True)
# SQLite has one writer at a time.
_LOCK_JOB = text("SELECT pg_advisory_xact_lock(hashtextextended(:job, 0))")
_sum_booked = select(cast(func.coalesce(func.sum(runs.c.booked), 0), BigInteger))
_OF_SCOPE = _sum_booked.where(runs.c.scope == bindparam("of_scope"))
_OF_PERIOD = _sum_booked.where(
    runs.c.job == bindparam("of_job"),
    runs.c.started_at >= bindparam("period_begins"),
    runs.c.started_at < bindparam("period_ends"),
)
_ADD = update(runs).where(runs.c.id == bindparam("at")).values(booked=runs.c.booked + bindparam("more"))
_more = bindparam("more", type_=BigInteger)
_RESERVE = {
    is_period: _ADD.where(total.scalar_subquery() + _more <= bindparam("cap", type_=BigInteger))
    for is_period, total in ((False, _OF_SCOPE), (True, _OF_PERIOD))
}


def lock_scope(connection: Connection, scope: int) -> None:
    connection.execute(_LOCK_SCOPE, {"at": scope})


def lock_free_scopes(connection: Connection, wanted: Iterable[int]) -> set[int]:
    """Lock those of the scopes that are not locked by others. It never waits, so it cannot deadlock."""
    listed = sorted(set(wanted))
    return set(connection.execute(_FREE_SCOPES, {"keys": listed}).scalars()) if listed else set()


def lock_budget(connection: Connection, run: RunRow) -> None:
    """Nobody reserves more of the budget of this run until the transaction ends."""
    if run.period is not None and connection.dialect.name == "postgresql":
        connection.execute(_LOCK_JOB, {"job": storable(run.period.job)})
    lock_scope(connection, run.scope)


def booked_of_scope(connection: Connection, scope: int) -> int:
    return int(connection.execute(_OF_SCOPE, {"of_scope": scope}).scalar_one())


def booked_in(connection: Connection, period: Period) -> int:
    """What all runs of a job that began in the period have booked."""
    return int(connection.execute(_OF_PERIOD, _values(period)).scalar_one())


def _values(period: Period) -> dict[str, str | float]:
    return {"of_job": storable(period.job), "period_begins": period.begins, "period_ends": period.ends}


def booked_against(connection: Connection, run: RunRow) -> int:
    """What counts against the budget of the run."""
    return booked_of_scope(connection, run.scope) if run.period is None else booked_in(connection, run.period)


def add_booked(connection: Connection, changes: Mapping[int, int]) -> None:
    """Change what runs have booked, whatever their budgets."""
    rows = [{"at": run, "more": more} for run, more in sorted(changes.items()) if more]
    if rows:
        connection.execute(_ADD, rows)


def reserve(connection: Connection, run: RunRow, price: int, budget: int | None) -> None:
    """Book the price. The statement itself checks the budget, so no error in arithmetic elsewhere can exceed it."""
    if budget is None or price <= 0:
        add_booked(connection, {run.run: price})
        return
    values: Mapping[str, object] = {"of_scope": run.scope} if run.period is None else _values(run.period)
    statement = _RESERVE[run.period is not None]
    if connection.execute(statement, {"at": run.run, "more": price, "cap": budget, **values}).rowcount != 1:
        raise StoreError(
            f"a reservation of {price} micro-dollars does not fit the budget of {budget}: nothing was reserved"
        )
