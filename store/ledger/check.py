"""Reads the whole store for a check: every answer as it is stored, orphaned claims, the file and the sums of the books.

Pages are read in transactions of their own, so a check of a large store takes little memory and blocks no run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Text, and_, case, exists, func, or_, select, type_coerce, union

from store.ledger.books import COUNTED, used
from store.ledger.owners import is_dead
from store.packed.check import StoredAnswer, add_up_packs, packed_page
from store.packed.claims import all_packed_claims
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
    settlements,
    uses,
)
from store.transactions import Repository, reads


@dataclass(frozen=True, slots=True)
class Orphans:
    """Live claims whose process has died or whose lease has expired, and what they reserve."""

    claims: int
    micro: int


_BY_HAND = (
    select(func.coalesce(func.sum(settlements.c.cost), 0))
    .where(settlements.c.key == charges.c.key, settlements.c.fence == charges.c.fence)
    .scalar_subquery()
)
_BOOKED = exists().where(
    and_(charges.c.key == answers.c.key, charges.c.state == PAID, charges.c.cost == answers.c.cost + _BY_HAND)
)
_PAGE = (
    select(
        answers.c.id,
        answers.c.key,
        answers.c.kind,
        identities.c.oracle,
        identities.c.digest.label("identity_digest"),
        type_coerce(identities.c.identity, Text).label("identity"),
        type_coerce(answers.c.question, Text).label("question"),
        type_coerce(answers.c.answer, Text).label("answer"),
        answers.c.cost,
        answers.c.checksum,
        _BOOKED.label("booked"),
    )
    .join(identities, identities.c.id == answers.c.identity)
    .order_by(answers.c.id)
)


_IS_PAID, _IS_UNKNOWN = charges.c.state == PAID, charges.c.state == UNKNOWN
_SUMS = {
    "paid_calls": case((_IS_PAID, 1), else_=0),
    "unknown_calls": case((and_(or_(_IS_PAID, _IS_UNKNOWN), charges.c.in_doubt > 0), 1), else_=0),
    **{
        name: case((or_(_IS_PAID, _IS_UNKNOWN), charges.c[of]), else_=0)
        for name, of in (
            ("requests", "requests"),
            ("input_tokens", "input_tokens"),
            ("output_tokens", "output_tokens"),
            ("paid", "cost"),
            ("unknown", "in_doubt"),
        )
    },
    "reserved": case((charges.c.state.in_(LIVE), charges.c.reserved), else_=0),
}
_BOOKED_SUMS = tuple(name for name in COUNTED if name != "cached_worth")
_CHARGED = select(
    charges.c.run, charges.c.oracle, charges.c.kind, *(func.sum(of).label(name) for name, of in _SUMS.items())
).group_by(charges.c.run, charges.c.oracle, charges.c.kind)

_OF_SCOPE = union(
    select(runs.c.scope, answers.c.id)
    .select_from(charges)
    .join(answers, answers.c.key == charges.c.key)
    .join(runs, runs.c.id == charges.c.run)
    .where(_IS_PAID, charges.c.kind != PROBE),
    select(runs.c.scope, uses.c.answer).join(runs, runs.c.id == uses.c.run),
).subquery()
_STORED = select(_OF_SCOPE.c.scope, func.count()).group_by(_OF_SCOPE.c.scope)


class Check(Repository):
    def answers(self) -> Iterator[list[StoredAnswer]]:
        """All answers as they are stored, in pages."""
        after = 0
        while found := self._page(after):
            yield found
            after = found[-1].id
        last = "00"
        while last:
            page, last = self._packed_page(last)
            yield page

    @reads
    def _packed_page(self, connection: Connection, after: str) -> tuple[list[StoredAnswer], str]:
        return packed_page(connection, after)

    @reads
    def _page(self, connection: Connection, after: int) -> list[StoredAnswer]:
        return [
            StoredAnswer(**row) for row in connection.execute(_PAGE.where(answers.c.id > after).limit(1000)).mappings()
        ]

    @reads
    def orphans(self, connection: Connection) -> Orphans:
        """The claims that the next run will end."""
        live = select(charges.c.owner, charges.c.lease_until, charges.c.reserved).where(charges.c.state.in_(LIVE))
        rows, now = connection.execute(live).all(), self._clock()
        dead = {owner for owner in {row.owner for row in rows} if is_dead(owner)}
        left = [row.reserved for row in rows if row.owner in dead or row.lease_until <= now]
        for claim in all_packed_claims(connection):
            if claim.lease_until <= now or is_dead(claim.owner):
                left += claim.reserved
        return Orphans(len(left), sum(left))

    @reads
    def problems(self, connection: Connection) -> list[str]:
        """One line per thing that is wrong with the file or the books; empty when all is well."""
        return [*_file_problems(connection), *_book_problems(connection), *_answer_problems(connection)]


def _file_problems(connection: Connection) -> list[str]:
    if connection.dialect.name != "sqlite":
        return []
    lines = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars().all()
    broken = [f"file: {line}" for line in lines if line != "ok"]
    dangling = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    return broken + [f"table {row[0]} refers to a row of {row[2]} that is not there" for row in dangling[:20]]


def _book_problems(connection: Connection) -> list[str]:
    """What is booked must be what the charges and uses add up to. `cached_worth` is not in the books: an answer that a
    run has used may have been replaced since."""
    totals: dict[tuple[Any, ...], dict[str, int]] = {
        (row.run, row.oracle, row.kind): {name: int(getattr(row, name)) for name in _SUMS}
        for row in connection.execute(_CHARGED)
    }
    for row in connection.execute(used()):
        totals.setdefault((row.run, row.oracle, row.kind), {})["cached_calls"] = row.cached_calls
    packs = add_up_packs(connection)
    for line, sums in packs.totals.items():
        for name, more in sums.items():
            totals.setdefault(line, {})[name] = totals.get(line, {}).get(name, 0) + more
    booked_totals = select(cost_totals).where(cost_totals.c.kind != COMPUTED)
    booked = {tuple(row[:3]): row for row in connection.execute(booked_totals)}
    names = {row.id: row for row in connection.execute(select(runs.c.id, runs.c.run_id, runs.c.scope))}
    found = [*packs.problems, *_balance_problems(connection, names, totals, packs.stored)]
    for at in sorted({*totals, *booked}, key=str):
        for name in _BOOKED_SUMS:
            is_booked, adds_up = getattr(booked.get(at), name, 0), totals.get(at, {}).get(name, 0)
            if is_booked != adds_up:
                run = names[at[0]].run_id if at[0] in names else at[0]
                found.append(f"run {run}, {at[1]}, {at[2]}: {name} is booked as {is_booked}, but {adds_up} adds up")
    return found


def _balance_problems(
    connection: Connection,
    names: Mapping[int, Row[Any]],
    totals: Mapping[tuple[Any, ...], Mapping[str, int]],
    packed_answers: Mapping[int, int],
) -> list[str]:
    """Spent must be what was paid plus what is in doubt, and reserved what is in flight."""
    charged, claimed = Counter[int](), Counter[int]()
    for (run, *_line), sums in totals.items():
        if run in names:  # else the file refers to a row that is not there, which is reported
            charged[names[run].scope] += sums.get("paid", 0) + sums.get("unknown", 0)
            claimed[names[run].scope] += sums.get("reserved", 0)
    found, stored = [], Counter(dict(connection.execute(_STORED).tuples().all())) + Counter(packed_answers)
    for row in connection.execute(select(scopes).order_by(scopes.c.id)):
        if row.spent != charged[row.id]:
            found.append(f"scope {row.scope}: {row.spent} micro-dollars spent, but {charged[row.id]} charged")
        if row.reserved != claimed[row.id]:
            found.append(f"scope {row.scope}: {row.reserved} micro-dollars reserved, but {claimed[row.id]} claimed")
        if row.kept != stored[row.id]:
            found.append(f"scope {row.scope}: {row.kept} answers booked, but {stored[row.id]} paid or used")
    return found


def _answer_problems(connection: Connection) -> list[str]:
    paid = and_(charges.c.key == answers.c.key, charges.c.state == PAID)
    unpaid = select(answers.c.key).outerjoin(charges, paid).where(charges.c.key.is_(None)).order_by(answers.c.id)
    not_stored = (
        select(charges.c.key)
        .outerjoin(answers, answers.c.key == charges.c.key)
        .where(charges.c.state == PAID, answers.c.key.is_(None))
        .order_by(charges.c.key)
    )
    return [
        *(f"answer {key}: no charge was booked for it" for key in connection.execute(unpaid.limit(20)).scalars()),
        *(f"charge {key}: its answer is not kept" for key in connection.execute(not_stored.limit(20)).scalars()),
    ]
