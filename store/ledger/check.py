"""Reads the whole store for a check: every answer as it is stored, orphaned claims, the file and the sums of the books.

Pages are read in transactions of their own, so a check of a large store takes little memory and blocks no run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, Text, and_, case, exists, func, select, type_coerce

from store.ledger.owners import is_dead
from store.schema import LIVE, PAID, UNKNOWN, answer_checksum, answers, charges, identities, runs, scopes, settlements
from store.transactions import Repository, reads


class StoredAnswer(NamedTuple):
    """An answer as it is stored, unparsed."""

    id: int
    key: str
    kind: str
    oracle: str
    identity_digest: str
    identity: str
    question: str
    answer: str
    cost: int
    checksum: str | None
    booked: bool  # a charge of this very cost was paid for it

    @property
    def is_unaltered(self) -> bool:
        """Whether its checksum is right; answers of an earlier schema have none."""
        return self.checksum is None or self.checksum == answer_checksum(self.question, self.answer, self.cost)


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
        identities.c.digest,
        type_coerce(identities.c.identity, Text),
        type_coerce(answers.c.question, Text),
        type_coerce(answers.c.answer, Text),
        answers.c.cost,
        answers.c.checksum,
        _BOOKED,
    )
    .join(identities, identities.c.id == answers.c.identity)
    .order_by(answers.c.id)
)


class Check(Repository):
    def answers(self) -> Iterator[list[StoredAnswer]]:
        """All answers as they are stored, in pages."""
        after = 0
        while found := self._page(after):
            yield found
            after = found[-1].id

    @reads
    def _page(self, connection: Connection, after: int) -> list[StoredAnswer]:
        return [StoredAnswer(*row) for row in connection.execute(_PAGE.where(answers.c.id > after).limit(1000))]

    @reads
    def orphans(self, connection: Connection) -> Orphans:
        """The claims that the next run will end."""
        live = select(charges.c.owner, charges.c.lease_until, charges.c.reserved).where(charges.c.state.in_(LIVE))
        rows, now = connection.execute(live).all(), self._clock()
        dead = {owner for owner in {row.owner for row in rows} if is_dead(owner)}
        left = [row.reserved for row in rows if row.owner in dead or row.lease_until <= now]
        return Orphans(len(left), sum(left))

    @reads
    def problems(self, connection: Connection) -> list[str]:
        """One line per thing that is wrong with the file or the books; empty when all is well."""
        return [*_file_problems(connection), *_balance_problems(connection), *_answer_problems(connection)]


def _file_problems(connection: Connection) -> list[str]:
    if connection.dialect.name != "sqlite":
        return []
    lines = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars().all()
    broken = [f"file: {line}" for line in lines if line != "ok"]
    dangling = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    return broken + [f"table {row[0]} refers to a row of {row[2]} that is not there" for row in dangling[:20]]


def _balance_problems(connection: Connection) -> list[str]:
    """Spent must be what was paid plus what is in doubt, and reserved what is in flight."""
    spent = case((charges.c.state.in_((PAID, UNKNOWN)), charges.c.cost + charges.c.in_doubt), else_=0)
    reserved = case((charges.c.state.in_(LIVE), charges.c.reserved), else_=0)
    query = (
        select(
            scopes.c.scope,
            scopes.c.spent,
            scopes.c.reserved,
            func.coalesce(func.sum(spent), 0).label("charged"),
            func.coalesce(func.sum(reserved), 0).label("claimed"),
        )
        .outerjoin(runs, runs.c.scope == scopes.c.id)
        .outerjoin(charges, charges.c.run == runs.c.id)
        .group_by(scopes.c.id, scopes.c.scope, scopes.c.spent, scopes.c.reserved)
        .order_by(scopes.c.id)
    )
    found = []
    for row in connection.execute(query):
        if row.spent != row.charged:
            found.append(f"scope {row.scope}: {row.spent} micro-dollars spent, but {row.charged} charged")
        if row.reserved != row.claimed:
            found.append(f"scope {row.scope}: {row.reserved} micro-dollars reserved, but {row.claimed} claimed")
    return found


def _answer_problems(connection: Connection) -> list[str]:
    paid = and_(charges.c.key == answers.c.key, charges.c.state == PAID)
    unpaid = select(answers.c.key).outerjoin(charges, paid).where(charges.c.key.is_(None)).order_by(answers.c.id)
    unkept = (
        select(charges.c.key)
        .outerjoin(answers, answers.c.key == charges.c.key)
        .where(charges.c.state == PAID, answers.c.key.is_(None))
        .order_by(charges.c.key)
    )
    return [
        *(f"answer {key}: no charge was booked for it" for key in connection.execute(unpaid.limit(20)).scalars()),
        *(f"charge {key}: its answer is not kept" for key in connection.execute(unkept.limit(20)).scalars()),
    ]
