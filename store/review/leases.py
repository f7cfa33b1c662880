"""Which questions a person is shown next. A lease keeps a place in a question for its holder until it expires."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    literal,
    or_,
    select,
    update,
)

from store.review.attention import PERSON, extras
from store.review.items import ASKED, EXPIRED, GIVEN, HELD, LEASED, OPEN, VOTE, items, votes
from store.sql import among

IN_PLACE = (LEASED, HELD, GIVEN)
_NOW: BindParameter[Any] = bindparam("now")


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
    mine = _mine(connection, person, now)
    if mine[0].any_over:
        expire(connection, now)
        mine = _mine(connection, person, now)
    if mine[0].id is not None:
        ids = [row.id for row in mine]
        connection.execute(_RENEW, {"keys": ids, "until": now + terms.lease_seconds})
        return [_shown(row) for row in mine]
    chosen = _choose(connection, person, terms, now)
    if not chosen:
        return []
    extra = extras(connection, person, chosen, (terms.checks, terms.repeats), chance)
    leases = _lease(connection, person, chosen, terms, now, [(row.id, purpose) for row, purpose in extra])
    # Ordered so that checks and repetitions stand anywhere among the others.
    everything = sorted([*((row, VOTE) for row in chosen), *extra], key=lambda one: one[0].digest)
    return [
        Shown(leases[row.id, purpose], row.id, row.kind, row.question, purpose, None, row.queue)
        for row, purpose in everything
        if (row.id, purpose) in leases
    ]


_IS_LEASED: ColumnElement[bool] = votes.c.state == bindparam(None, LEASED, literal_execute=True)
_RENEW = update(votes).where(among(votes.c.id)).values(lease_until=bindparam("until"))


def expire(connection: Connection, now: float) -> None:
    """Free the places whose lease is over."""
    over = and_(votes.c.state == LEASED, votes.c.lease_until <= now)
    ended = connection.execute(
        update(votes).where(over).values(state=EXPIRED, slot=None).returning(votes.c.item, votes.c.purpose)
    ).all()
    free_places(connection, [row.item for row in ended if row.purpose == VOTE])


def free_places(connection: Connection, numbers: Sequence[int]) -> None:
    rows = [{"of": number} for number in sorted(numbers)]  # the same question may lose several places
    if rows:
        connection.execute(update(items).where(items.c.id == bindparam("of")).values(filled=items.c.filled - 1), rows)


def drop_leases(connection: Connection, person: int) -> None:
    """Give back what the person has before them unanswered."""
    mine = and_(votes.c.person == person, votes.c.state == LEASED)
    ended = connection.execute(
        update(votes).where(mine).values(state=EXPIRED, slot=None).returning(votes.c.item, votes.c.purpose)
    ).all()
    free_places(connection, [row.item for row in ended if row.purpose == VOTE])


_IS_OPEN: ColumnElement[bool] = items.c.state == bindparam(None, OPEN, literal_execute=True)  # as its index says
# Statements that every page needs are built once: building one takes longer than running it.
HAS_PLACE = and_(
    _IS_OPEN, items.c.filled < items.c.votes, or_(items.c.deadline.is_(None), items.c.deadline > cast(_NOW, Double))
)
# A list that is made once: joined question by question it costs a server without statistics a hundred times more.
NOT_MET = items.c.id.not_in(
    select(votes.c.item).where(votes.c.person == PERSON, votes.c.purpose == VOTE, votes.c.state != EXPIRED)
)


@cache
def on_the_page(one_queue: bool) -> ColumnElement[bool]:
    """Questions that invited people may be asked, of one queue or of all."""
    return and_(HAS_PLACE, items.c.published == 0, *([items.c.queue == bindparam("queue")] if one_queue else []))


@cache
def _answerable(one_queue: bool, one_page: bool, most: int) -> Select[Any]:
    """Those that the person has neither answered nor skipped, the most urgent first."""
    query = select(*ASKED).where(on_the_page(one_queue), NOT_MET).order_by(items.c.priority.desc(), items.c.id)
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


def _lease(
    connection: Connection,
    person: int,
    chosen: Sequence[Row[Any]],
    terms: Terms,
    now: float,
    extra: Sequence[tuple[int, str]] = (),
) -> dict[tuple[int, str], int]:
    """Take a place in each question that still has one; a lease that had expired is taken up again. Returns the leases
    by question and purpose."""
    everything = [*(row.id for row in chosen), *(item for item, _ in extra)]
    before = connection.execute(_BEFORE, {"keys": everything, "person": person}).all()
    taken = _by_item(row for row in before if row.state != EXPIRED)
    slots = {row.id: free_slot(taken.get(row.id, set()), row.votes) for row in chosen}
    places: dict[tuple[int, str], int | None] = {(item, VOTE): slot for item, slot in slots.items() if slot is not None}
    filled = [item for item, _ in places]
    places |= dict.fromkeys(extra)
    fresh = {"state": LEASED, "shown_at": now, "lease_until": now + terms.lease_seconds}
    leases: dict[tuple[int, str], int] = {}
    for row in before:
        if row.state == EXPIRED and (at := (row.item, row.purpose)) in places:
            connection.execute(_AGAIN, fresh | {"of": row.id, "slot": places.pop(at)})
            leases[at] = row.id
    alike: dict[tuple[str, int | None], list[int]] = {}
    for (item, purpose), slot in places.items():
        alike.setdefault((purpose, slot), []).append(item)
    for (purpose, slot), numbers in alike.items():
        values = fresh | {"person": person, "purpose": purpose, "slot": slot, "keys": numbers}
        leases |= {(row.item, row.purpose): row.id for row in connection.execute(_INSERT, values)}
    if filled:
        connection.execute(_FILL, {"keys": filled})
    return leases


_IN_PLACE = and_(votes.c.purpose == VOTE, votes.c.state.in_(IN_PLACE))
# Of some questions the places that are taken, and those that the person had and has lost by waiting too long.
_BEFORE = select(*(votes.c[name] for name in ("id", "item", "purpose", "slot", "state"))).where(
    among(votes.c.item), or_(_IN_PLACE, and_(votes.c.person == PERSON, votes.c.state == EXPIRED))
)
_AGAIN = (
    update(votes)
    .where(votes.c.id == bindparam("of"))
    .values({name: bindparam(name) for name in ("slot", "state", "shown_at", "lease_until")})
)
_GIVEN_WITH = ("person", "purpose", "slot", "state", "shown_at", "lease_until")
# From a SELECT, so that the statement is the same for one question and for many.
_INSERT = (
    insert(votes)
    .from_select(
        ["item", "seconds", "cost", *_GIVEN_WITH],
        select(
            items.c.id, literal(0.0), literal(0), *(cast(bindparam(name), votes.c[name].type) for name in _GIVEN_WITH)
        ).where(among(items.c.id)),
    )
    .returning(votes.c.id, votes.c.item, votes.c.purpose)
)
_FILL = update(items).where(among(items.c.id)).values(filled=items.c.filled + 1)
_TAKEN = select(votes.c.item, votes.c.slot).where(among(votes.c.item), _IN_PLACE)


def taken_slots(connection: Connection, numbers: Sequence[int]) -> dict[int, set[int]]:
    return _by_item(connection.execute(_TAKEN, {"keys": list(numbers)}))


def _by_item(rows: Iterable[Row[Any]]) -> dict[int, set[int]]:
    slots: dict[int, set[int]] = {}
    for row in rows:
        slots.setdefault(row.item, set()).add(row.slot)
    return slots


def free_slot(taken: set[int], wanted: int) -> int | None:
    return next((slot for slot in range(wanted) if slot not in taken), None)


def unanswered(connection: Connection, person: int, leases: Sequence[int]) -> list[Shown]:
    """The person's own among these leases that have no answer yet, also where they have expired."""
    return [_shown(row) for row in connection.execute(_UNANSWERED, {"person": person, "keys": list(leases)})]


_WITH_QUESTION = votes.join(items, items.c.id == votes.c.item)
_ABOUT = (votes, items.c.kind, items.c.question, items.c.queue)
_UNANSWERED = (
    select(*_ABOUT)
    .select_from(_WITH_QUESTION)
    .where(votes.c.person == PERSON, among(votes.c.id), votes.c.state.in_((LEASED, EXPIRED)))
    .order_by(items.c.digest)
)
_OVER = select(exists().where(_IS_LEASED, votes.c.lease_until <= _NOW).label("any_over")).subquery()
_MINE = (
    select(_OVER, *_ABOUT)
    .select_from(_OVER.outerjoin(_WITH_QUESTION, and_(votes.c.person == PERSON, votes.c.state == LEASED)))
    .order_by(items.c.digest)
)


def _mine(connection: Connection, person: int, now: float) -> list[Row[Any]]:
    """What the person has before them, and with each whether anybody's lease is over; one empty row for nothing."""
    return list(connection.execute(_MINE, {"person": person, "now": now}))


def _shown(row: Row[Any]) -> Shown:
    return Shown(row.id, row.item, row.kind, row.question, row.purpose, row.answer, row.queue)
