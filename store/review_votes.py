"""Votes: given once, skipped, undone while no run has used them, or withdrawn. Nothing that was said is deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, case, select, update

from store.inserting import KEYS
from store.review_items import DONE, EXPIRED, GIVEN, GIVEN_UP, HELD, LEASED, OPEN, VOTE, items, votes
from store.review_leases import drop_leases, free_places, free_slot, taken_slots
from store.schema import answers, charges

LATE, SKIPPED, WITHDRAWN = "late", "skipped", "withdrawn"
NOTHING, USED = "nothing", "used"  # why something cannot be undone
MOST_SECONDS = 600.0  # counted for one question
MOST_PAID_SECONDS = 120.0  # nobody is paid for a lunch break, and an estimate needs an upper bound


@dataclass(slots=True)
class Counted:
    """What became of answers that were sent."""

    given: int = 0
    late: int = 0  # others had filled the places: kept, not counted
    again: int = 0  # had been answered before: the first answer stays


def give(
    connection: Connection,
    person: int,
    said: Mapping[int, Mapping[str, Any]],
    submission: str,
    now: float,
    *,
    held: bool = False,
) -> Counted:
    """Enter a person's answers by the ids of their leases. Sent twice they count once; a lease that has expired is
    no loss while a place is free. `held` votes count only once they are confirmed."""
    rows = _locked(connection, person, list(said))
    fresh = [row for row in rows if row.state in (LEASED, EXPIRED)]
    counted = Counted(again=len(rows) - len(fresh))
    taken = taken_slots(connection, [row.item for row in fresh])
    each = _elapsed(fresh, now) / max(len(fresh), 1)
    paid = _elapsed(fresh, now) / max(sum(row.purpose == VOTE for row in fresh), 1)
    rows_to_write, counts = list[dict[str, Any]](), list[dict[str, int]]()
    for row in fresh:
        slot, state = row.slot, HELD if held else GIVEN
        filled = 0
        if row.purpose == VOTE and row.state == EXPIRED:
            slot = free_slot(taken.get(row.item, set()), row.votes)
            state, filled = (state, 1) if slot is not None else (LATE, 0)
        cost = 0
        if row.purpose == VOTE:
            worked = row.price + round(row.hourly * min(paid, MOST_PAID_SECONDS) / 3600)
            cost = 0 if held else worked  # what is held is paid for by the task it belongs to
            counts.append(_change(row.item, filled=filled, given=int(state == GIVEN)))
        values = {"state": state, "slot": slot, "answer": dict(said[row.id]), "answered_at": now, "cost": cost}
        values |= {"seconds": min(each, MOST_SECONDS), "submission": submission}
        rows_to_write.append({"of": row.id} | {f"now_{name}": value for name, value in values.items()})
        counted.late += state == LATE
        counted.given += state != LATE
    if rows_to_write:
        connection.execute(_GIVE, rows_to_write)
    if counts:
        connection.execute(_COUNT, counts)
    return counted


_GIVE = (
    update(votes)
    .where(votes.c.id == bindparam("of"))
    .values(
        {
            name: bindparam(f"now_{name}", type_=votes.c[name].type)
            for name in ("state", "slot", "answer", "answered_at", "cost", "seconds", "submission")
        }
    )
)


def skip(connection: Connection, person: int, leases: Sequence[int], reason: str, submission: str, now: float) -> int:
    """Leave questions to others. One that so many have skipped as its patience allows is given up."""
    rows = [row for row in _locked(connection, person, leases) if row.state in (LEASED, EXPIRED)]
    for row in rows:
        values = {"state": SKIPPED, "slot": None, "answer": {"skipped": reason}, "answered_at": now}
        connection.execute(update(votes).where(votes.c.id == row.id).values(**values, submission=submission))
        if row.purpose == VOTE:
            _count(connection, row.item, skipped=1, filled=-1 if row.state == LEASED else 0)
    return len(rows)


def undo(connection: Connection, person: int, lease_seconds: float, now: float) -> str:
    """Lay what was sent last before the person again. Empty when done, else why not: NOTHING or USED (by a run)."""
    newest = (
        select(votes.c.submission)
        .where(votes.c.person == person, votes.c.state.in_((GIVEN, SKIPPED)))
        .order_by(votes.c.answered_at.desc(), votes.c.id.desc())
        .limit(1)
    )
    submission = connection.execute(newest).scalar()
    if submission is None:
        return NOTHING
    ids = select(votes.c.id).where(votes.c.person == person, votes.c.submission == submission)
    rows = _locked(connection, person, list(connection.execute(ids).scalars()))
    if any(row.answer_key is not None for row in rows):
        return USED
    drop_leases(connection, person)
    taken = taken_slots(connection, [row.item for row in rows])
    for row in rows:
        slot = row.slot
        if row.purpose == VOTE and row.state == GIVEN:
            _count(connection, row.item, given=-1)
        elif row.purpose == VOTE and row.state == SKIPPED:
            slot = free_slot(taken.get(row.item, set()), row.votes)
            _count(connection, row.item, skipped=-1, filled=1 if slot is not None else 0)
        kept = row.answer if row.state == GIVEN else None
        state = LEASED if slot is not None or row.purpose != VOTE else EXPIRED
        values = {"state": state, "slot": slot, "answer": kept, "shown_at": now, "lease_until": now + lease_seconds}
        connection.execute(update(votes).where(votes.c.id == row.id).values(**values, answered_at=None, cost=0))
    return ""


def confirm(connection: Connection, submission: str) -> int:
    """Count votes that were held; how many."""
    held = and_(votes.c.submission == submission, votes.c.state == HELD)
    rows = connection.execute(update(votes).where(held).values(state=GIVEN).returning(votes.c.item)).all()
    for row in rows:
        _count(connection, row.item, given=1)
    return len(rows)


def refuse(connection: Connection, submission: str) -> int:
    """Set held votes aside; their places are free again."""
    held = and_(votes.c.submission == submission, votes.c.state == HELD)
    ended = connection.execute(update(votes).where(held).values(state=WITHDRAWN, slot=None).returning(votes.c.item))
    numbers = list(ended.scalars())
    free_places(connection, numbers)
    return len(numbers)


def withdraw(connection: Connection, person: int) -> int:
    """Set all that a person has answered aside: kept and marked, and asked again of others; how many votes."""
    drop_leases(connection, person)
    given = and_(votes.c.person == person, votes.c.state.in_((GIVEN, HELD)))
    rows = connection.execute(select(votes.c.id, votes.c.item, votes.c.purpose, votes.c.state).where(given)).all()
    keys = connection.execute(select(votes.c.answer_key).where(given, votes.c.answer_key.is_not(None))).scalars().all()
    connection.execute(update(votes).where(given).values(state=WITHDRAWN, slot=None))
    for row in sorted(rows, key=lambda row: row.item):
        if row.purpose == VOTE:
            _count(connection, row.item, given=-1 if row.state == GIVEN else 0, filled=-1)
    for key in keys:
        _retire(connection, key)
    return sum(row.purpose == VOTE for row in rows)


def _retire(connection: Connection, key: str) -> None:
    """Move an answer and its charge to a name of their own: they stay in the books, and the question is open again."""
    number = connection.execute(select(answers.c.id).where(answers.c.key == key)).scalar()
    if number is not None:
        name = f"{key}/withdrawn/{number}"
        connection.execute(update(answers).where(answers.c.id == number).values(key=name))
        paid = and_(charges.c.key == key, charges.c.state == "paid")
        connection.execute(update(charges).where(paid).values(key=name))


def _locked(connection: Connection, person: int, leases: Sequence[int]) -> list[Row[Any]]:
    """The person's own among these leases, with their questions, which nobody else can change meanwhile."""
    return list(connection.execute(_THEIRS, {"keys": sorted(set(leases)), "person": person}))


_THEIRS = (
    select(votes, items.c.votes, items.c.price, items.c.hourly)
    .join(items, items.c.id == votes.c.item)
    .where(votes.c.id.in_(KEYS), votes.c.person == bindparam("person"))
    .order_by(votes.c.item)
    .with_for_update()
)


def _elapsed(rows: Sequence[Row[Any]], now: float) -> float:
    return max(0.0, now - min((row.shown_at for row in rows), default=now))


_COUNT = (
    update(items)
    .where(items.c.id == bindparam("of"))
    .values(
        filled=items.c.filled + bindparam("more_filled"),
        given=items.c.given + bindparam("more_given"),
        skipped=items.c.skipped + bindparam("more_skipped"),
        state=case(
            (items.c.given + bindparam("more_given") >= items.c.votes, DONE),
            (items.c.skipped + bindparam("more_skipped") >= items.c.patience, GIVEN_UP),
            else_=OPEN,
        ),
    )
)


def _count(connection: Connection, item: int, *, filled: int = 0, given: int = 0, skipped: int = 0) -> None:
    connection.execute(_COUNT, _change(item, filled=filled, given=given, skipped=skipped))


def _change(item: int, *, filled: int = 0, given: int = 0, skipped: int = 0) -> dict[str, int]:
    return {"of": item, "more_filled": filled, "more_given": given, "more_skipped": skipped}
