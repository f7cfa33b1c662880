"""Reads the whole store for a check: every answer as it is stored, orphaned requests, the file and the books.

Pages are read in transactions of their own, so a check of a large store takes little memory and blocks no run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, and_, case, func, or_, select, type_coerce

from twothirds.store.content import Entry, checksum, decode
from twothirds.store.errors import DamagedStore
from twothirds.store.owners import is_dead
from twothirds.store.schema import CLOSED, oracles, questions, requests, runs
from twothirds.store.transactions import Repository, reads

PAGE = 100  # requests
LISTED = 20  # problems of one kind


@dataclass(frozen=True, slots=True)
class Orphans:
    """Open requests whose process has died or whose lease has expired, and what they have booked."""

    requests: int
    micro: int


class StoredRequest(NamedTuple):
    """A request that has answers, as it is stored; no entries where they cannot be read."""

    id: int
    kind: str
    oracle: str
    identity_digest: str
    identity: str
    answered: int
    dropped: int
    cost: int
    is_unaltered: bool
    entries: list[Entry | None] | None


_ANSWERED = (
    select(
        requests.c.id,
        requests.c.kind,
        oracles.c.name.label("oracle"),
        oracles.c.digest,
        type_coerce(oracles.c.identity, Text).label("identity"),
        *(requests.c[name] for name in ("answered", "dropped", "cost", "content", "checksum")),
    )
    .join(oracles, oracles.c.id == requests.c.oracle)
    .where(requests.c.content.is_not(None))
    .order_by(requests.c.id)
    .limit(PAGE)
)
_BOOKED = (
    select(runs.c.run_id, runs.c.booked, func.coalesce(func.sum(requests.c.booked), 0).label("adds_up"))
    .outerjoin(requests, requests.c.run == runs.c.id)
    .group_by(runs.c.id)
    .having(runs.c.booked != func.coalesce(func.sum(requests.c.booked), 0))
    .order_by(runs.c.id)
    .limit(LISTED)
)
_SPENT = requests.c.cost + requests.c.in_doubt
_WRONG = (
    select(requests.c.id, requests.c.booked, _SPENT.label("spent"))
    .where(case((requests.c.state == CLOSED, requests.c.booked != _SPENT), else_=requests.c.booked < _SPENT))
    .order_by(requests.c.id)
    .limit(LISTED)
)
_IS_CLOSED = requests.c.state == CLOSED
_HALF_OPEN = (
    select(requests.c.id)
    .where(or_(and_(_IS_CLOSED, requests.c["keys"].is_not(None)), and_(~_IS_CLOSED, requests.c["keys"].is_(None))))
    .order_by(requests.c.id)
    .limit(LISTED)
)
# Of a closed request as many questions lead to it as have answers that count.
_leading = select(questions.c.request, func.count().label("leading")).group_by(questions.c.request).subquery()
_LOST = (
    select(requests.c.id, (requests.c.answered - requests.c.dropped).label("counted"), _leading.c.leading)
    .outerjoin(_leading, _leading.c.request == requests.c.id)
    .where(_IS_CLOSED, func.coalesce(_leading.c.leading, 0) != requests.c.answered - requests.c.dropped)
    .order_by(requests.c.id)
    .limit(LISTED)
)
_NOWHERE = (
    select(func.count())
    .select_from(questions)
    .outerjoin(requests, requests.c.id == questions.c.request)
    .where(requests.c.id.is_(None))
)


class Check(Repository):
    def answers(self) -> Iterator[list[StoredRequest]]:
        """All requests that have answers, in pages."""
        after = 0
        while found := self._page(after):
            yield found
            after = found[-1].id

    @reads
    def _page(self, connection: Connection, after: int) -> list[StoredRequest]:
        return [_as_stored(row) for row in connection.execute(_ANSWERED.where(requests.c.id > after))]

    @reads
    def orphans(self, connection: Connection) -> Orphans:
        """The requests that the next run will end."""
        still_open = select(requests.c.owner, requests.c.lease_until, requests.c.booked).where(
            ~_IS_CLOSED, requests.c.owner != ""
        )
        rows, now = connection.execute(still_open).all(), self._clock()
        dead = {owner for owner in {row.owner for row in rows} if is_dead(owner)}
        left = [row.booked for row in rows if row.owner in dead or row.lease_until <= now]
        return Orphans(len(left), sum(left))

    @reads
    def problems(self, connection: Connection) -> list[str]:
        """One line per thing that is wrong with the file or the books; empty when all is well."""
        return [*_file_problems(connection), *_book_problems(connection)]


def _as_stored(row: Any) -> StoredRequest:
    try:
        entries: list[Any] | None = decode(row.content)
    except DamagedStore:
        entries = None
    if not isinstance(entries, list) or not all(entry is None or _is_entry(entry) for entry in entries):
        entries = None
    return StoredRequest(
        id=row.id,
        kind=row.kind,
        oracle=row.oracle,
        identity_digest=row.digest,
        identity=row.identity,
        answered=row.answered,
        dropped=row.dropped,
        cost=row.cost,
        is_unaltered=checksum(row.content) == row.checksum,
        entries=entries,
    )


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and all(isinstance(part, dict) for part in entry)


def _file_problems(connection: Connection) -> list[str]:
    if connection.dialect.name != "sqlite":
        return []
    lines = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars().all()
    broken = [f"file: {line}" for line in lines if line != "ok"]
    dangling = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    return broken + [f"table {row[0]} refers to a row of {row[2]} that is not there" for row in dangling[:LISTED]]


def _book_problems(connection: Connection) -> list[str]:
    found = [
        f"run {row.run_id}: {row.booked} micro-dollars booked, but {row.adds_up} add up"
        for row in connection.execute(_BOOKED)
    ]
    found += [
        f"request {row.id}: {row.booked} micro-dollars booked, but {row.spent} charged or in doubt"
        for row in connection.execute(_WRONG)
    ]
    found += [
        f"request {number}: its state is not what was written" for number in connection.execute(_HALF_OPEN).scalars()
    ]
    found += [
        f"request {row.id}: {row.counted} answers, but {row.leading or 0} questions lead to them"
        for row in connection.execute(_LOST)
    ]
    nowhere = connection.execute(_NOWHERE).scalar_one()
    return found + ([f"{nowhere} questions lead to no request"] if nowhere else [])
