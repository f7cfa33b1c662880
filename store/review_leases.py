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
        _lease(connection, person, chosen, terms, now, extra)
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


def has_place(now: float, queue: str | None) -> ColumnElement[bool]:
    """Open questions for which somebody may still be asked."""
    return and_(
        _IS_OPEN,
        items.c.filled < items.c.votes,
        or_(items.c.deadline.is_(None), items.c.deadline > now),
        items.c.queue == queue if queue is not None else items.c.queue.is_not(None),
    )


def answerable(person: int, now: float, queue: str | None) -> ColumnElement[bool]:
    """Those that the person has neither answered nor skipped."""
    return and_(has_place(now, queue), items.c.published == 0, ~_met_by(person))


def _met_by(person: int) -> ColumnElement[bool]:
    return exists().where(
        votes.c.item == items.c.id, votes.c.person == person, votes.c.purpose == VOTE, votes.c.state != EXPIRED
    )


_ORDER = (items.c.priority.desc(), items.c.id)
_IS_OPEN: ColumnElement[bool] = items.c.state == bindparam(None, OPEN, literal_execute=True)  # as its index says


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
    free = select(items).where(has_place(now, None), ~_met_by(person), items.c.id.in_(list(wanted)))
    free = free.order_by(items.c.id)
    _lease(connection, person, list(connection.execute(_locked(free))), terms, now)
    return [_shown(row) for row in _mine(connection, person) if row.item in set(wanted)]


def _locked(query: Select[Any]) -> Select[Any]:
    return query.with_for_update(of=items, skip_locked=True)


def _lease(
    connection: Connection,
    person: int,
    chosen: Sequence[Row[Any]],
    terms: Terms,
    now: float,
    extra: Sequence[tuple[int, str]] = (),
) -> None:
    """Take a place in each question that still has one; a lease that had expired is taken up again."""
    taken = taken_slots(connection, [row.id for row in chosen])
    slots = {row.id: free_slot(taken.get(row.id, set()), row.votes) for row in chosen}
    places: dict[tuple[int, str], int | None] = {(item, VOTE): slot for item, slot in slots.items() if slot is not None}
    places |= dict.fromkeys(extra)
    fresh = {"state": LEASED, "shown_at": now, "lease_until": now + terms.lease_seconds}
    before = connection.execute(
        select(votes.c.id, votes.c.item, votes.c.purpose).where(
            votes.c.person == person, votes.c.state == EXPIRED, votes.c.item.in_([item for item, _ in places])
        )
    ).all()
    again = [{"of": row.id, "at": places.pop((row.item, row.purpose)), **_named(fresh)} for row in before]
    if again:
        connection.execute(_AGAIN, again)
    rows = [
        {"item": item, "person": person, "purpose": purpose, "slot": slot, **fresh, "seconds": 0.0, "cost": 0}
        for (item, purpose), slot in places.items()
    ]
    if rows:
        connection.execute(insert(votes), rows)
    filled = [{"of": item} for item, slot in sorted(slots.items()) if slot is not None]
    if filled:
        connection.execute(_FILL, filled)


def _named(values: dict[str, Any]) -> dict[str, Any]:
    return {f"now_{name}": value for name, value in values.items()}


_AGAIN = (
    update(votes)
    .where(votes.c.id == bindparam("of"))
    .values(
        slot=bindparam("at"),
        state=bindparam("now_state"),
        shown_at=bindparam("now_shown_at"),
        lease_until=bindparam("now_lease_until"),
    )
)
_FILL = update(items).where(items.c.id == bindparam("of")).values(filled=items.c.filled + 1)


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


def _extras(
    connection: Connection, person: int, terms: Terms, chosen: Sequence[Row[Any]], chance: float
) -> list[tuple[int, str]]:
    """Checks and repetitions to mix in among labels: as their shares say, by chance for the fraction."""
    if not chosen[0].page:
        return []
    wanted = [_count(share * len(chosen), chance) for share in (terms.checks, terms.repeats)]
    extra: list[tuple[int, str]] = []
    if wanted[0]:
        checks = _checks(person, chosen[0]).limit(wanted[0])
        extra += [(item, "check") for item in connection.execute(checks).scalars()]
    if wanted[1]:
        repeats = _repeats(person, chosen[0]).limit(wanted[1])
        extra += [(item, REPEAT) for item in connection.execute(repeats).scalars()]
    return extra


def _checks(person: int, beside: Row[Any]) -> Select[Any]:
    """Questions on the page whose answer is known, first from outside, then because all votes agree."""
    met = select(votes.c.item).where(votes.c.person == person, votes.c.state != EXPIRED)
    voted = select(items.c.id).where(items.c.page == beside.page, items.c.state == DONE, items.c.given > 1)
    unanimous = (
        select(votes.c.item)
        .where(votes.c.item.in_(voted), votes.c.purpose == VOTE, votes.c.state == GIVEN)
        .group_by(votes.c.item)
        .having(func.count(cast(votes.c.answer, Text).distinct()) == 1)
    )
    return (
        select(items.c.id)
        .where(items.c.page == beside.page, items.c.id.not_in(met))
        .where(or_(items.c.state == CHECK, items.c.id.in_(unanimous)))
        .order_by(items.c.state, func.abs(items.c.id - beside.id))
    )


def _repeats(person: int, beside: Row[Any]) -> Select[Any]:
    """Questions on the page that the person has answered once, the oldest first."""
    again = votes.alias("again")
    repeated = exists().where(again.c.item == items.c.id, again.c.person == person, again.c.purpose == REPEAT)
    return (
        select(items.c.id)
        .join(votes, votes.c.item == items.c.id)
        .where(votes.c.person == person, votes.c.purpose == VOTE, votes.c.state == GIVEN)
        .where(items.c.page == beside.page, ~repeated)
        .order_by(votes.c.answered_at)
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
