"""Disputed labels, and what an editor has ruled about them: a ruling outranks the votes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, Text, and_, cast, func, insert, select, update

from twothirds.store.content import decode
from twothirds.store.engine import Repository, reads, writes
from twothirds.store.requests import drop_answer
from twothirds.store.review.items import DONE, GIVEN, LEASED, OPEN, RULING, VOTE, items, votes
from twothirds.store.review.leases import end_leases
from twothirds.store.review.people import people
from twothirds.store.schema import requests

LABEL, WHY = "label", "why"
USABLE = ("yes", "no")


@dataclass(frozen=True, slots=True)
class DisputedLabel:
    """A label on which people disagree, with who said what and the reasons that a model gave, where it was asked."""

    item: int
    question: dict[str, Any]
    yes: list[str]
    no: list[str]
    reasons: list[tuple[str, str]]  # what was said, and why


class Rulings(Repository):
    @reads
    def disputed(self, connection: Connection, queue: str | None = None, most: int = 24) -> list[DisputedLabel]:
        """The most evenly divided first; without those that have been ruled."""
        query = (
            select(items.c.id, items.c.question, votes.c.answer, people.c.name)
            .select_from(votes.join(items, items.c.id == votes.c.item).join(people, people.c.id == votes.c.person))
            .where(items.c.id.in_(_divided(queue)), votes.c.purpose == VOTE, votes.c.state == GIVEN)
            .order_by(items.c.id, votes.c.id)
        )
        found: dict[int, DisputedLabel] = {}
        for row in connection.execute(query):
            label = found.setdefault(row.id, DisputedLabel(row.id, row.question, [], [], []))
            (label.yes if row.answer["verdict"] == "yes" else label.no).append(row.name)
        ordered = sorted(found.values(), key=lambda label: (abs(len(label.yes) - len(label.no)), label.item))[:most]
        _add_reasons(connection, ordered)
        return ordered

    @reads
    def count(self, connection: Connection, queue: str | None = None) -> int:
        """How many labels are disputed."""
        return int(connection.execute(select(func.count()).select_from(_divided(queue).subquery())).scalar_one())

    @writes
    def rule(self, connection: Connection, person: int, verdicts: Mapping[int, bool]) -> int:
        """Decide labels for good: nobody is asked about them any more, and answers that a run has taken are retired, so
        that running again takes the ruling. How many were decided: those with an earlier ruling keep it."""
        now, submission = self._clock(), uuid.uuid4().hex
        ruled = set(connection.execute(ruled_items().where(votes.c.item.in_(list(verdicts)))).scalars())
        labels = set(
            connection.execute(
                select(items.c.id).where(items.c.id.in_(list(verdicts)), items.c.kind == LABEL)
            ).scalars()
        )
        new = sorted(labels - ruled)
        for item in new:
            row = {"item": item, "person": person, "purpose": RULING, "slot": None, "state": GIVEN, "seconds": 0.0}
            row |= {"answer": {"verdict": "yes" if verdicts[item] else "no"}, "submission": submission, "cost": 0}
            row |= dict.fromkeys(("shown_at", "lease_until", "answered_at"), now)
            connection.execute(insert(votes).values(row))
        end_leases(connection, and_(votes.c.item.in_(new), votes.c.state == LEASED, votes.c.purpose == VOTE))
        connection.execute(update(items).where(items.c.id.in_(new), items.c.state == OPEN).values(state=DONE))
        used = select(votes.c.answer_key).where(votes.c.item.in_(new), votes.c.answer_key.is_not(None))
        for key in connection.execute(used).scalars().all():
            drop_answer(connection, key)
        return len(new)


def ruled_items() -> Select[Any]:
    return select(votes.c.item).where(votes.c.purpose == RULING, votes.c.state == GIVEN)


def _divided(queue: str | None) -> Select[Any]:
    """Labels to which people have given different votes and that nobody has ruled on."""
    query = (
        select(votes.c.item)
        .join(items, items.c.id == votes.c.item)
        .where(items.c.kind == LABEL, votes.c.purpose == VOTE, votes.c.state == GIVEN, items.c.id.not_in(ruled_items()))
        .group_by(votes.c.item)
        .having(func.count(cast(votes.c.answer, Text).distinct()) > 1)
    )
    return query if queue is None else query.where(items.c.queue == queue)


def _add_reasons(connection: Connection, disputed: Sequence[DisputedLabel]) -> None:
    wanted = {(tuple(label.question["feature"][:2]), label.question["example"]): label for label in disputed}
    asked = select(requests.c.content).where(requests.c.kind == WHY, requests.c.content.is_not(None))
    for content in connection.execute(asked).scalars() if wanted else ():
        for question, answer in filter(None, decode(content)):
            label = (tuple(question.get("feature", ())), question.get("example"))
            if label in wanted and answer.get("verdict") in USABLE and answer.get("reason"):
                wanted[label].reasons.append((answer["verdict"], answer["reason"]))
