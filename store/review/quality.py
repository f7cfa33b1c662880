"""What is known of labels: where people agree or differ, rulings, and the training round that rests on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Row, select

from twothirds.store.content import decode
from twothirds.store.engine import Repository, insert_new, reads, writes
from twothirds.store.review.leases import MAX_CANDIDATES, LeasedQuestion, LeaseTerms, end_leases, lease, leased_by
from twothirds.store.review.questions import (
    ASKED,
    CHECK,
    CHECKED,
    DONE,
    EXPIRED,
    GIVEN,
    LABEL,
    LEASED,
    RULED,
    VOTE,
    items,
    rulings,
    update_states,
    votes,
    votes_in,
)
from twothirds.store.review.votes import forget
from twothirds.store.schema import requests, review_people, review_used

WHY = "why"  # the kind of questions that ask a model for the reason of a label
USABLE = ("yes", "no")
_IS_GIVEN = (votes.c.purpose == VOTE, votes.c.state == GIVEN)
_TEXT = sa.cast(votes.c.answer, sa.Text)


@dataclass(frozen=True, slots=True)
class DisputedLabel:
    """A label on which people disagree, with who said what and the reasons that a model gave, where it was asked."""

    item: int
    question: dict[str, Any]
    yes: list[str]
    no: list[str]
    reasons: list[tuple[str, str]]  # what was said, and why


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """What a person said in the training round, and what is right."""

    question: dict[str, Any]
    said: str
    right: str


class Quality(Repository):
    @reads
    def consensus(self, connection: Connection) -> dict[int, str]:
        """The verdict of each label that was ruled, or on which at least two people agree and nobody differs."""
        return _verdicts(connection, select(items.c.id).where(items.c.kind == LABEL))

    @reads
    def disputes(self, connection: Connection, queue: str | None = None) -> int:
        """How many labels are disputed."""
        return int(connection.execute(select(sa.func.count()).select_from(_divided(queue).subquery())).scalar_one())

    @reads
    def disputed(self, connection: Connection, queue: str | None = None, most: int = 24) -> list[DisputedLabel]:
        """The most evenly divided first; without those that have been ruled."""
        query = select(items.c.id, items.c.question, votes.c.answer, review_people.c.name)
        joined = query.select_from(votes.join(items, items.c.id == votes.c.item).join(review_people))
        found: dict[int, DisputedLabel] = {}
        for row in connection.execute(joined.where(items.c.id.in_(_divided(queue)), *_IS_GIVEN).order_by(votes.c.id)):
            label = found.setdefault(row.id, DisputedLabel(row.id, row.question, [], [], []))
            (label.yes if row.answer["verdict"] == "yes" else label.no).append(row.name)
        ordered = sorted(found.values(), key=lambda label: (abs(len(label.yes) - len(label.no)), label.item))[:most]
        _add_reasons(connection, ordered)
        return ordered

    @writes
    def rule(self, connection: Connection, person: int, verdicts: Mapping[int, bool]) -> int:
        """Decide labels for good: nobody is asked about them any more, and answers that a run has used count no more,
        so that running again takes the ruling. How many were decided: those with an earlier ruling keep it."""
        wanted = select(items.c.id).where(
            items.c.id.in_(list(verdicts)), items.c.kind == LABEL, items.c.id.not_in(RULED)
        )
        new = sorted(connection.execute(wanted.with_for_update()).scalars())
        same = {"person": person, "ruled_at": self._clock(), "withdrawn": False}
        answers = {item: {"verdict": "yes" if verdicts[item] else "no"} for item in new}
        insert_new(connection, rulings, [{"item": item, "answer": answer} | same for item, answer in answers.items()])
        end_leases(connection, sa.and_(votes.c.item.in_(new), votes.c.purpose == VOTE))
        update_states(connection, new)
        used = select(review_used.c.answer_key).where(review_used.c.item.in_(new))
        forget(connection, list(connection.execute(used).scalars()))
        return len(new)

    @writes
    def training_page(self, connection: Connection, person: int, terms: LeaseTerms) -> list[LeasedQuestion]:
        """Attention checks that a new reviewer answers before anything else, with feedback; none where that is not
        wanted, is done, or where people agree on nothing yet. Whoever has voted is no new reviewer."""
        own_votes = select(votes.c.purpose, votes.c.state).where(votes.c.person == person, votes.c.state != EXPIRED)
        own = connection.execute(own_votes).all() if terms.training else []
        if not terms.training or any(row.purpose == VOTE and row.state != LEASED for row in own):
            return []
        left = terms.training - sum(row.purpose == CHECKED and row.state != LEASED for row in own)
        leased = [question for question in leased_by(connection, person) if question.purpose == CHECKED]
        agreed = _agreed(connection, person, terms)[:left] if left > 0 and not leased else []
        if not agreed:
            return leased
        now = self._clock()
        lease(connection, person, [(row.id, CHECKED, None) for row in agreed], now, now + terms.lease_seconds)
        return [question for question in leased_by(connection, person) if question.purpose == CHECKED]

    @reads
    def training_results(self, connection: Connection, person: int) -> list[TrainingResult]:
        """Of what the person sent last."""
        given = sa.and_(votes.c.person == person, votes.c.purpose == CHECKED, votes.c.state == GIVEN)
        newest = select(votes.c.submission).where(given).order_by(votes.c.answered_at.desc(), votes.c.id.desc())
        query = select(votes.c.item, votes.c.answer, items.c.question, items.c.expected).join(items)
        query = query.where(given, votes.c.submission == newest.limit(1).scalar_subquery()).order_by(items.c.digest)
        rows = connection.execute(query).all()
        known = _verdicts(connection, [row.item for row in rows])
        return [
            TrainingResult(row.question, row.answer["verdict"], row.expected or known[row.item])
            for row in rows
            if row.expected or row.item in known
        ]


def _divided(queue: str | None) -> sa.Select[Any]:
    """Labels to which people have given different votes and that nobody has ruled on."""
    query = select(votes.c.item).join(items).where(items.c.kind == LABEL, *_IS_GIVEN, items.c.id.not_in(RULED))
    divided = query.group_by(votes.c.item).having(sa.func.count(_TEXT.distinct()) > 1)
    return divided if queue is None else divided.where(items.c.queue == queue)


def _add_reasons(connection: Connection, disputed: Sequence[DisputedLabel]) -> None:
    wanted = {(tuple(label.question["feature"][:2]), label.question["example"]): label for label in disputed}
    asked = select(requests.c.content).where(requests.c.kind == WHY, requests.c.content.is_not(None))
    for content in connection.execute(asked).scalars() if wanted else ():
        for question, answer in filter(None, decode(content)):
            label = (tuple(question.get("feature", ())), question.get("example"))
            if label in wanted and answer.get("verdict") in USABLE and answer.get("reason"):
                wanted[label].reasons.append((answer["verdict"], answer["reason"]))


def _agreed(connection: Connection, person: int, terms: LeaseTerms) -> Sequence[Row[Any]]:
    """Labels of one feature whose answer is known and that the person has not seen: of the feature with the most."""
    seen = select(votes.c.item).where(votes.c.person == person, votes.c.state != EXPIRED)
    query = select(*ASKED, items.c.state).where(items.c.kind == LABEL, items.c.id.not_in(seen))
    query = query.where(sa.or_(items.c.state == CHECK, sa.and_(items.c.state == DONE, votes_in(GIVEN) > 1)))
    if terms.queue is not None:
        query = query.where(items.c.queue == terms.queue)
    rows = connection.execute(query.order_by(items.c.id.desc()).limit(10 * MAX_CANDIDATES)).all()
    known = _verdicts(connection, [row.id for row in rows])
    by_page: dict[str, list[Row[Any]]] = {}
    for row in rows:
        if row.id in known or row.state == CHECK:
            by_page.setdefault(row.page, []).append(row)
    return max(by_page.values(), key=len, default=[])


def _verdicts(connection: Connection, of_items: Any) -> dict[int, str]:
    """Of labels that were ruled, or on which at least two people agree and nobody differs."""
    agreeing = select(votes.c.item, sa.func.min(_TEXT)).where(votes.c.item.in_(of_items), *_IS_GIVEN)
    agreeing = agreeing.group_by(votes.c.item).having(sa.func.count() > 1, sa.func.count(_TEXT.distinct()) == 1)
    found = {item: "yes" if '"yes"' in text else "no" for item, text in connection.execute(agreeing)}
    ruled = select(rulings.c.item, rulings.c.answer).where(rulings.c.item.in_(of_items), ~rulings.c.withdrawn)
    return found | {item: answer["verdict"] for item, answer in connection.execute(ruled)}
