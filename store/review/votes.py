"""Votes: given once, skipped, undone while no run has used them, or withdrawn. No answer is ever deleted."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, select, update

from twothirds.store.engine import Repository, any_of, writes
from twothirds.store.review.items import ABANDONED, DONE, EXPIRED, GIVEN, HELD, LEASED, OPEN, VOTE, items, votes
from twothirds.store.review.leases import LeaseTerms, drop_leases, free_slot, taken_slots

LATE, SKIPPED, WITHDRAWN = "late", "skipped", "withdrawn"
NOTHING, USED = "nothing", "used"  # why something cannot be undone
UNSURE = "I cannot tell"  # the reason of a skip
MOST_SECONDS = 600.0  # counted for one question
MOST_PAID_SECONDS = 120.0  # lunch breaks are not paid, and an estimate needs an upper bound


@dataclass(slots=True)
class Counted:
    """What became of answers that were sent."""

    given: int = 0
    late: int = 0  # others had filled the slots: kept, not counted
    again: int = 0  # had been answered before: the first answer stays
    skipped: int = 0


UNCHANGED = object()  # for a slot
_GIVE = (
    update(votes)
    .where(any_of(votes.c.id))
    .values(
        {
            name: bindparam(name, type_=votes.c[name].type)
            for name in ("state", "answer", "answered_at", "cost", "seconds", "submission")
        }
    )
)
_GIVE_IN_SLOT = _GIVE.values(slot=bindparam("new_slot"))
_OWN_VOTES = (
    select(votes, *(items.c[name] for name in ("votes", "price", "hourly", "kind")))
    .join(items, items.c.id == votes.c.item)
    .where(any_of(votes.c.id), votes.c.person == bindparam("person"))
    .order_by(votes.c.item)
    .with_for_update()
)
_COUNT = (
    update(items)
    .where(any_of(items.c.id))
    .values(
        filled=items.c.filled + bindparam("more_filled"),
        given=items.c.given + bindparam("more_given"),
        skipped=items.c.skipped + bindparam("more_skipped"),
        state=case(
            (items.c.given + bindparam("more_given") >= items.c.votes, DONE),
            (items.c.skipped + bindparam("more_skipped") >= items.c.patience, ABANDONED),
            else_=OPEN,
        ),
    )
)


class Votes(Repository):
    @writes
    def give(
        self,
        connection: Connection,
        person: int,
        answers: Mapping[int, Mapping[str, Any]],
        unsure: Sequence[int] = (),
        *,
        submission: str = "",
        held: bool = False,
        kind: str | None = None,
    ) -> Counted:
        """Record a person's answers by the ids of their leases, and skip those that they are unsure of.

        Sent twice they count once; an expired lease still counts while a slot is free. `held` votes count only once
        they are confirmed. With `kind`, leases of other kinds of questions are ignored."""
        now, submission = self._clock(), submission or uuid.uuid4().hex
        rows = _locked(connection, person, list(answers), kind)
        fresh = [row for row in rows if row.state in (LEASED, EXPIRED)]
        elapsed = max(0.0, now - min((row.shown_at for row in fresh), default=now))
        paid_seconds = min(elapsed / max(sum(row.purpose == VOTE for row in fresh), 1), MOST_PAID_SECONDS)
        seconds = min(elapsed / max(len(fresh), 1), MOST_SECONDS)
        slots = {row.id: row.slot for row in fresh} if held else _slots(connection, fresh)
        decided = [(row, *_state_and_cost(row, slots[row.id], held, paid_seconds)) for row in fresh]
        updates: dict[tuple[Any, ...], list[int]] = {}  # most votes get the same values: one statement for all of them
        for row, state, cost in decided:
            slot = slots[row.id] if row.state == EXPIRED else UNCHANGED
            updates.setdefault((state, slot, json.dumps(dict(answers[row.id])), cost), []).append(row.id)
        same = {"answered_at": now, "seconds": seconds, "submission": submission}
        for (state, slot, answer, cost), ids in updates.items():
            values = same | {"state": state, "answer": json.loads(answer), "cost": cost, "keys": ids}
            connection.execute(
                *((_GIVE, values) if slot is UNCHANGED else (_GIVE_IN_SLOT, values | {"new_slot": slot}))
            )
        for lease, filled in ((LEASED, 0), (EXPIRED, 1)):
            votes_given = [
                row.item for row, state, _ in decided if (row.purpose, row.state, state) == (VOTE, lease, GIVEN)
            ]
            count_votes(connection, votes_given, filled=filled, given=1)
        late = sum(state == LATE for _, state, _ in decided)
        skipped = _skip(connection, person, unsure, kind, UNSURE, submission, now) if unsure else 0
        return Counted(len(fresh) - late, late, len(rows) - len(fresh), skipped)

    def give_labels(
        self, person: int, has: Mapping[int, bool], unsure: Sequence[int] = (), *, submission: str, held: bool = False
    ) -> Counted:
        """A page of labels at once, those that the person is unsure of left to others; comparisons are ignored."""
        answers = {lease: {"verdict": "yes" if yes else "no"} for lease, yes in has.items()}
        if held:  # counts as skipped once it is confirmed: an invented worker must not make questions be given up
            answers |= {lease: {"skipped": UNSURE} for lease in unsure}
        return self.give(person, answers, () if held else unsure, submission=submission, held=held, kind="label")

    @writes
    def skip(
        self, connection: Connection, person: int, leases: Sequence[int], reason: str, *, submission: str = ""
    ) -> int:
        """Leave questions to others. A question is given up after as many skips as its patience allows."""
        return _skip(connection, person, leases, None, reason, submission or uuid.uuid4().hex, self._clock())

    @writes
    def undo(self, connection: Connection, person: int, terms: LeaseTerms) -> str:
        """Lease to the person again what they sent last. Empty when done, else why not: NOTHING or USED (by a run)."""
        now = self._clock()
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
            state = LEASED if slot is not None or row.purpose != VOTE else EXPIRED
            values = {"state": state, "slot": slot, "shown_at": now, "lease_until": now + terms.lease_seconds}
            connection.execute(update(votes).where(votes.c.id == row.id).values(**values, answered_at=None, cost=0))
        return ""


def _slots(connection: Connection, fresh: Sequence[Row[Any]]) -> dict[int, int | None]:
    """The slot of each vote: its own while its lease lasts, else a free one if there is any."""
    slots = {row.id: row.slot for row in fresh}
    expired = [row for row in fresh if row.state == EXPIRED and row.purpose == VOTE]
    if expired:
        taken = taken_slots(connection, [row.item for row in expired])
        slots |= {row.id: free_slot(taken.get(row.item, set()), row.votes) for row in expired}
    return slots


def _state_and_cost(row: Row[Any], slot: int | None, held: bool, paid_seconds: float) -> tuple[str, int]:
    """Of a vote that is given now. Held votes are paid for by the task they belong to."""
    if held or row.purpose != VOTE:
        return HELD if held else GIVEN, 0
    return LATE if slot is None else GIVEN, row.price + round(row.hourly * paid_seconds / 3600)


def _skip(
    connection: Connection,
    person: int,
    leases: Sequence[int],
    kind: str | None,
    reason: str,
    submission: str,
    now: float,
) -> int:
    rows = [row for row in _locked(connection, person, leases, kind) if row.state in (LEASED, EXPIRED)]
    values = {"state": SKIPPED, "slot": None, "answer": {"skipped": reason}, "answered_at": now}
    skipped = update(votes).where(votes.c.id.in_([row.id for row in rows]))
    connection.execute(skipped.values(**values, submission=submission))
    for state, filled in ((LEASED, -1), (EXPIRED, 0)):
        left = [row.item for row in rows if row.purpose == VOTE and row.state == state]
        count_votes(connection, left, skipped=1, filled=filled)
    return len(rows)


def _locked(connection: Connection, person: int, leases: Sequence[int], kind: str | None = None) -> list[Row[Any]]:
    """The person's own among these leases, with their questions, locked."""
    rows = connection.execute(_OWN_VOTES, {"keys": sorted(set(leases)), "person": person})
    return [row for row in rows if kind is None or row.kind == kind]


def count_votes(
    connection: Connection, numbers: Sequence[int], *, filled: int = 0, given: int = 0, skipped: int = 0
) -> None:
    """Change the counts of each of these questions, which are all different."""
    if numbers:
        changes = {"more_filled": filled, "more_given": given, "more_skipped": skipped}
        connection.execute(_COUNT, changes | {"keys": list(numbers)})
