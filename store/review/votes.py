"""Votes: given once, skipped, undone while no run has used them, or withdrawn. No answer is ever deleted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Row, bindparam, select, update

from twothirds.store.engine import KEYS, Repository, chunks, reads, writes
from twothirds.store.requests import drop_answer
from twothirds.store.review.leases import LeaseTerms, end_leases, free_slot, taken_slots
from twothirds.store.review.questions import (
    DONE,
    EXPIRED,
    GIVEN,
    HELD,
    LABEL,
    LATE,
    LEASED,
    OPEN,
    SKIPPED,
    VOTE,
    WITHDRAWN,
    items,
    rulings,
    update_states,
    votes,
    votes_in,
)
from twothirds.store.schema import review_used as used

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


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What withdrawing a person does, or did."""

    answers: int
    reopened: int  # questions that others are asked again
    used: int  # answers that a run has taken: their questions are open again
    features: list[str]  # that nobody else has named
    labels: int  # questions about those features that are no longer asked


_CHANGED = ("slot", "state", "answer", "answered_at", "seconds", "cost", "submission")
_GIVE = update(votes).where(votes.c.id == bindparam("of"))
_GIVE = _GIVE.values({name: bindparam(f"new_{name}", type_=votes.c[name].type) for name in _CHANGED})
_OWN = (
    select(votes, *(items.c[name] for name in ("votes", "price", "hourly", "kind")))
    .join(items, items.c.id == votes.c.item)
    .where(votes.c.id.in_(KEYS), votes.c.person == bindparam("person"))
    .order_by(votes.c.item)
    .with_for_update()
)
_SENT_LAST = (
    select(votes.c.submission)
    .where(votes.c.person == bindparam("person"), votes.c.state.in_((GIVEN, SKIPPED)))
    .order_by(votes.c.answered_at.desc(), votes.c.id.desc())
    .limit(1)
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
        same = {"new_answered_at": now, "new_submission": submission}
        same |= {"new_seconds": min(elapsed / max(len(fresh), 1), MOST_SECONDS)}
        late = 0
        changes = []
        for row, slot in _with_slots(connection, fresh, held=held):
            state, cost = HELD if held else GIVEN, 0  # held votes are paid for by the task they belong to
            if row.purpose == VOTE and not held:
                state, cost = LATE if slot is None else GIVEN, row.price + round(row.hourly * paid_seconds / 3600)
            late += state == LATE
            change = {"of": row.id, "new_slot": slot, "new_state": state, "new_answer": dict(answers[row.id])}
            changes.append(change | {"new_cost": cost} | same)
        if changes:
            connection.execute(_GIVE, changes)
            update_states(connection, [row.item for row in fresh])
        skipped = _skip(connection, _locked(connection, person, unsure, kind), UNSURE, submission, now)
        return Counted(len(fresh) - late, late, len(rows) - len(fresh), skipped)

    def give_labels(
        self, person: int, has: Mapping[int, bool], unsure: Sequence[int] = (), *, submission: str, held: bool = False
    ) -> Counted:
        """A page of labels at once, those that the person is unsure of left to others; comparisons are ignored."""
        answers = {lease: {"verdict": "yes" if yes else "no"} for lease, yes in has.items()}
        if held:  # counts as skipped once it is confirmed: an invented worker must not make questions be given up
            answers |= {lease: {"skipped": UNSURE} for lease in unsure}
        return self.give(person, answers, () if held else unsure, submission=submission, held=held, kind=LABEL)

    @writes
    def skip(
        self, connection: Connection, person: int, leases: Sequence[int], reason: str, *, submission: str = ""
    ) -> int:
        """Leave questions to others. A question is given up after as many skips as its patience allows."""
        own = _locked(connection, person, leases)
        return _skip(connection, own, reason, submission or uuid.uuid4().hex, self._clock())

    @writes
    def undo(self, connection: Connection, person: int, terms: LeaseTerms) -> str:
        """Lease to the person again what they sent last. Empty when done, else why not: NOTHING or USED (by a run)."""
        now = self._clock()
        submission = connection.execute(_SENT_LAST, {"person": person}).scalar()
        if submission is None:
            return NOTHING
        ids = select(votes.c.id).where(votes.c.person == person, votes.c.submission == submission)
        rows = _locked(connection, person, list(connection.execute(ids).scalars()))
        is_used = select(used.c.item).where(used.c.person == person, used.c.item.in_([row.item for row in rows]))
        if connection.execute(is_used).first() is not None:
            return USED
        end_leases(connection, votes.c.person == person)
        taken = taken_slots(connection, [row.item for row in rows])
        for row in rows:
            slot = row.slot
            if row.purpose == VOTE and row.state == SKIPPED:
                slot = free_slot(taken.get(row.item, ()), row.votes)
            state = LEASED if slot is not None or row.purpose != VOTE else EXPIRED
            values = {"state": state, "slot": slot, "shown_at": now, "lease_until": now + terms.lease_seconds}
            connection.execute(update(votes).where(votes.c.id == row.id).values(**values, answered_at=None, cost=0))
        update_states(connection, [row.item for row in rows])
        return ""

    @reads
    def preview_withdrawal(self, connection: Connection, person: int) -> Withdrawal:
        """What `withdraw` would do."""
        return _Withdrawing(connection, person).summary

    @writes
    def withdraw(self, connection: Connection, person: int) -> Withdrawal:
        """Set the person's answers aside, kept and marked; their questions are asked again of others. Questions about a
        feature that nobody else has named want no more votes until it is named again."""
        end_leases(connection, votes.c.person == person)
        withdrawing = _Withdrawing(connection, person)
        withdrawing.perform()
        return withdrawing.summary


def _with_slots(connection: Connection, fresh: Sequence[Row[Any]], *, held: bool) -> list[tuple[Row[Any], int | None]]:
    """The slot of each vote: its own while its lease lasts, else a free one if there is any."""
    expired = {row.id: row.item for row in fresh if row.state == EXPIRED and row.purpose == VOTE and not held}
    taken = taken_slots(connection, expired.values()) if expired else {}
    return [(row, free_slot(taken.get(row.item, ()), row.votes) if row.id in expired else row.slot) for row in fresh]


def _skip(connection: Connection, own: Sequence[Row[Any]], reason: str, submission: str, now: float) -> int:
    rows = [row for row in own if row.state in (LEASED, EXPIRED)]
    values = {"state": SKIPPED, "slot": None, "answer": {"skipped": reason}, "answered_at": now}
    skipped = update(votes).where(votes.c.id.in_([row.id for row in rows]))
    if rows:
        connection.execute(skipped.values(**values, submission=submission))
        update_states(connection, [row.item for row in rows])
    return len(rows)


def _locked(connection: Connection, person: int, leases: Sequence[int], kind: str | None = None) -> list[Row[Any]]:
    """The person's own among these leases, with their questions, locked."""
    rows = connection.execute(_OWN, {"keys": sorted(set(leases)), "person": person}) if leases else ()
    return [row for row in rows if kind is None or row.kind == kind]


class _Withdrawing:
    """What is withdrawn with a person, read within one transaction."""

    def __init__(self, connection: Connection, person: int) -> None:
        self._connection = connection
        self._person = person
        self._counted = sa.and_(votes.c.person == person, votes.c.state.in_((GIVEN, HELD)))
        query = select(votes.c.item, votes.c.purpose).where(self._counted)
        self._items = [row.item for row in connection.execute(query) if row.purpose == VOTE]
        self._used = list(connection.execute(select(used.c.answer_key).where(used.c.person == person)).scalars())
        lone = list(self._lone_features())
        self._labels = self._labels_about(lone)
        self.summary = Withdrawal(
            answers=len(self._items),
            reopened=len(set(self._items) - set(self._labels)),
            used=len(self._used),
            features=sorted({name for _, name, _ in lone}),
            labels=len(self._labels),
        )

    def perform(self) -> None:
        connection, of_person = self._connection, rulings.c.person == self._person
        ruled = list(connection.execute(select(rulings.c.item).where(of_person, ~rulings.c.withdrawn)).scalars())
        connection.execute(update(votes).where(self._counted).values(state=WITHDRAWN, slot=None))
        connection.execute(update(rulings).where(of_person).values(withdrawn=True))
        forget(connection, self._used)
        for part in chunks(self._labels):
            end_leases(connection, votes.c.item.in_(part))
            connection.execute(update(items).where(items.c.id.in_(part)).values(votes=votes_in(GIVEN)))
        update_states(connection, [*self._items, *self._labels, *ruled])

    def _lone_features(self) -> Iterator[tuple[str, str, str]]:
        """Queue, name and definition of features that this person has named, and nobody else under the same name in
        the same queue."""
        named = select(items.c.queue, votes.c.answer).join(items, items.c.id == votes.c.item)
        named = named.where(items.c.kind != LABEL, votes.c.purpose == VOTE, votes.c.state.in_((GIVEN, HELD)))
        own = list(dict.fromkeys(_named(self._connection.execute(named.where(votes.c.person == self._person)))))
        of_others = self._connection.execute(named.where(votes.c.person != self._person)) if own else ()
        others = {(queue, name.casefold()) for queue, name, _ in _named(of_others)}
        return (feature for feature in own if (feature[0], feature[1].casefold()) not in others)

    def _labels_about(self, lone: Sequence[tuple[str, str, str]]) -> list[int]:
        """Questions about these features that want votes, or will once these are withdrawn."""
        wanted, voted = set(lone), set(self._items)
        columns = (items.c.id, items.c.state, items.c.queue, items.c.question)
        query = select(*columns).where(items.c.kind == LABEL, items.c.state.in_((OPEN, DONE)))
        rows = self._connection.execute(query) if lone else ()
        return [
            row.id
            for row in rows
            if (row.state == OPEN or row.id in voted) and (row.queue, *row.question["feature"][:2]) in wanted
        ]


def _named(rows: Any) -> Iterator[tuple[str, str, str]]:
    for queue, answer in rows:
        if answer and answer.get("name"):
            yield queue, answer["name"], answer.get("definition", "")
            yield from ((queue, name, definition) for name, definition, *_ in answer.get("more", ()))


def forget(connection: Connection, keys: Sequence[str]) -> None:
    """Answers that runs have used count no more: their questions are open, and the books keep what was paid."""
    for key in keys:
        drop_answer(connection, key)
    for part in chunks(keys):
        connection.execute(sa.delete(used).where(used.c.answer_key.in_(part)))
