"""Tasks published on Mechanical Turk, and the votes of their workers.

A worker may be invented until the market confirms who submitted an assignment. So a worker's votes are held, and take
no slot of a question, until they are confirmed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, RowMapping, and_, bindparam, select, update

from store.review.items import EXPIRED, GIVEN, HELD, LEASED, VOTE, items, votes
from store.review.leases import (
    HAS_FREE_SLOT,
    NOT_SEEN,
    UNANSWERED,
    LeasedQuestion,
    expire_leases,
    free_slot,
    free_slots,
    leased_question,
    taken_slots,
)
from store.review.people import WORKER, people
from store.review.votes import LATE, SKIPPED, WITHDRAWN, count_votes
from store.schema import review_hits
from store.sql import insert_new
from store.transactions import Repository, reads, writes

PLANNED, POSTED, COLLECTED = "planned", "posted", "collected"


@dataclass(frozen=True, slots=True)
class Hit:
    token: str
    queue: str
    items: tuple[int, ...]
    terms: Mapping[str, Any]
    run_id: str
    hit_id: str | None = None
    state: str = PLANNED
    created_at: float = 0.0


_GIVEN = (
    select(votes.c.id).where(votes.c.submission == bindparam("submission"), votes.c.state == GIVEN).order_by(votes.c.id)
)
_SHARE = (
    update(votes).where(votes.c.id == bindparam("of"), votes.c.answer_key.is_(None)).values(cost=bindparam("share"))
)


class MTurk(Repository):
    @writes
    def plan(self, connection: Connection, hits: Sequence[Hit]) -> None:
        """Write down what is about to be posted, before it is, and take its questions from invited people."""
        names, now = ("token", "queue", "run_id", "hit_id", "state"), self._clock()
        rows = [
            {**{name: getattr(hit, name) for name in names}, "items": list(hit.items), "terms": dict(hit.terms)}
            for hit in hits
        ]
        insert_new(connection, review_hits, [row | {"created_at": now} for row in rows])
        _publish(connection, [item for hit in hits for item in hit.items], published=True)

    @reads
    def hits(self, connection: Connection) -> list[Hit]:
        query = select(review_hits).order_by(review_hits.c.created_at, review_hits.c.token)
        return [_hit(row) for row in connection.execute(query).mappings()]

    @reads
    def hit(self, connection: Connection, token: str) -> Hit | None:
        row = connection.execute(select(review_hits).where(review_hits.c.token == token)).mappings().one_or_none()
        return None if row is None else _hit(row)

    @writes
    def set_state(self, connection: Connection, token: str, state: str, hit_id: str | None = None) -> None:
        """Once collected, unconfirmed votes are withdrawn and the questions go back to invited people."""
        values = {"state": state} | ({"hit_id": hit_id} if hit_id else {})
        changed = update(review_hits).where(review_hits.c.token == token).values(**values)
        of_hit = connection.execute(changed.returning(review_hits.c["items"])).scalar()
        if state == COLLECTED and of_hit is not None:
            _withdraw(connection, _held(connection, votes.c.item.in_(of_hit)))
            _publish(connection, of_hit, published=False)

    @writes
    def lease_items(self, connection: Connection, person: int, wanted: Collection[int]) -> list[LeasedQuestion]:
        """Those of the questions that have a free slot and that the worker has not answered, each with a lease that
        keeps no slot: it is like one that has expired, and never ends."""
        now = self._clock()
        expire_leases(connection, now)
        free = select(items.c.id).where(HAS_FREE_SLOT, NOT_SEEN, items.c.id.in_(list(wanted))).order_by(items.c.id)
        numbers = list(connection.execute(free, {"person": person, "now": now}).scalars())
        lease = {"person": person, "purpose": VOTE, "slot": None, "state": EXPIRED, "shown_at": now, "lease_until": now}
        insert_new(connection, votes, [lease | {"item": item, "seconds": 0.0, "cost": 0} for item in numbers])
        own = [votes.c.person == person, votes.c.item.in_(list(wanted)), votes.c.purpose == VOTE]
        leased = select(votes.c.id).where(*own, votes.c.item.in_(numbers) | (votes.c.state == LEASED))
        keys = list(connection.execute(leased).scalars())
        return [leased_question(row) for row in connection.execute(UNANSWERED, {"person": person, "keys": keys})]

    @reads
    def submitted(self, connection: Connection, submission: str, name: str) -> dict[str, int]:
        """How many answers the person of that name has sent under a submission, by state."""
        query = select(votes.c.state).join(people, people.c.id == votes.c.person)
        found = connection.execute(query.where(votes.c.submission == submission, people.c.name == name)).scalars().all()
        return {state: found.count(state) for state in sorted(set(found))}

    @writes
    def confirm(self, connection: Connection, submission: str, name: str, paid: int = 0) -> int:
        """Count what the person of that name has submitted; how many votes were not counted before.

        What others sent under the same submission is withdrawn. What was paid is split among the votes in whole
        micro-dollars, the first ones bearing the remainder; a vote that a run has used keeps its cost."""
        held = _held(connection, votes.c.submission == submission)
        _withdraw(connection, [row for row in held if row.name != name])
        counted = _count(connection, [row for row in held if row.name == name])
        numbers = connection.execute(_GIVEN, {"submission": submission}).scalars().all()
        shares = [{"of": of, "share": share} for of, share in zip(numbers, split(paid, len(numbers)), strict=True)]
        if shares:
            connection.execute(_SHARE, shares)
        return counted

    @writes
    def refuse(self, connection: Connection, submission: str) -> int:
        """Withdraw the held votes of a submission; how many."""
        return _withdraw(connection, _held(connection, votes.c.submission == submission))


def _hit(row: RowMapping) -> Hit:
    return Hit(**{**row, "items": tuple(row["items"])})


def _publish(connection: Connection, wanted: Sequence[int], *, published: bool) -> None:
    """Take questions from invited people, or give them back."""
    connection.execute(update(items).where(items.c.id.in_(list(wanted))).values(published=int(published)))


def _count(connection: Connection, held: Sequence[Row[Any]]) -> int:
    """Give each held vote a free slot, or mark it as late or skipped; how many votes count now."""
    taken = taken_slots(connection, [row.item for row in held])
    counted = 0
    for row in held:
        had = row.slot is not None  # stores of older versions kept slots for workers
        slot = row.slot if had else free_slot(taken.get(row.item, set()), row.votes)
        if "skipped" in row.answer:
            state, slot, changes = SKIPPED, None, {"skipped": 1, "filled": -had}
        elif slot is None:
            state, changes = LATE, {}
        else:
            state, changes = GIVEN, {"given": 1, "filled": 1 - had}
        connection.execute(update(votes).where(votes.c.id == row.id).values(state=state, slot=slot))
        if changes:
            count_votes(connection, [row.item], **changes)
        counted += state == GIVEN
    return counted


def split(amount: int, parts: int) -> list[int]:
    """Whole parts that differ by one at most and add up."""
    return [amount // parts + (number < amount % parts) for number in range(parts)]


def _held(connection: Connection, which: ColumnElement[bool]) -> list[Row[Any]]:
    """Held votes of workers with their questions, locked."""
    found = (
        select(votes.c.id, votes.c.item, votes.c.slot, votes.c.answer, people.c.name, items.c.votes)
        .join(items, items.c.id == votes.c.item)
        .join(people, people.c.id == votes.c.person)
        .where(and_(which, votes.c.state == HELD, people.c.role == WORKER))
        .order_by(votes.c.item, votes.c.id)
        .with_for_update(of=(votes, items))
    )
    return list(connection.execute(found))


def _withdraw(connection: Connection, held: Sequence[Row[Any]]) -> int:
    ended = update(votes).where(votes.c.id.in_([row.id for row in held]))
    connection.execute(ended.values(state=WITHDRAWN, slot=None))
    free_slots(connection, [row.item for row in held if row.slot is not None])
    return len(held)
