"""Votes of workers whom a marketplace sends. Nothing tells a worker from one that somebody made up until the market
confirms who handed an assignment in: so they take no place in a question before, and cannot keep others from it.

Tasks that are published elsewhere (Mechanical Turk): which questions each holds and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, select, update

from store.review.items import ASKED, EXPIRED, GIVEN, HELD, LEASED, VOTE, items, votes
from store.review.leases import HAS_PLACE, NOT_MET, Shown, expire, free_places, free_slot, taken_slots, unanswered
from store.review.people import WORKER, people
from store.review.votes import LATE, SKIPPED, WITHDRAWN, count_votes
from store.schema import review_hits, review_items, review_waits, runs
from store.sql import insert_new


def show_items(connection: Connection, person: int, wanted: Sequence[int], now: float) -> list[Shown]:
    """These very questions, as far as they have a place and the worker has not answered them, each with a lease that
    keeps no place: as one that has expired, it lasts for its answer."""
    expire(connection, now)
    free = select(ASKED[0]).where(HAS_PLACE, NOT_MET, items.c.id.in_(list(wanted))).order_by(items.c.id)
    numbers = list(connection.execute(free, {"person": person, "now": now}).scalars())
    lease = {"person": person, "purpose": VOTE, "slot": None, "state": EXPIRED, "shown_at": now, "lease_until": now}
    insert_new(connection, votes, [lease | {"item": item, "seconds": 0.0, "cost": 0} for item in numbers])
    theirs = select(votes.c.id).where(votes.c.person == person, votes.c.item.in_(list(wanted)), votes.c.purpose == VOTE)
    own = connection.execute(theirs.where(votes.c.item.in_(numbers) | (votes.c.state == LEASED))).scalars()
    return unanswered(connection, person, list(own))


def submitted(connection: Connection, submission: str, name: str) -> dict[str, int]:
    """What the person of that name has sent under the name of a submission: how many answers, by state."""
    query = select(votes.c.state).join(people, people.c.id == votes.c.person)
    found = connection.execute(query.where(votes.c.submission == submission, people.c.name == name)).scalars().all()
    return {state: found.count(state) for state in sorted(set(found))}


def confirm(connection: Connection, submission: str, name: str, paid: int = 0) -> int:
    """Count what the person of that name has sent in; how many votes were not counted before. What others sent under
    the same submission is set aside. What was paid for all of them together is split among them in whole micro-dollars,
    the first ones bearing the remainder; a vote that a run has taken keeps what it had."""
    held = _held(connection, votes.c.submission == submission)
    _set_aside(connection, [row for row in held if row.name != name])
    counted = _give_places(connection, [row for row in held if row.name == name])
    numbers = connection.execute(_GIVEN, {"submission": submission}).scalars().all()
    shares = [{"of": of, "share": share} for of, share in zip(numbers, split(paid, len(numbers)), strict=True)]
    if shares:
        connection.execute(_SHARE, shares)
    return counted


def _give_places(connection: Connection, held: Sequence[Row[Any]]) -> int:
    taken = taken_slots(connection, [row.item for row in held])
    counted = 0
    for row in held:
        had = row.slot is not None  # stores of older versions kept places for workers
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


_GIVEN = (
    select(votes.c.id).where(votes.c.submission == bindparam("submission"), votes.c.state == GIVEN).order_by(votes.c.id)
)
_SHARE = (
    update(votes).where(votes.c.id == bindparam("of"), votes.c.answer_key.is_(None)).values(cost=bindparam("share"))
)


def split(amount: int, parts: int) -> list[int]:
    """Whole parts that differ by one at most and add up."""
    return [amount // parts + (number < amount % parts) for number in range(parts)]


def refuse(connection: Connection, submission: str) -> int:
    """Set held votes aside; how many."""
    return _set_aside(connection, _held(connection, votes.c.submission == submission))


def refuse_unconfirmed(connection: Connection, wanted: Sequence[int]) -> int:
    """Set aside what was sent about these questions and confirmed by nobody, once nothing can come any more."""
    return _set_aside(connection, _held(connection, votes.c.item.in_(list(wanted))))


def _held(connection: Connection, which: ColumnElement[bool]) -> list[Row[Any]]:
    """Held votes with their questions, which nobody else can change meanwhile."""
    found = (
        select(votes.c.id, votes.c.item, votes.c.slot, votes.c.answer, people.c.name, items.c.votes)
        .join(items, items.c.id == votes.c.item)
        .join(people, people.c.id == votes.c.person)
        .where(and_(which, votes.c.state == HELD, people.c.role == WORKER))
        .order_by(votes.c.item, votes.c.id)
        .with_for_update(of=(votes, items))
    )
    return list(connection.execute(found))


def _set_aside(connection: Connection, held: Sequence[Row[Any]]) -> int:
    ended = update(votes).where(votes.c.id.in_([row.id for row in held]))
    connection.execute(ended.values(state=WITHDRAWN, slot=None))
    free_places(connection, [row.item for row in held if row.slot is not None])
    return len(held)


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


def plan(connection: Connection, hits: Sequence[Hit], now: float) -> None:
    """Write down what is about to be posted, before it is."""
    names = ("token", "queue", "run_id", "hit_id", "state")
    rows = [
        {**{name: getattr(hit, name) for name in names}, "items": list(hit.items), "terms": dict(hit.terms)}
        for hit in hits
    ]
    insert_new(connection, review_hits, [row | {"created_at": now} for row in rows])
    publish(connection, [item for hit in hits for item in hit.items], published=True)


def publish(connection: Connection, wanted: Sequence[int], *, published: bool) -> None:
    """Take questions from the page of invited people, or give them back to it."""
    chosen = review_items.c.id.in_(list(wanted))
    connection.execute(update(review_items).where(chosen).values(published=int(published)))


def asking_run(connection: Connection, wanted: Sequence[int]) -> str | None:
    """The run that waits for these questions, the latest where several do."""
    query = (
        select(review_waits.c.run_id)
        .join(runs, runs.c.run_id == review_waits.c.run_id)
        .where(review_waits.c.item.in_(list(wanted)))
        .order_by(runs.c.started_at.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def every(connection: Connection) -> list[Hit]:
    rows = connection.execute(select(review_hits).order_by(review_hits.c.created_at, review_hits.c.token)).mappings()
    return [Hit(**{**row, "items": tuple(row["items"])}) for row in rows]


def one(connection: Connection, token: str) -> Hit | None:
    row = connection.execute(select(review_hits).where(review_hits.c.token == token)).mappings().one_or_none()
    return None if row is None else Hit(**{**row, "items": tuple(row["items"])})


def move(connection: Connection, token: str, state: str, hit_id: str | None) -> None:
    values = {"state": state} | ({"hit_id": hit_id} if hit_id else {})
    connection.execute(update(review_hits).where(review_hits.c.token == token).values(**values))
    if state == COLLECTED and (hit := one(connection, token)) is not None:
        refuse_unconfirmed(connection, hit.items)
        publish(connection, hit.items, published=False)
