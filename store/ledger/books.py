"""The books: what each scope has spent, reserved and kept, and what each run has cost by oracle and kind of question.

Both are running sums over the charges, so that nobody has to add up a large store. Every change of a charge goes
through `book`, in the transaction that makes it; `store check` adds everything up again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    select,
    text,
    update,
)

from store.errors import StoreError
from store.ledger.periods import Booked, Period
from store.schema import (
    COMPUTED,
    LIVE,
    PAID,
    PROBE,
    UNKNOWN,
    answers,
    charges,
    cost_totals,
    identities,
    runs,
    scopes,
    storable,
    uses,
)
from store.sql import KEYS, insert_new, json_array


@dataclass(frozen=True, slots=True)
class Balance:
    """What a scope has spent, and what is reserved for questions in flight, in micro-dollars; and how many answers are
    kept that its runs have paid for or used."""

    spent: int = 0
    reserved: int = 0
    kept: int = 0

    def __add__(self, other: Balance) -> Balance:
        return Balance(self.spent + other.spent, self.reserved + other.reserved, self.kept + other.kept)


_LOCKED_BALANCE = (
    select(scopes.c.spent, scopes.c.reserved, scopes.c.kept)
    .where(scopes.c.id == bindparam("at"))
    .with_for_update(key_share=True)
)
_FREE_SCOPES = select(scopes.c.id).where(scopes.c.id.in_(KEYS)).with_for_update(key_share=True, skip_locked=True)
_ADD_TO_BALANCE = (
    update(scopes)
    .where(scopes.c.id == bindparam("at"))
    .values({name: scopes.c[name] + bindparam(f"more_{name}") for name in ("spent", "reserved", "kept")})
)
_RESERVE = (
    update(scopes)
    .where(scopes.c.id == bindparam("at"), scopes.c.spent + scopes.c.reserved + bindparam("price") <= bindparam("cap"))
    .values(reserved=scopes.c.reserved + bindparam("price"))
)
_of_job = (
    runs.c.job == bindparam("job"),
    runs.c.started_at >= bindparam("begins"),
    runs.c.started_at < bindparam("ends"),
)
_scopes_of_job = scopes.alias("scopes_of_job")
_spent_in_period = (
    select(cast(func.coalesce(func.sum(cost_totals.c.paid + cost_totals.c.unknown), 0), BigInteger))
    .where(cost_totals.c.run.in_(select(runs.c.id).where(*_of_job)))
    .scalar_subquery()
)
_reserved_in_period = (  # with what runs of the same scopes reserve that began in another period
    select(cast(func.coalesce(func.sum(_scopes_of_job.c.reserved), 0), BigInteger))
    .where(_scopes_of_job.c.id.in_(select(runs.c.scope).where(*_of_job)))
    .scalar_subquery()
)
_BOOKED_IN_PERIOD = select(_spent_in_period.label("spent"), _reserved_in_period.label("reserved"))
_RESERVE_IN_PERIOD = (
    update(scopes)
    .where(
        scopes.c.id == bindparam("at"), _spent_in_period + _reserved_in_period + bindparam("price") <= bindparam("cap")
    )
    .values(reserved=scopes.c.reserved + bindparam("price"))
)
# SQLite has one writer at a time.
_LOCK_JOB = text("SELECT pg_advisory_xact_lock(hashtextextended(:job, 0))")


def booked_in(connection: Connection, period: Period) -> Booked:
    """What all runs of a job that began in the period have spent and reserved."""
    row = connection.execute(_BOOKED_IN_PERIOD, period._asdict()).one()
    return Booked(row.spent, row.reserved, period)


def locked_budget(connection: Connection, scope: int, period: Period | None) -> Balance:
    """What counts against the budget of a run: the balance of its scope, or what its job has booked in the period.
    Nobody reserves more of it until the transaction ends."""
    if period is not None and connection.dialect.name == "postgresql":
        connection.execute(_LOCK_JOB, {"job": storable(period.job)})  # always before the scope
    balance = locked_balance(connection, scope)
    if period is None:
        return balance
    booked = booked_in(connection, period)
    return Balance(spent=booked.spent, reserved=booked.reserved)


def locked_balance(connection: Connection, scope: int) -> Balance:
    """The balance, locked until the transaction ends."""
    row = connection.execute(_LOCKED_BALANCE, {"at": scope}).one()
    return Balance(spent=row.spent, reserved=row.reserved, kept=row.kept)


def lock_free_scopes(connection: Connection, wanted: Iterable[int]) -> set[int]:
    """Lock those of the scopes that are not locked by others. It never waits, so it cannot deadlock."""
    return set(connection.execute(_FREE_SCOPES, {"keys": sorted(set(wanted))}).scalars())


def add_to_balances(connection: Connection, changes: Mapping[int, Balance]) -> None:
    rows = [
        {"at": scope, "more_spent": change.spent, "more_reserved": change.reserved, "more_kept": change.kept}
        for scope, change in sorted(changes.items())
        if change != Balance()
    ]
    if rows:
        connection.execute(_ADD_TO_BALANCE, rows)


def reserve(connection: Connection, scope: int, price: int, cap: int | None, period: Period | None = None) -> None:
    """Reserve the price. The statement itself checks the cap, so no error in arithmetic elsewhere can exceed it."""
    within, values = (_RESERVE, {}) if period is None else (_RESERVE_IN_PERIOD, period._asdict())
    if cap is None or price == 0:
        add_to_balances(connection, {scope: Balance(0, price)})
    elif connection.execute(within, {"at": scope, "price": price, "cap": cap, **values}).rowcount != 1:
        raise StoreError(
            f"a reservation of {price} micro-dollars does not fit the budget of {cap}: nothing was reserved"
        )


COUNTED = tuple(column.name for column in cost_totals.c if not column.primary_key)
Line = tuple[int, str, str]  # run, oracle, kind


class Charge(NamedTuple):
    """A charge as the books see it."""

    key: str
    fence: int
    run: int
    scope: int
    oracle: str
    kind: str
    state: str
    reserved: int
    in_doubt: int
    cost: int
    requests: int
    input_tokens: int
    output_tokens: int
    batch: str | None

    @property
    def line(self) -> Line:
        return self.run, self.oracle, self.kind

    def balance(self) -> Balance:
        """Its part of the scope's balance: what was paid and what is in doubt is spent."""
        if self.state in LIVE:
            return Balance(0, self.reserved)
        return Balance(self.cost + self.in_doubt if self.state in (PAID, UNKNOWN) else 0)

    def totals(self) -> dict[str, int]:
        """Its part of the totals of its run."""
        if self.state not in (PAID, UNKNOWN):
            return {}
        return {
            "paid_calls": int(self.state == PAID),
            "unknown_calls": int(self.in_doubt > 0),
            "paid": self.cost,
            "unknown": self.in_doubt,
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }


Change = tuple[Charge, Charge]  # as it was, and as it is now
CHARGE = tuple(runs.c.scope if name == "scope" else charges.c[name] for name in Charge._fields)  # columns to select
# All charges of some questions, locked.
LOCKED_CHARGES = (
    select(*CHARGE)
    .join(runs, runs.c.id == charges.c.run)
    .where(charges.c.key.in_(json_array()))
    .order_by(charges.c.key, charges.c.fence)
    .with_for_update(of=charges)
)
_ADD = (
    update(cost_totals)
    .where(*(cost_totals.c[name] == bindparam(f"of_{name}") for name in ("run", "oracle", "kind")))
    .values({name: cost_totals.c[name] + bindparam(f"more_{name}") for name in COUNTED})
)
_NOTHING = dict.fromkeys(COUNTED, 0)


def book(connection: Connection, changes: Iterable[Change]) -> dict[int, Balance]:
    """Book changes of charges; returns the changes of the balances by scope."""
    balances: dict[int, Balance] = {}
    totals: dict[Line, dict[str, int]] = {}
    for before, after in changes:
        old, new = before.balance(), after.balance()
        balances[before.scope] = balances.get(before.scope, Balance()) + Balance(-old.spent, -old.reserved)
        balances[after.scope] = balances.get(after.scope, Balance()) + new
        for sign, charge in ((-1, before), (1, after)):
            if part := charge.totals():
                sums = totals.setdefault(charge.line, dict(_NOTHING))
                for name, amount in part.items():
                    sums[name] += sign * amount
    book_sums(connection, balances, totals)
    return balances


def book_sums(
    connection: Connection, balances: Mapping[int, Balance], totals: Mapping[Line, Mapping[str, int]]
) -> None:
    """Book changes that were added up already."""
    add_to_balances(connection, balances)
    _add_to_totals(connection, totals)


def _add_to_totals(connection: Connection, changes: Mapping[Line, Mapping[str, int]]) -> None:
    for line, change in sorted(changes.items()):
        if not any(change.values()):
            continue
        of_line = dict(zip(("run", "oracle", "kind"), line, strict=True))
        values = {f"of_{name}": value for name, value in of_line.items()}
        values |= {f"more_{name}": amount for name, amount in {**_NOTHING, **change}.items()}
        if connection.execute(_ADD, values).rowcount == 0:
            insert_new(connection, cost_totals, [of_line | _NOTHING])
            connection.execute(_ADD, values)


def count_computed(connection: Connection, run: int, oracle: str, labels: int) -> None:
    """Count labels that were computed free of charge. There is no charge and no answer of them."""
    _add_to_totals(connection, {(run, oracle, COMPUTED): {"paid_calls": labels}})


def paid_by(run: ColumnElement[int]) -> ColumnElement[bool]:
    """That the run has paid for the answer itself. The index of runs would find all charges of the run for each answer:
    the sum, which no index holds, leaves that of keys."""
    return exists().where(and_(charges.c.key == answers.c.key, charges.c.run + 0 == run, charges.c.state == PAID))


def used(*chosen: ColumnElement[bool]) -> Any:
    """Uses of answers by runs that did not pay for them, by line: how many, and what the answers had cost."""
    line = (uses.c.run, identities.c.oracle, answers.c.kind)
    counts = (func.count().label("cached_calls"), func.sum(answers.c.cost).label("cached_worth"))
    return (
        select(*line, *counts)
        .join(answers, answers.c.id == uses.c.answer)
        .join(identities, identities.c.id == answers.c.identity)
        .where(*chosen, ~paid_by(uses.c.run))
        .group_by(*line)
    )


_OF_RUN, _OF_SCOPE = (bindparam(name, type_=BigInteger) for name in ("of_run", "of_scope"))
_in_scope = select(runs.c.id).where(runs.c.scope == _OF_SCOPE)
_PAID_BY_RUN, _PAID_IN_SCOPE, _USED_IN_SCOPE_BEFORE, _NEW_TO_SCOPE = 3, 2, 1, 0
# Scalar queries, because PostgreSQL would make joins with all charges and uses of the scope from NOT EXISTS.
_payer = (
    select(func.max(case((charges.c.run == _OF_RUN, _PAID_BY_RUN), (charges.c.run.in_(_in_scope), _PAID_IN_SCOPE))))
    .where(charges.c.key == answers.c.key, charges.c.state == PAID)
    .scalar_subquery()
)
_uses_of_answer = select(uses.c.answer).where(uses.c.answer == answers.c.id).limit(1)
_user = _uses_of_answer.where(uses.c.run.in_(_in_scope)).scalar_subquery()
_standing = func.coalesce(_payer, case((_user.is_not(None), _USED_IN_SCOPE_BEFORE), else_=_NEW_TO_SCOPE))
_line = (identities.c.oracle, answers.c.kind, _standing.label("standing"))
_NOT_YET_USED = (
    select(*_line, func.count().label("calls"), func.sum(answers.c.cost).label("worth"))
    .select_from(answers)
    .join(identities, identities.c.id == answers.c.identity)
    .where(answers.c.key.in_(json_array()), _uses_of_answer.where(uses.c.run == _OF_RUN).scalar_subquery().is_(None))
    .group_by(*(column.name for column in _line))
)
_USED_IN_SCOPE = (
    select(uses.c.run, identities.c.oracle, answers.c.kind, answers.c.key, answers.c.cost)
    .select_from(answers)
    .join(identities, identities.c.id == answers.c.identity)
    .join(uses, and_(uses.c.answer == answers.c.id, uses.c.run.in_(_in_scope)))
    .where(answers.c.key.in_(json_array()))
)


def count_uses(connection: Connection, run: int, scope: int, keys: Sequence[str]) -> None:
    """Count those of the answers that the run begins to use now, before its uses are noted."""
    totals: dict[Line, dict[str, int]] = {}
    new = 0
    for row in connection.execute(_NOT_YET_USED, {"of_run": run, "of_scope": scope, "keys": keys}):
        new += row.calls if row.standing == _NEW_TO_SCOPE else 0
        if row.standing != _PAID_BY_RUN:
            sums = totals.setdefault((run, row.oracle, row.kind), {"cached_calls": 0, "cached_worth": 0})
            sums["cached_calls"] += row.calls
            sums["cached_worth"] += int(row.worth)
    add_to_balances(connection, {scope: Balance(kept=new)})
    _add_to_totals(connection, totals)


def count_answers(
    connection: Connection, changes: Sequence[Change], known: Collection[Charge], repeated: Collection[str]
) -> None:
    """Count what is kept, now that these charges are paid. `known` are all charges of their questions as they were,
    `repeated` the questions that had been answered before: a run that used such an answer has now paid for it."""
    paid = {after for _before, after in changes}
    for scope in sorted({charge.scope for charge in paid}):
        keys = {charge.key for charge in paid if charge.scope == scope}
        late = sorted(keys.intersection(repeated))
        rows = connection.execute(_USED_IN_SCOPE, {"of_scope": scope, "keys": late}).all() if late else []
        before = {charge.key for charge in known if charge.state == PAID and charge.scope == scope}
        probes = {charge.key for charge in paid if charge.kind == PROBE}
        new = keys - before - probes - {row.key for row in rows}
        add_to_balances(connection, {scope: Balance(kept=len(new))})
        payers = {(charge.run, charge.key) for charge in paid}
        payers -= {(charge.run, charge.key) for charge in known if charge.state == PAID}
        for row in rows:
            if (row.run, row.key) in payers:
                change = {"cached_calls": -1, "cached_worth": -row.cost}
                _add_to_totals(connection, {(row.run, row.oracle, row.kind): change})
