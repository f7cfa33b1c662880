"""The training round: attention checks that a new reviewer answers before anything else, with feedback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Text, and_, cast, func, insert, or_, select, update

from twothirds.store.engine import Repository, reads, writes
from twothirds.store.review.items import (
    ASKED,
    CHECK,
    CHECKED,
    DECIDES,
    DONE,
    EXPIRED,
    GIVEN,
    LEASED,
    RULING,
    VOTE,
    items,
    votes,
)
from twothirds.store.review.leases import MAX_CANDIDATES, LeasedQuestion, LeaseTerms, leased_question

LABEL = "label"
_OF_TRAINING = (votes, items.c.kind, items.c.question, items.c.queue, items.c.expected)


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """What a person said in the training round, and what is right."""

    question: dict[str, Any]
    said: str
    right: str


class Training(Repository):
    @writes
    def next_page(self, connection: Connection, person: int, terms: LeaseTerms) -> list[LeasedQuestion]:
        """Questions of the training round; none where it is not wanted, is done, or where people agree on nothing yet.
        Whoever has voted is no new reviewer."""
        if not terms.training:
            return []
        own = connection.execute(
            select(votes.c.purpose, votes.c.state).where(votes.c.person == person, votes.c.state != EXPIRED)
        ).all()
        if any(row.purpose == VOTE and row.state != LEASED for row in own):
            return []
        left = terms.training - sum(row.purpose == CHECKED and row.state != LEASED for row in own)
        leased = self._leased(connection, person)
        if leased or left <= 0:
            return leased
        now = self._clock()
        lease = {"person": person, "purpose": CHECKED, "slot": None, "state": LEASED, "shown_at": now}
        for row in _agreed(connection, person, terms)[:left]:
            values = lease | {"item": row.id, "lease_until": now + terms.lease_seconds, "seconds": 0.0, "cost": 0}
            again = update(votes).where(votes.c.person == person, votes.c.item == row.id, votes.c.purpose == CHECKED)
            if connection.execute(again.values(values)).rowcount == 0:
                connection.execute(insert(votes).values(values))
        return self._leased(connection, person)

    @reads
    def results(self, connection: Connection, person: int) -> list[TrainingResult]:
        """Of what the person sent last."""
        given = and_(votes.c.person == person, votes.c.purpose == CHECKED, votes.c.state == GIVEN)
        newest = (
            select(votes.c.submission).where(given).order_by(votes.c.answered_at.desc(), votes.c.id.desc()).limit(1)
        )
        query = select(*_OF_TRAINING).join(items, items.c.id == votes.c.item)
        query = query.where(given, votes.c.submission == newest.scalar_subquery()).order_by(items.c.digest)
        rows = connection.execute(query).all()
        known = _verdicts(connection, [row.item for row in rows])
        return [
            TrainingResult(row.question, row.answer["verdict"], row.expected or known[row.item])
            for row in rows
            if row.expected or row.item in known
        ]

    def _leased(self, connection: Connection, person: int) -> list[LeasedQuestion]:
        query = select(*_OF_TRAINING).join(items, items.c.id == votes.c.item)
        query = query.where(votes.c.person == person, votes.c.purpose == CHECKED, votes.c.state == LEASED)
        return [leased_question(row) for row in connection.execute(query.order_by(items.c.digest))]


def _agreed(connection: Connection, person: int, terms: LeaseTerms) -> Sequence[Row[Any]]:
    """Labels of one feature whose answer is known and that the person has not seen: of the feature with the most."""
    seen = select(votes.c.item).where(votes.c.person == person, votes.c.state != EXPIRED)
    query = select(*ASKED, items.c.state).where(items.c.kind == LABEL, items.c.id.not_in(seen))
    query = query.where(or_(items.c.state == CHECK, and_(items.c.state == DONE, items.c.given > 1)))
    if terms.queue is not None:
        query = query.where(items.c.queue == terms.queue)
    rows = connection.execute(query.order_by(items.c.id.desc()).limit(10 * MAX_CANDIDATES)).all()
    known = _verdicts(connection, [row.id for row in rows])
    by_page: dict[str, list[Row[Any]]] = {}
    for row in rows:
        if row.id in known or row.state == CHECK:
            by_page.setdefault(row.page, []).append(row)
    return max(by_page.values(), key=len, default=[])


def _verdicts(connection: Connection, numbers: Sequence[int]) -> dict[int, str]:
    """Of labels that were ruled, or on which at least two people agree and nobody differs."""
    answer = cast(votes.c.answer, Text)
    query = (
        select(
            votes.c.item, votes.c.purpose, func.min(answer).label("text"), func.count(answer.distinct()).label("kinds")
        )
        .add_columns(func.count().label("n"))
        .where(votes.c.item.in_(list(numbers)), DECIDES, votes.c.state == GIVEN)
        .group_by(votes.c.item, votes.c.purpose)
    )
    found: dict[int, str] = {}
    for row in sorted(connection.execute(query), key=lambda row: row.purpose == RULING):
        if row.purpose == RULING or (row.kinds == 1 and row.n > 1):
            found[row.item] = "yes" if '"yes"' in row.text else "no"
    return found
