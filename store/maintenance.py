"""Maintenance of a store: checking it, removing what nobody needs any more, and settling what is in doubt.

A check reads every answer as it is stored, in pages with transactions of their own: that of a large store takes little
memory and blocks no run. Removing never touches answers, charges and sums: raw replies go, and runs that did nothing.
Settling books what the provider's bill shows in place of what is in doubt."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, bindparam, select, update

from twothirds.store.content import Entry, checksum, decode, encode
from twothirds.store.engine import FREE, Repository, file_problems, reads, table_sizes, vacuum, writes
from twothirds.store.errors import DamagedStore, StoreError
from twothirds.store.owners import is_dead
from twothirds.store.runs import RunRepository, add_booked, called, lock_scope
from twothirds.store.schema import CLOSED, oracles, questions, requests, runs, settlements, uncharged

PAGE = 100  # requests at a time
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
        sa.type_coerce(oracles.c.identity, sa.Text).label("identity"),
        *(requests.c[name] for name in ("answered", "dropped", "cost", "content", "checksum")),
    )
    .join(oracles, oracles.c.id == requests.c.oracle)
    .where(requests.c.content.is_not(None))
    .order_by(requests.c.id)
    .limit(PAGE)
)
_BOOKED = (
    select(runs.c.run_id, runs.c.booked, sa.func.coalesce(sa.func.sum(requests.c.booked), 0).label("adds_up"))
    .outerjoin(requests, requests.c.run == runs.c.id)
    .group_by(runs.c.id)
    .having(runs.c.booked != sa.func.coalesce(sa.func.sum(requests.c.booked), 0))
    .order_by(runs.c.id)
    .limit(LISTED)
)
_SPENT = requests.c.cost + requests.c.in_doubt
_WRONG = (
    select(requests.c.id, requests.c.booked, _SPENT.label("spent"))
    .where(sa.case((requests.c.state == CLOSED, requests.c.booked != _SPENT), else_=requests.c.booked < _SPENT))
    .order_by(requests.c.id)
    .limit(LISTED)
)
_IS_CLOSED = requests.c.state == CLOSED
_HALF_OPEN = (
    select(requests.c.id)
    .where(
        sa.or_(sa.and_(_IS_CLOSED, requests.c["keys"].is_not(None)), sa.and_(~_IS_CLOSED, requests.c["keys"].is_(None)))
    )
    .order_by(requests.c.id)
    .limit(LISTED)
)
# Of a closed request as many questions lead to it as have answers that count.
_leading = select(questions.c.request, sa.func.count().label("leading")).group_by(questions.c.request).subquery()
_LOST = (
    select(requests.c.id, (requests.c.answered - requests.c.dropped).label("counted"), _leading.c.leading)
    .outerjoin(_leading, _leading.c.request == requests.c.id)
    .where(_IS_CLOSED, sa.func.coalesce(_leading.c.leading, 0) != requests.c.answered - requests.c.dropped)
    .order_by(requests.c.id)
    .limit(LISTED)
)
_NOWHERE = (
    select(sa.func.count())
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
        return [*file_problems(connection, LISTED), *_book_problems(connection)]


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


RAW = "raw"  # the member of an answer that holds the reply as it came
# What the tables are about, by the beginning of their names; the first that fits.
KINDS = {
    "people": ("review_",),
    "answers": ("requests", "questions", "oracles", "settlements"),
    "runs": ("runs", "scopes", "uncharged"),
}


class RawReply(NamedTuple):
    """The raw text of an answer, and which answer of which request it belongs to."""

    request: int
    position: int
    answered_at: float
    raw: str


_OLD = (
    select(requests.c.id, requests.c.answered_at, requests.c.content)
    .where(requests.c.id > bindparam("after"), requests.c.answered_at < bindparam("before"))
    .order_by(requests.c.id)
    .limit(PAGE)
)
_STRIP = (
    update(requests)
    .where(requests.c.id == bindparam("at"))
    .values(content=bindparam("new_content"), checksum=bindparam("new_checksum"))
)


class Housekeeping(Repository):
    @reads
    def sizes(self, connection: Connection) -> dict[str, int]:
        """Bytes by kind. Of SQLite what the rows hold, and in `indexes and free space` the rest of the file."""
        sizes = dict.fromkeys([*KINDS, "other"], 0)
        for name, size in table_sizes(connection).items():
            kind = next((kind for kind, starts in KINDS.items() if name.startswith(starts)), "other")
            sizes[kind if name != FREE else FREE] = sizes.get(kind if name != FREE else FREE, 0) + size
        return sizes

    def replies(self, before: float) -> Iterator[list[RawReply]]:
        """Raw replies that are older, in pages."""
        after = 0
        while rows := self._page(before, after):
            yield [
                RawReply(row.id, position, row.answered_at, entry[1][RAW])
                for row in rows
                for position, entry in enumerate(decode(row.content))
                if entry is not None and entry[1].get(RAW)
            ]
            after = rows[-1].id

    @reads
    def _page(self, connection: Connection, before: float, after: int) -> Sequence[sa.Row[Any]]:
        return connection.execute(_OLD, {"before": before, "after": after}).all()

    @writes
    def remove_replies(self, connection: Connection, replies: Sequence[RawReply]) -> None:
        """Without their raw text the answers are as before; their checksums are made again."""
        wanted = defaultdict[int, set[int]](set)
        for reply in replies:
            wanted[reply.request].add(reply.position)
        found = select(requests.c.id, requests.c.content).where(requests.c.id.in_(list(wanted))).with_for_update()
        new = []
        for row in connection.execute(found):
            entries = decode(row.content)
            for position in wanted[row.id]:
                if entries[position] is not None:
                    entries[position][1][RAW] = ""
            content = encode(entries)
            new.append({"at": row.id, "new_content": content, "new_checksum": checksum(content)})
        if new:
            connection.execute(_STRIP, new)

    @reads
    def idle_runs(self, connection: Connection, before: float) -> list[dict[str, Any]]:
        """Runs that have ended before this time and have neither asked nor used anything."""
        columns = (column for column in runs.c if column.name != "scope")
        found = select(*columns).where(*_IDLE, runs.c.ended_at < before).order_by(runs.c.id)
        return [dict(row) for row in connection.execute(found).mappings()]

    @writes
    def remove_runs(self, connection: Connection, numbers: Sequence[int]) -> int:
        """Those of the runs that are still idle; how many."""
        for start in range(0, len(numbers), PAGE):
            part = runs.c.id.in_(numbers[start : start + PAGE])
            idle = select(runs.c.id).where(part, *_IDLE)
            connection.execute(sa.delete(uncharged).where(uncharged.c.run.in_(idle)))
            connection.execute(sa.delete(runs).where(part, *_IDLE))
        return len(numbers)

    def give_back_space(self) -> bool:
        """Make the file of an SQLite store as small as what it holds; False where runs that are writing prevent it."""
        return vacuum(self._transactions.engine)


_IDLE = (
    runs.c.ended_at.is_not(None),
    ~sa.exists().where(requests.c.run == runs.c.id),
    ~sa.exists().where(uncharged.c.run == runs.c.id, uncharged.c.stored + uncharged.c.computed > 0),
)


class Unsettled(NamedTuple):
    """Requests of one run and oracle that are in doubt, and the most that they may have cost."""

    run_id: str
    name: str
    oracle: str
    kind: str
    requests: int
    micro: int


class Settlement(NamedTuple):
    """What was settled: how many requests, at most how much they might have cost, and what they did cost."""

    requests: int
    before: int
    cost: int


_IN_DOUBT = (requests.c.in_doubt > 0, requests.c.state == CLOSED)  # what a batch may still answer is open
_CLEAR = (
    update(requests)
    .where(requests.c.id == bindparam("at"))
    .values(
        in_doubt=0,
        cost=requests.c.cost + bindparam("share"),
        booked=requests.c.booked - requests.c.in_doubt + bindparam("share"),
    )
)


class Settlements(RunRepository):
    @reads
    def unsettled(self, connection: Connection, run: str | None = None) -> list[Unsettled]:
        """By run, oracle and kind: of the runs that are called so (see `called`), or of every run."""
        columns = (runs.c.run_id, runs.c.name, oracles.c.name.label("oracle"), requests.c.kind)
        summed = select(
            *columns,
            sa.func.count().label("requests"),
            sa.cast(sa.func.sum(requests.c.in_doubt), sa.BigInteger).label("micro"),
        )
        joined = summed.join(runs, runs.c.id == requests.c.run).join(oracles, oracles.c.id == requests.c.oracle)
        grouped = joined.where(*_IN_DOUBT, called(run)).group_by(runs.c.id, *columns).order_by(runs.c.id, *columns)
        return [Unsettled(**row) for row in connection.execute(grouped).mappings()]

    def settle(self, run: str | None, cost: int, reason: str) -> Settlement:
        """Book `cost` in place of all that is in doubt, spread over it, and log each. Raises StoreError where that is
        more than the bounds allow."""
        return self._settle(run, cost, reason, uuid.uuid4().hex)

    @writes
    def _settle(self, connection: Connection, run: str | None, cost: int, reason: str, token: str) -> Settlement:
        logged = select(sa.func.count(), sa.func.sum(settlements.c.in_doubt)).where(settlements.c.token == token)
        count, before = connection.execute(logged).one()
        if count:  # this very call was committed, only its acknowledgement was lost
            return Settlement(count, int(before), cost)
        query = select(requests.c.id, requests.c.run, requests.c.in_doubt, runs.c.scope)
        found = query.join(runs, runs.c.id == requests.c.run).where(*_IN_DOUBT, called(run))
        for scope in sorted({row.scope for row in connection.execute(found)}):
            lock_scope(connection, scope)
        rows = connection.execute(found.order_by(requests.c.id).with_for_update(of=requests)).all()
        before = sum(row.in_doubt for row in rows)
        if cost > before:
            raise StoreError(
                f"{cost} micro-dollars are more than the {before} that are in doubt: look at the bill again, "
                "what it shows beyond that is of other calls"
            )
        changes, same = Counter[int](), {"reason": reason, "token": token, "settled_at": self._clock()}
        for row, share in zip(rows, _spread(cost, [row.in_doubt for row in rows]), strict=True):
            changes[row.run] += share - row.in_doubt
            connection.execute(_CLEAR, {"at": row.id, "share": share})
            log = {"request": row.id, "in_doubt": row.in_doubt, "cost": share} | same
            connection.execute(sa.insert(settlements).values(log))
        add_booked(connection, changes)
        return Settlement(len(rows), before, cost)


def _spread(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in proportion to the weights, to the last unit."""
    shares, done, weight_done, total_weight = [], 0, 0, max(sum(weights), 1)
    for weight in weights:
        weight_done += weight
        shares.append(total * weight_done // total_weight - done)
        done += shares[-1]
    return shares
