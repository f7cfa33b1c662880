"""Runs and their scopes. A run is one execution; runs of one scope are repetitions that share a budget, unless their
job has a budget for each period (see periods.py)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    and_,
    cast,
    func,
    literal_column,
    or_,
    select,
    true,
    update,
)

from twothirds.store.budgets import RunRow, booked_against, booked_in, booked_of_scope
from twothirds.store.errors import StoreError
from twothirds.store.owners import new_owner
from twothirds.store.periods import Booked, Job, Period
from twothirds.store.schema import CLOSED, requests, runs, scopes, storable
from twothirds.store.sql import insert_new
from twothirds.store.transactions import Clock, Repository, Transactions, reads, writes

SHORT = 8  # characters of an id that people are shown
MESSAGE = 1_000  # characters of it that are kept


def short_id(run_id: str) -> str:
    """The last digits: the first ones of ids that a scheduler made at once are the same, for they are the time."""
    return run_id[-SHORT:]


def called(run: str | None) -> ColumnElement[bool]:
    """Chooses the run with that id or short id, all runs with that name, or every run."""
    if run is None:
        return true()
    short = [runs.c.run_id.endswith(run, autoescape=True)] if len(run) == SHORT else []
    return or_(runs.c.run_id == run, runs.c.name == run, *short)


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
    def overcharge(self, connection: Connection, scope: str) -> float:
        """How many times their bounds its requests may be charged; 1 where none was charged more."""
        query = select(scopes.c.overcharge).where(scopes.c.scope == storable(scope))
        return connection.execute(query).scalar() or 1.0

    @reads
    def sampling_number(self, connection: Connection, scope: str) -> str:
        """Part of the order in which examples are sampled, the same for all runs of the scope. It is a secret until
        they have ended: never print, log or export it."""
        query = select(scopes.c.sampling_number).where(scopes.c.scope == storable(scope))
        return str(connection.execute(query).scalar_one())

    @reads
    def scope_of(self, connection: Connection, account: str) -> str:
        """The scope to which requests of this account are booked: that of the run which took it over last, else that of
        the account itself."""
        later = scopes.alias()
        of_account = select(later.c.scope).join(scopes, scopes.c.taken_over_by == later.c.id)
        return connection.execute(of_account.where(scopes.c.scope == storable(account))).scalar() or account

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
    return and_(runs.c.job == period.job, runs.c.started_at >= period.begins, runs.c.started_at < period.ends)


def _reserved(connection: Connection, chosen: ColumnElement[bool]) -> int:
    """Of what is booked, that of requests which some process has open."""
    is_open = requests.c.state != literal_column(f"'{CLOSED}'")
    total = select(cast(func.coalesce(func.sum(requests.c.booked - requests.c.cost), 0), BigInteger))
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
