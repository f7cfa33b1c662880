"""Which questions a person is shown next. A lease keeps a place in a question for its holder until it expires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from store.review_items import CHECK, DONE, OPEN, items, votes

LEASED, EXPIRED, HELD, GIVEN = "leased", "expired", "held", "given"
IN_PLACE = (LEASED, HELD, GIVEN)
VOTE, REPEAT = "vote", "repeat"


@dataclass(frozen=True, slots=True)
class Terms:
    """How much is shown at once, for how long, and how often a question is one whose answer is known."""

    page_size: int = 12
    lease_seconds: float = 900.0
    queue: str | None = None
    checks: float = 0.0  # share of attention checks
    repeats: float = 0.0  # share of questions shown a second time


@dataclass(frozen=True, slots=True)
class Shown:
    """A question as it lies before a person; `id` is that of the lease."""

    id: int
    item: int
    kind: str
    question: dict[str, Any]
    purpose: str
    answer: dict[str, Any] | None  # of an answer that was undone
    queue: str


def next_page(connection: Connection, person: int, terms: Terms, now: float, chance: float) -> list[Shown]:
    """What the person has before them, with the lease started anew, or else the next questions; empty when there are
    none. `chance` (0 to 1) decides about checks and repetitions."""
    expire(connection, now)
    mine = _mine(connection, person)
    if mine:
        ids = [row.id for row in mine]
        connection.execute(update(votes).where(votes.c.id.in_(ids)).values(lease_until=now + terms.lease_seconds))
        return [_shown(row) for row in mine]
    chosen = _choose(connection, person, terms, now)
    if chosen:
        extra = _extras(connection, person, terms, chosen, chance)
        _lease(connection, person, chosen, terms, now)
        for item, purpose in extra:
            _insert(connection, {"item": item, "person": person, "purpose": purpose, "slot": None}, terms, now)
    return [_shown(row) for row in _mine(connection, person)]


def expire(connection: Connection, now: float) -> None:
    """Free the places whose lease is over."""
    over = and_(votes.c.state == LEASED, votes.c.lease_until <= now)
    if not connection.execute(select(exists().where(over))).scalar():
        return
    ended = connection.execute(
        update(votes).where(over).values(state=EXPIRED, slot=None).returning(votes.c.item, votes.c.purpose)
    ).all()
    free_places(connection, [row.item for row in ended if row.purpose == VOTE])


def free_places(connection: Connection, numbers: Sequence[int]) -> None:
    rows = [{"of": number} for number in sorted(numbers)]
    if rows:
        connection.execute(update(items).where(items.c.id == bindparam("of")).values(filled=items.c.filled - 1), rows)


def drop_leases(connection: Connection, person: int) -> None:
    """Give back what the person has before them unanswered."""
    mine = and_(votes.c.person == person, votes.c.state == LEASED)
    ended = connection.execute(
        update(votes).where(mine).values(state=EXPIRED, slot=None).returning(votes.c.item, votes.c.purpose)
    ).all()
    free_places(connection, [row.item for row in ended if row.purpose == VOTE])


def answerable(person: int, now: float, queue: str | None) -> ColumnElement[bool]:
    """Open questions that still have a place, and that the person has neither answered nor skipped."""
    met = exists().where(
        votes.c.item == items.c.id, votes.c.person == person, votes.c.purpose == VOTE, votes.c.state != EXPIRED
    )
    return and_(
        items.c.state == OPEN,
        items.c.filled < items.c.votes,
        or_(items.c.deadline.is_(None), items.c.deadline > now),
        items.c.queue == queue if queue is not None else items.c.queue.is_not(None),
        ~met,
    )


_ORDER = (items.c.priority.desc(), items.c.deadline.is_(None), items.c.deadline, items.c.id)


def _choose(connection: Connection, person: int, terms: Terms, now: float) -> list[Row[Any]]:
    """The most urgent question and those that may stand beside it, locked; those being handed out now are passed by."""
    free = select(items).where(answerable(person, now, terms.queue)).order_by(*_ORDER)
    first = connection.execute(_locked(free.limit(1))).one_or_none()
    if first is None or not first.page:
        return [] if first is None else [first]
    return list(connection.execute(_locked(free.where(items.c.page == first.page).limit(terms.page_size))))


def lease_items(connection: Connection, person: int, wanted: Sequence[int], terms: Terms, now: float) -> list[Shown]:
    """A lease on these very questions, where the person has not met them and they still have a place."""
    expire(connection, now)
    free = select(items).where(answerable(person, now, None), items.c.id.in_(list(wanted))).order_by(items.c.id)
    _lease(connection, person, list(connection.execute(_locked(free))), terms, now)
    return [_shown(row) for row in _mine(connection, person) if row.item in set(wanted)]


def _locked(query: Select[Any]) -> Select[Any]:
    return query.with_for_update(of=items, skip_locked=True)


def _lease(connection: Connection, person: int, chosen: Sequence[Row[Any]], terms: Terms, now: float) -> None:
    taken = taken_slots(connection, [row.id for row in chosen])
    for row in chosen:
        slot = free_slot(taken.get(row.id, set()), row.votes)
        if slot is not None:
            _insert(connection, {"item": row.id, "person": person, "purpose": VOTE, "slot": slot}, terms, now)
            connection.execute(update(items).where(items.c.id == row.id).values(filled=items.c.filled + 1))


def taken_slots(connection: Connection, numbers: Sequence[int]) -> dict[int, set[int]]:
    query = select(votes.c.item, votes.c.slot).where(
        votes.c.item.in_(list(numbers)), votes.c.purpose == VOTE, votes.c.state.in_(IN_PLACE)
    )
    taken: dict[int, set[int]] = {}
    for row in connection.execute(query):
        taken.setdefault(row.item, set()).add(row.slot)
    return taken


def free_slot(taken: set[int], wanted: int) -> int | None:
    return next((slot for slot in range(wanted) if slot not in taken), None)


def _insert(connection: Connection, place: dict[str, Any], terms: Terms, now: float) -> None:
    """Lease a place; a lease of the same person that had expired is taken up again."""
    fresh = {"slot": place["slot"], "state": LEASED, "shown_at": now, "lease_until": now + terms.lease_seconds}
    again = update(votes).where(
        *(votes.c[name] == place[name] for name in ("item", "person", "purpose")), votes.c.state == EXPIRED
    )
    if connection.execute(again.values(**fresh)).rowcount == 0:
        connection.execute(insert(votes).values({**place, **fresh, "seconds": 0.0, "cost": 0}))


def _extras(
    connection: Connection, person: int, terms: Terms, chosen: Sequence[Row[Any]], chance: float
) -> list[tuple[int, str]]:
    """Checks and repetitions to mix in among labels: as their shares say, by chance for the fraction."""
    if not chosen[0].page:
        return []
    met = select(votes.c.item).where(votes.c.person == person, votes.c.state != EXPIRED)
    checks = (
        select(items.c.id)
        .where(items.c.page == chosen[0].page, items.c.id.not_in(met))
        .where(or_(items.c.state == CHECK, and_(items.c.state == DONE, items.c.id.in_(_UNANIMOUS))))
        .order_by(items.c.state, func.abs(items.c.id - chosen[0].id))
        .limit(_count(terms.checks * len(chosen), chance))
    )
    again = votes.alias("again")
    repeated = exists().where(again.c.item == items.c.id, again.c.person == person, again.c.purpose == REPEAT)
    repeats = (
        select(items.c.id)
        .join(votes, votes.c.item == items.c.id)
        .where(votes.c.person == person, votes.c.purpose == VOTE, votes.c.state == GIVEN)
        .where(items.c.page == chosen[0].page, ~repeated)
        .order_by(votes.c.answered_at)
        .limit(_count(terms.repeats * len(chosen), chance))
    )
    return [(item, "check") for item in connection.execute(checks).scalars()] + [
        (item, REPEAT) for item in connection.execute(repeats).scalars()
    ]


_UNANIMOUS = (
    select(votes.c.item)
    .where(votes.c.purpose == VOTE, votes.c.state == GIVEN)
    .group_by(votes.c.item)
    .having(func.count() > 1, func.count(cast(votes.c.answer, Text).distinct()) == 1)
)


def _count(expected: float, chance: float) -> int:
    return int(expected) + (chance < expected - int(expected))


def unanswered(connection: Connection, person: int, leases: Sequence[int]) -> list[Shown]:
    """The person's own among these leases that have no answer yet, also where they have expired."""
    query = _SHOWN.where(votes.c.person == person, votes.c.id.in_(list(leases)), votes.c.state.in_((LEASED, EXPIRED)))
    return [_shown(row) for row in connection.execute(query)]


# Ordered so that checks and repetitions stand anywhere among the others.
_SHOWN = (
    select(votes, items.c.kind, items.c.question, items.c.queue)
    .join(items, items.c.id == votes.c.item)
    .order_by(items.c.digest)
)


def _mine(connection: Connection, person: int) -> list[Row[Any]]:
    return list(connection.execute(_SHOWN.where(votes.c.person == person, votes.c.state == LEASED)))


def _shown(row: Row[Any]) -> Shown:
    return Shown(row.id, row.item, row.kind, row.question, row.purpose, row.answer, row.queue)
