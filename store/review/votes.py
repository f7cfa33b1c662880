"""Votes: given once, skipped, undone while no run has used them, or withdrawn. Nothing that was said is deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, case, select, update

from store.review.items import DONE, EXPIRED, GIVEN, GIVEN_UP, HELD, LEASED, OPEN, VOTE, items, votes
from store.review.leases import drop_leases, free_slot, taken_slots
from store.schema import answers, charges
from store.sql import among

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
    skipped: int = 0


def give(
    connection: Connection,
    person: int,
    said: Mapping[int, Mapping[str, Any]],
    submission: str,
    now: float,
    *,
    held: bool = False,
    kind: str | None = None,
) -> Counted:
    """Enter a person's answers by the ids of their leases. Sent twice they count once; a lease that has expired is
    no loss while a place is free. `held` votes get a place and count only once they are confirmed. With `kind`, leases
    of other kinds of questions are passed by."""
    rows = _locked(connection, person, list(said), kind)
    fresh = [row for row in rows if row.state in (LEASED, EXPIRED)]
    counted = Counted(again=len(rows) - len(fresh))
    elapsed = _elapsed(fresh, now)
    paid = elapsed / max(sum(row.purpose == VOTE for row in fresh), 1)
    same = {"answered_at": now, "seconds": min(elapsed / max(len(fresh), 1), MOST_SECONDS), "submission": submission}
    slots = {row.id: row.slot for row in fresh} if held else _slots(connection, fresh)
    alike: dict[tuple[Any, ...], list[int]] = {}  # what is written is mostly the same for many: one statement for them
    counts: dict[tuple[int, int], list[int]] = {}
    for row in fresh:
        state = HELD if held else GIVEN
        if row.purpose == VOTE and slots[row.id] is None and not held:
            state = LATE
        cost = 0
        if row.purpose == VOTE:
            worked = row.price + round(row.hourly * min(paid, MOST_PAID_SECONDS) / 3600)
            cost = 0 if held else worked  # what is held is paid for by the task it belongs to
            taken_up = int(row.state == EXPIRED and state == GIVEN)
            counts.setdefault((taken_up, int(state == GIVEN)), []).append(row.item)
        answer = json.dumps(dict(said[row.id]))
        alike.setdefault((state, slots[row.id] if row.state == EXPIRED else KEPT, answer, cost), []).append(row.id)
        counted.late += state == LATE
        counted.given += state != LATE
    for (state, slot, answer, cost), ids in alike.items():
        values = same | {"state": state, "answer": json.loads(answer), "cost": cost, "keys": ids}
        connection.execute(_GIVE if slot is KEPT else _GIVE_AT, values if slot is KEPT else values | {"place": slot})
    for (filled, given), numbers in sorted(counts.items()):
        count_votes(connection, numbers, filled=filled, given=given)
    return counted


def _slots(connection: Connection, fresh: Sequence[Row[Any]]) -> dict[int, int | None]:
    """The place of each vote: its own while its lease lasts, else a free one if there is any."""
    slots = {row.id: row.slot for row in fresh}
    expired = [row for row in fresh if row.state == EXPIRED and row.purpose == VOTE]
    if expired:
        taken = taken_slots(connection, [row.item for row in expired])
        slots |= {row.id: free_slot(taken.get(row.item, set()), row.votes) for row in expired}
    return slots


KEPT = object()
_GIVE = (
    update(votes)
    .where(among(votes.c.id))
    .values(
        {
            name: bindparam(name, type_=votes.c[name].type)
            for name in ("state", "answer", "answered_at", "cost", "seconds", "submission")
        }
    )
)
_GIVE_AT = _GIVE.values(slot=bindparam("place"))


def skip(
    connection: Connection,
    person: int,
    leases: Sequence[int],
    reason: str,
    submission: str,
    now: float,
    *,
    kind: str | None = None,
) -> int:
    """Leave questions to others. One that so many have skipped as its patience allows is given up."""
    rows = [row for row in _locked(connection, person, leases, kind) if row.state in (LEASED, EXPIRED)]
    values = {"state": SKIPPED, "slot": None, "answer": {"skipped": reason}, "answered_at": now}
    skipped = update(votes).where(votes.c.id.in_([row.id for row in rows]))
    connection.execute(skipped.values(**values, submission=submission))
    for state, filled in ((LEASED, -1), (EXPIRED, 0)):
        left = [row.item for row in rows if row.purpose == VOTE and row.state == state]
        count_votes(connection, left, skipped=1, filled=filled)
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
            count_votes(connection, [row.item], given=-1)
        elif row.purpose == VOTE and row.state == SKIPPED:
            slot = free_slot(taken.get(row.item, set()), row.votes)
            count_votes(connection, [row.item], skipped=-1, filled=1 if slot is not None else 0)
        kept = row.answer if row.state == GIVEN else None
        state = LEASED if slot is not None or row.purpose != VOTE else EXPIRED
        values = {"state": state, "slot": slot, "answer": kept, "shown_at": now, "lease_until": now + lease_seconds}
        connection.execute(update(votes).where(votes.c.id == row.id).values(**values, answered_at=None, cost=0))
    return ""


def withdraw(connection: Connection, person: int) -> int:
    """Set all that a person has answered aside: kept and marked, and asked again of others; how many votes."""
    drop_leases(connection, person)
    given = and_(votes.c.person == person, votes.c.state.in_((GIVEN, HELD)))
    columns = (votes.c[name] for name in ("id", "item", "purpose", "slot", "state"))
    rows = connection.execute(select(*columns).where(given)).all()
    keys = connection.execute(select(votes.c.answer_key).where(given, votes.c.answer_key.is_not(None))).scalars().all()
    connection.execute(update(votes).where(given).values(state=WITHDRAWN, slot=None))
    for row in sorted(rows, key=lambda row: row.item):
        if row.purpose == VOTE:
            count_votes(connection, [row.item], given=-(row.state == GIVEN), filled=-(row.slot is not None))
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


def _locked(connection: Connection, person: int, leases: Sequence[int], kind: str | None = None) -> list[Row[Any]]:
    """The person's own among these leases, with their questions, which nobody else can change meanwhile."""
    rows = connection.execute(_THEIRS, {"keys": sorted(set(leases)), "person": person})
    return [row for row in rows if kind is None or row.kind == kind]


_THEIRS = (
    select(votes, *(items.c[name] for name in ("votes", "price", "hourly", "kind")))
    .join(items, items.c.id == votes.c.item)
    .where(among(votes.c.id), votes.c.person == bindparam("person"))
    .order_by(votes.c.item)
    .with_for_update()
)


def _elapsed(rows: Sequence[Row[Any]], now: float) -> float:
    return max(0.0, now - min((row.shown_at for row in rows), default=now))


_COUNT = (
    update(items)
    .where(among(items.c.id))
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


def count_votes(
    connection: Connection, numbers: Sequence[int], *, filled: int = 0, given: int = 0, skipped: int = 0
) -> None:
    """Change what each of these questions, all different, has of votes."""
    if numbers:
        changes = {"more_filled": filled, "more_given": given, "more_skipped": skipped}
        connection.execute(_COUNT, changes | {"keys": list(numbers)})
