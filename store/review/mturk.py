"""Tasks published on Mechanical Turk, and the votes of their workers.

A worker may be invented until the market confirms who submitted an assignment. So a worker's votes are held, and take
no slot of a question, until they are confirmed. Until then they are those of a worker in one assignment, who is another
person than the worker: whoever uses somebody's id keeps nobody from answering. An assignment counts in the task in
which it was made, and nowhere else."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, Row, RowMapping, bindparam, select, update

from twothirds.store.engine import Repository, insert_new, reads, writes
from twothirds.store.review.leases import (
    HAS_FREE_SLOT,
    NOT_SEEN,
    LeasedQuestion,
    expire_leases,
    free_slot,
    taken_slots,
    unanswered_by,
)
from twothirds.store.review.people import add_person
from twothirds.store.review.questions import (
    EXPIRED,
    GIVEN,
    HELD,
    LATE,
    SKIPPED,
    VOTE,
    WITHDRAWN,
    items,
    update_states,
    votes,
)
from twothirds.store.schema import review_hits
from twothirds.store.schema import review_people as people
from twothirds.store.schema import review_used as used

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


def unconfirmed(name: str, assignment: str) -> str:
    """The name under which a worker answers until the market has confirmed the assignment."""
    return f"{name} {assignment}"


_ANSWERED = (GIVEN, LATE, SKIPPED, WITHDRAWN)  # states of the votes of confirmed workers
_IS_USED = sa.exists().where(used.c.item == votes.c.item, used.c.person == votes.c.person)
_SHARE = update(votes).where(votes.c.id == bindparam("of"), ~_IS_USED).values(cost=bindparam("share"))
_HELD = (
    select(votes.c.id, votes.c.item, votes.c.answer, people.c.name, items.c.votes)
    .join(items, items.c.id == votes.c.item)
    .join(people, people.c.id == votes.c.person)
    .where(votes.c.state == HELD, people.c.is_worker)
    .order_by(votes.c.item, votes.c.id)
    .with_for_update(of=(votes, items))
)


class MTurk(Repository):
    @writes
    def plan(self, connection: Connection, hits: Sequence[Hit]) -> None:
        """Write down what is about to be posted, before it is, and take its questions from invited people."""
        names, now = ("token", "queue", "run_id", "hit_id", "state"), self._clock()
        for hit in hits:
            row = {name: getattr(hit, name) for name in names} | {"created_at": now}
            insert_new(connection, review_hits, [row | {"items": list(hit.items), "terms": dict(hit.terms)}])
            _publish(connection, hit.items, published=True)

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
    def lease_items(
        self, connection: Connection, person: int, wanted: Collection[int], worker: str = ""
    ) -> list[LeasedQuestion]:
        """Those of the questions that have a free slot and that neither the person nor the confirmed worker of that
        name has answered, each with a lease that keeps no slot: it is like one that has expired, and never ends."""
        now = self._clock()
        expire_leases(connection, now)
        free = select(items.c.id).where(HAS_FREE_SLOT, NOT_SEEN, items.c.id.in_(list(wanted))).order_by(items.c.id)
        answered = _answered_by(connection, worker, wanted)
        found = connection.execute(free, {"person": person, "now": now}).scalars()
        numbers = [item for item in found if item not in answered]
        lease = {"person": person, "purpose": VOTE, "slot": None, "state": EXPIRED, "shown_at": now, "lease_until": now}
        insert_new(connection, votes, [lease | {"item": item, "seconds": 0.0, "cost": 0} for item in numbers])
        leased = select(votes.c.id).where(votes.c.person == person, votes.c.item.in_(numbers), votes.c.purpose == VOTE)
        return unanswered_by(connection, person, connection.execute(leased).scalars().all())

    @reads
    def submitted(self, connection: Connection, token: str, assignment: str, name: str) -> dict[str, int]:
        """How many answers the worker of that name has sent in an assignment of a task, by state."""
        names = (name, unconfirmed(name, assignment))  # once it is confirmed, and before
        query = select(votes.c.state, sa.func.count()).join(people).where(_made_in(connection, token, assignment))
        counted = query.where(people.c.name.in_(names)).group_by(votes.c.state).order_by(votes.c.state)
        return {row[0]: row[1] for row in connection.execute(counted)}

    @writes
    def confirm(self, connection: Connection, token: str, assignment: str, name: str, paid: int = 0) -> int:
        """Count what the worker of that name has sent in an assignment of a task; how many votes were not counted
        before.

        What others sent under the same assignment is withdrawn. What was paid is split among the votes in whole
        micro-dollars, the first ones bearing the remainder; a vote that a run has used keeps its cost."""
        of_task = _made_in(connection, token, assignment)
        held = _held(connection, of_task)
        person = add_person(connection, name, self._clock(), is_worker=True).id
        answered = _answered_by(connection, name, [row.item for row in held])
        own = [row for row in held if row.name == unconfirmed(name, assignment) and row.item not in answered]
        _withdraw(connection, [row for row in held if row not in own])
        counted = _count(connection, own, person)
        given = select(votes.c.id).where(of_task, votes.c.state == GIVEN).order_by(votes.c.id)
        numbers = connection.execute(given).scalars().all()
        shares = [{"of": of, "share": share} for of, share in zip(numbers, split(paid, len(numbers)), strict=True)]
        if shares:
            connection.execute(_SHARE, shares)
        return counted

    @writes
    def refuse(self, connection: Connection, token: str, assignment: str) -> int:
        """Withdraw the held votes of an assignment of a task; how many."""
        return _withdraw(connection, _held(connection, _made_in(connection, token, assignment)))


def _hit(row: RowMapping) -> Hit:
    return Hit(**{**row, "items": tuple(row["items"])})


def _publish(connection: Connection, wanted: Sequence[int], *, published: bool) -> None:
    """Take questions from invited people, or give them back."""
    connection.execute(update(items).where(items.c.id.in_(list(wanted))).values(published=published))


def _made_in(connection: Connection, token: str, assignment: str) -> ColumnElement[bool]:
    """That a vote was sent in this assignment and is about a question of this task."""
    of_task = connection.execute(select(review_hits.c["items"]).where(review_hits.c.token == token)).scalar()
    return sa.and_(votes.c.submission == assignment, votes.c.item.in_(of_task or []))


def _answered_by(connection: Connection, name: str, wanted: Collection[int]) -> set[int]:
    """Those of the questions that the confirmed worker of that name has answered."""
    query = select(votes.c.item).join(people).where(people.c.name == name, votes.c.state.in_(_ANSWERED))
    of_items = query.where(votes.c.purpose == VOTE, votes.c.item.in_(list(wanted)))
    return set(connection.execute(of_items).scalars()) if name else set()


def _count(connection: Connection, held: Sequence[Row[Any]], person: int) -> int:
    """Make held votes those of the person, each in a free slot, or late or skipped; how many count now."""
    taken = taken_slots(connection, [row.item for row in held])
    counted = 0
    for row in held:
        slot = None if "skipped" in row.answer else free_slot(taken.get(row.item, ()), row.votes)
        state = SKIPPED if "skipped" in row.answer else LATE if slot is None else GIVEN
        own = update(votes).where(votes.c.id == row.id)
        connection.execute(own.values(person=person, state=state, slot=slot))
        counted += state == GIVEN
    update_states(connection, [row.item for row in held])
    return counted


def split(amount: int, shares: int) -> list[int]:
    """Whole parts that differ by one at most and add up."""
    return [amount // shares + (number < amount % shares) for number in range(shares)]


def _held(connection: Connection, which: ColumnElement[bool]) -> list[Row[Any]]:
    """Held votes of workers with their questions, locked."""
    return list(connection.execute(_HELD.where(which)))


def _withdraw(connection: Connection, held: Sequence[Row[Any]]) -> int:
    ended = update(votes).where(votes.c.id.in_([row.id for row in held]))
    connection.execute(ended.values(state=WITHDRAWN))
    return len(held)
