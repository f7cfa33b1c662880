"""Which questions a person is shown next. A lease keeps a place in a question for its holder until it expires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Double,
    Row,
    Select,
    and_,
    bindparam,
    cast,
    exists,
    insert,
    or_,
    select,
    update,
)

from store.inserting import KEYS
from store.review_extras import PERSON, extras
from store.review_items import EXPIRED, GIVEN, HELD, LEASED, OPEN, VOTE, items, votes

IN_PLACE = (LEASED, HELD, GIVEN)


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
        extra = extras(connection, person, chosen, (terms.checks, terms.repeats), chance)
        _lease(connection, person, chosen, terms, now, extra)
    return [_shown(row) for row in _mine(connection, person)]


_IS_LEASED: ColumnElement[bool] = votes.c.state == bindparam(None, LEASED, literal_execute=True)
_ANY_OVER = select(exists().where(_IS_LEASED, votes.c.lease_until <= bindparam("now")))


def expire(connection: Connection, now: float) -> None:
    """Free the places whose lease is over."""
    if not connection.execute(_ANY_OVER, {"now": now}).scalar():
        return
    over = and_(votes.c.state == LEASED, votes.c.lease_until <= now)
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


_NOW: BindParameter[Any] = bindparam("now")
_IS_OPEN: ColumnElement[bool] = items.c.state == bindparam(None, OPEN, literal_execute=True)  # as its index says
# Statements that every page needs are built once: building one takes longer than running it.
HAS_PLACE = and_(
    _IS_OPEN, items.c.filled < items.c.votes, or_(items.c.deadline.is_(None), items.c.deadline > cast(_NOW, Double))
)
# A list that is made once: joined question by question it costs a server without statistics a hundred times more.
_MET = items.c.id.in_(
    select(votes.c.item).where(votes.c.person == PERSON, votes.c.purpose == VOTE, votes.c.state != EXPIRED)
)


@cache
def on_the_page(one_queue: bool) -> ColumnElement[bool]:
    """Questions that invited people may be asked, of one queue or of all."""
    return and_(HAS_PLACE, items.c.published == 0, *([items.c.queue == bindparam("queue")] if one_queue else []))


@cache
def _answerable(one_queue: bool, one_page: bool, most: int) -> Select[Any]:
    """Those that the person has neither answered nor skipped, the most urgent first."""
    query = select(items).where(on_the_page(one_queue), ~_MET).order_by(items.c.priority.desc(), items.c.id)
    if one_page:
        query = query.where(items.c.page == bindparam("beside"))
    # A planner that does not know how few are wanted sorts them all.
    few: BindParameter[int] = bindparam(None, most, literal_execute=True)
    return query.limit(few).with_for_update(of=items, skip_locked=True)


def _choose(connection: Connection, person: int, terms: Terms, now: float) -> list[Row[Any]]:
    """The most urgent question and those that may stand beside it, locked; those being handed out now are passed by."""
    one_queue = terms.queue is not None
    values = {"person": person, "now": now} | ({"queue": terms.queue} if one_queue else {})
    first = connection.execute(_answerable(one_queue, False, 1), values).one_or_none()
    if first is None or not first.page:
        return [] if first is None else [first]
    together = _answerable(one_queue, True, terms.page_size)
    return list(connection.execute(together, values | {"beside": first.page}))


def lease_items(connection: Connection, person: int, wanted: Sequence[int], terms: Terms, now: float) -> list[Shown]:
    """A lease on these very questions, where the person has not met them and they still have a place."""
    expire(connection, now)
    free = select(items).where(HAS_PLACE, ~_MET, items.c.id.in_(list(wanted))).order_by(items.c.id)
    locked = free.with_for_update(of=items, skip_locked=True)
    _lease(connection, person, list(connection.execute(locked, {"person": person, "now": now})), terms, now)
    return [_shown(row) for row in _mine(connection, person) if row.item in set(wanted)]


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


_TAKEN = select(votes.c.item, votes.c.slot).where(
    votes.c.item.in_(KEYS), votes.c.purpose == VOTE, votes.c.state.in_(IN_PLACE)
)


def taken_slots(connection: Connection, numbers: Sequence[int]) -> dict[int, set[int]]:
    taken: dict[int, set[int]] = {}
    for row in connection.execute(_TAKEN, {"keys": list(numbers)}):
        taken.setdefault(row.item, set()).add(row.slot)
    return taken


def free_slot(taken: set[int], wanted: int) -> int | None:
    return next((slot for slot in range(wanted) if slot not in taken), None)


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


_MINE = _SHOWN.where(votes.c.person == bindparam("person"), votes.c.state == LEASED)


def _mine(connection: Connection, person: int) -> list[Row[Any]]:
    return list(connection.execute(_MINE, {"person": person}))


def _shown(row: Row[Any]) -> Shown:
    return Shown(row.id, row.item, row.kind, row.question, row.purpose, row.answer, row.queue)
