"""Runs, their scopes, and what counts against a budget.

A run is one execution. Runs of one scope are repetitions that share a budget, unless their job has a budget for each
period, in UTC: then all runs of the job that began in the period share it, to their end.

Each run has one number, the sum of what its requests have booked. Whoever reserves locks the scope first (and the job
before it), then requests, then runs: two transactions never wait for each other."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, bindparam, select, update

from twothirds.store.engine import KEYS, Clock, Repository, Transactions, insert_new, lock_name, reads, writes
from twothirds.store.errors import StoreError
from twothirds.store.owners import new_owner
from twothirds.store.schema import CLOSED, requests, runs, scopes, storable

EVER = "ever"
_NO_END = 1e11


class Job(NamedTuple):
    """What the runs of several nights, or of one comparison, have in common. `per` (day, week, month or EVER) is the
    period of its budget; where it is None, the budget is that of the scope."""

    name: str = ""
    per: str | None = None

    def period_at(self, time: float) -> Period | None:
        """The period in which the time is; weeks begin on Mondays."""
        if self.per is None:
            return None
        if self.per == EVER:
            return Period(self.name, EVER, 0.0, _NO_END)
        day = datetime.fromtimestamp(time, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        begins, ends = {
            "day": (day, day + timedelta(days=1)),
            "week": (day - timedelta(days=day.weekday()), day + timedelta(days=7 - day.weekday())),
            "month": (day.replace(day=1), (day.replace(day=1) + timedelta(days=32)).replace(day=1)),
        }[self.per]
        return Period(self.name, self.per, begins.timestamp(), ends.timestamp())


class Period(NamedTuple):
    """One day, week or month of a job, or all of its time, in seconds since 1970."""

    job: str
    per: str
    begins: float
    ends: float

    @property
    def next_day(self) -> str:
        """On which the next one begins."""
        return f"{datetime.fromtimestamp(self.ends, UTC):%Y-%m-%d}"


class Booked(NamedTuple):
    """What counts against a budget, in micro-dollars: of one period of a job, or else of a scope."""

    spent: int
    reserved: int
    period: Period | None = None

    @property
    def per(self) -> str:
        """The period in words, empty where the budget has none."""
        return f" per {self.period.per}" if self.period and self.period.per != EVER else ""

    @property
    def remedy(self) -> str:
        """What to do where the budget is used up."""
        if self.period is None or self.period.per == EVER:
            return "raise --budget and run again"
        begins = f"the next {self.period.per} begins on {self.period.next_day} (UTC)"
        return f"{begins}; run again then, or raise --budget and run again"


class RunRow(NamedTuple):
    """How the tables refer to a run and its scope."""

    run: int
    scope: int
    scope_name: str
    period: Period | None = None  # whose budget counts, in place of that of the scope


_LOCK_SCOPE = select(scopes.c.id).where(scopes.c.id == bindparam("at")).with_for_update(key_share=True)
_FREE_SCOPES = select(scopes.c.id).where(scopes.c.id.in_(KEYS)).with_for_update(key_share=True, skip_locked=True)
_sum_booked = select(sa.cast(sa.func.coalesce(sa.func.sum(runs.c.booked), 0), sa.BigInteger))
_OF_SCOPE = _sum_booked.where(runs.c.scope == bindparam("of_scope"))
_OF_PERIOD = _sum_booked.where(
    runs.c.job == bindparam("of_job"),
    runs.c.started_at >= bindparam("period_begins"),
    runs.c.started_at < bindparam("period_ends"),
)
_ADD = update(runs).where(runs.c.id == bindparam("at")).values(booked=runs.c.booked + bindparam("more"))
_more = bindparam("more", type_=sa.BigInteger)
_RESERVE = {
    is_period: _ADD.where(total.scalar_subquery() + _more <= bindparam("cap", type_=sa.BigInteger))
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
    if run.period is not None:
        lock_name(connection, storable(run.period.job))
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


SHORT = 8  # characters of an id that people are shown
MESSAGE = 1_000  # characters of it that are kept


def short_id(run_id: str) -> str:
    """The last digits: the first ones of ids that a scheduler made at once are the same, for they are the time."""
    return run_id[-SHORT:]


def called(run: str | None) -> ColumnElement[bool]:
    """Chooses the run with that id or short id, all runs with that name, or every run."""
    if run is None:
        return sa.true()
    short = [runs.c.run_id.endswith(run, autoescape=True)] if len(run) == SHORT else []
    return sa.or_(runs.c.run_id == run, runs.c.name == run, *short)


def new_sampling_number() -> str:
    return secrets.token_hex(16)


class RunState(NamedTuple):
    """How far a run has come; "running" is also said of one that was killed."""

    run_id: str
    scope: str
    status: str
    started_at: float
    settings: dict[str, Any]


class Spending(Protocol):
    """Counts what a run has paid."""

    @property
    def paid_calls(self) -> int: ...

    @property
    def cost(self) -> int: ...


@dataclass(slots=True)
class ActiveRun:
    """A run that has begun. As a context manager it ends the run with the status that was set, or else with "done", or
    "failed" after an exception (or "waiting" after a `pending` one); its summary is what `spending` has counted, and
    the message that was set or that the exception has."""

    runs: Runs
    run_id: str
    status: str = ""
    message: str = ""  # what happened and what to do, where it is not simply done
    spending: Spending | None = None
    pending: type[BaseException] | None = None
    figures: dict[str, Any] = field(default_factory=dict)  # what it has counted beside, for store.metrics

    def __enter__(self) -> ActiveRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        spent = self.spending and {"paid_calls": self.spending.paid_calls, "cost": self.spending.cost}
        outcome = "done" if kind is None else "waiting" if self.pending and issubclass(kind, self.pending) else "failed"
        figures = {"figures": self.figures} if self.figures else {}
        message = " ".join((self.message or str(error or "")).split())[:MESSAGE]
        said = {"message": message} if message else {}
        self.runs.end(self.run_id, self.status or outcome, {**(spent or {}), **figures, **said})


class Runs(Repository):
    def __init__(self, transactions: Transactions, clock: Clock) -> None:
        super().__init__(transactions, clock)
        self._rows: dict[str, RunRow] = {}

    @writes
    def begin(
        self,
        connection: Connection,
        run_id: str,
        scope: str,
        *,
        name: str,
        flow: str,
        dataset: str,
        oracle: str,
        settings: Mapping[str, Any],
        job: Job | None = None,
    ) -> ActiveRun:
        """Begin an execution, or begin it again under its id. Executions of one `scope` share a budget, or all of the
        `job` that begin in one period."""
        described: dict[str, Any] = {
            "name": name,
            "flow": flow,
            "dataset": dataset,
            "oracle": oracle,
            "settings": dict(settings),
        }
        described |= {"job": job.name if job else "", "per": job.per if job else None, "process": new_owner()}
        number = scope_row(connection, scope)
        entry = {"run_id": run_id, "scope": number, **described, "status": "running", "started_at": self._clock()}
        entry |= {"booked": 0}
        insert_new(connection, runs, [entry])
        found = connection.execute(select(runs.c.id, runs.c.scope).where(runs.c.run_id == run_id)).one()
        if found.scope != number:
            raise StoreError(f"run {run_id} was begun with other settings: give the new run an id of its own")
        connection.execute(
            update(runs).where(runs.c.id == found.id).values(**described, status="running", ended_at=None, summary=None)
        )
        self._rows.pop(run_id, None)
        return ActiveRun(self, run_id)

    @writes
    def end(self, connection: Connection, run_id: str, status: str, summary: Mapping[str, Any]) -> None:
        values = {"status": status, "summary": dict(summary), "ended_at": self._clock()}
        if connection.execute(update(runs).where(runs.c.run_id == run_id).values(values)).rowcount != 1:
            raise StoreError(f"run {run_id} is not in the store: begin it before it ends")

    @reads
    def overview(self, connection: Connection) -> list[dict[str, Any]]:
        """All runs, the latest first."""
        columns = [column for column in runs.c if column.name not in {"id", "scope"}]
        joined = select(*columns, scopes.c.scope).join(scopes, scopes.c.id == runs.c.scope)
        ordered = joined.order_by(runs.c.started_at.desc(), runs.c.id.desc())
        return [dict(row) for row in connection.execute(ordered).mappings()]

    @reads
    def knows(self, connection: Connection, run: str) -> bool:
        """Whether any run is called so."""
        return connection.execute(select(runs.c.id).where(called(run)).limit(1)).first() is not None

    @reads
    def latest(self, connection: Connection, scopes_named: Sequence[str]) -> list[RunState]:
        """The runs of these scopes, the latest first."""
        columns = (runs.c.run_id, scopes.c.scope, runs.c.status, runs.c.started_at, runs.c.settings)
        query = select(*columns).join(scopes).where(scopes.c.scope.in_([storable(charge) for charge in scopes_named]))
        return [RunState(**row) for row in connection.execute(query.order_by(runs.c.id.desc())).mappings()]

    @reads
    def spent(self, connection: Connection, scope: str) -> tuple[int, int]:
        """Spent and reserved, in micro-dollars, over all executions of the scope."""
        number = connection.execute(select(scopes.c.id).where(scopes.c.scope == storable(scope))).scalar()
        if number is None:
            return 0, 0
        booked, reserved = booked_of_scope(connection, number), _reserved(connection, runs.c.scope == number)
        return booked - reserved, reserved

    @reads
    def booked(self, connection: Connection, run_id: str) -> Booked:
        """What counts against the budget of a run."""
        run = self.find(connection, run_id)
        booked = booked_against(connection, run)
        reserved = _reserved(connection, runs.c.scope == run.scope if run.period is None else _in_period(run.period))
        return Booked(booked - reserved, reserved, run.period)

    @reads
    def booked_now(self, connection: Connection, job: Job) -> Booked | None:
        """What counts against the budget of a job if a run of it begins now; None where it has none for a period."""
        period = job.period_at(self._clock())
        if period is None:
            return None
        booked, reserved = booked_in(connection, period), _reserved(connection, _in_period(period))
        return Booked(booked - reserved, reserved, period)

    @reads
    def sampling_number(self, connection: Connection, scope: str) -> str:
        """Part of the order in which examples are sampled, the same for all runs of the scope. It is a secret until
        they have ended: never print, log or export it."""
        query = select(scopes.c.sampling_number).where(scopes.c.scope == storable(scope))
        return str(connection.execute(query).scalar_one())

    @reads
    def row(self, connection: Connection, run_id: str) -> RunRow:
        return self.find(connection, run_id)

    def find(self, connection: Connection, run_id: str) -> RunRow:
        """The row of a run that has begun."""
        run = self._rows.get(run_id)
        if run is None:
            columns = (runs.c.id, runs.c.scope, runs.c.job, runs.c.per, runs.c.started_at)
            joined = select(*columns, scopes.c.scope.label("name")).join(scopes)
            found = connection.execute(joined.where(runs.c.run_id == run_id)).one_or_none()
            if found is None:
                raise StoreError(f"run {run_id} is not in the store: begin it before it asks")
            run = self._rows[run_id] = RunRow(
                found.id, found.scope, found.name, Job(found.job, found.per).period_at(found.started_at)
            )
        return run


def _in_period(period: Period) -> ColumnElement[bool]:
    return sa.and_(runs.c.job == period.job, runs.c.started_at >= period.begins, runs.c.started_at < period.ends)


def _reserved(connection: Connection, chosen: ColumnElement[bool]) -> int:
    """Of what is booked, that of requests which some process has open."""
    is_open = requests.c.state != sa.literal_column(f"'{CLOSED}'")
    total = select(sa.cast(sa.func.coalesce(sa.func.sum(requests.c.booked - requests.c.cost), 0), sa.BigInteger))
    joined = total.join(runs, runs.c.id == requests.c.run)
    return int(connection.execute(joined.where(is_open, requests.c.owner != "", chosen)).scalar_one())


def scope_row(connection: Connection, scope: str) -> int:
    """The row of a scope, made where there is none: of processes that race one makes it, and all read the same."""
    new = {"scope": scope, "sampling_number": new_sampling_number()}
    insert_new(connection, scopes, [new])
    return int(connection.execute(select(scopes.c.id).where(scopes.c.scope == storable(scope))).scalar_one())


class RunRepository(Repository):
    """A repository whose methods name a run by its run id."""

    def __init__(self, transactions: Transactions, clock: Clock, runs: Runs) -> None:
        super().__init__(transactions, clock)
        self._runs = runs
