"""Withdrawing a person: their answers are set aside, their questions asked again of others, and features that nobody
else has named are asked about no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, select, update

from twothirds.store.engine import Repository, chunks, reads, writes
from twothirds.store.requests import drop_answer
from twothirds.store.review.items import DONE, GIVEN, HELD, LEASED, OPEN, VOTE, items, votes
from twothirds.store.review.leases import drop_leases, end_leases
from twothirds.store.review.votes import WITHDRAWN, count_votes

LABEL = "label"
_VOTE = tuple(votes.c[name] for name in ("id", "item", "purpose", "slot", "state", "answer_key", "answer"))


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What withdrawing a person does, or did."""

    answers: int
    reopened: int  # questions that others are asked again
    used: int  # answers that a run has taken: their questions are open again
    features: list[str]  # that nobody else has named
    labels: int  # questions about those features that are no longer asked


class Withdrawals(Repository):
    @reads
    def preview(self, connection: Connection, person: int) -> Withdrawal:
        rows, lone = _given(connection, person), _lone_features(connection, person)
        return _summary(rows, lone, _labels_about(connection, lone, rows))

    @writes
    def withdraw(self, connection: Connection, person: int) -> Withdrawal:
        """The answers are kept and marked. Questions about a feature that is taken back want no more votes until it is
        named again."""
        drop_leases(connection, person)
        rows, lone = _given(connection, person), _lone_features(connection, person)
        labels = _labels_about(connection, lone, rows)
        connection.execute(update(votes).where(_of(person)).values(state=WITHDRAWN, slot=None))
        for row in sorted(rows, key=lambda row: row.item):
            if row.purpose == VOTE:
                count_votes(connection, [row.item], given=-(row.state == GIVEN), filled=-(row.slot is not None))
        for row in rows:
            if row.answer_key is not None:
                drop_answer(connection, row.answer_key)
        for part in chunks(labels):
            end_leases(connection, and_(votes.c.item.in_(part), votes.c.state == LEASED))
            connection.execute(update(items).where(items.c.id.in_(part)).values(votes=items.c.given, state=DONE))
        return _summary(rows, lone, labels)


def _of(person: int) -> ColumnElement[bool]:
    return and_(votes.c.person == person, votes.c.state.in_((GIVEN, HELD)))


def _given(connection: Connection, person: int) -> list[Row[Any]]:
    return list(connection.execute(select(*_VOTE).where(_of(person))))


def _summary(rows: Sequence[Row[Any]], lone: Sequence[_Named], labels: Sequence[int]) -> Withdrawal:
    voted = [row for row in rows if row.purpose == VOTE]
    reopened = {row.item for row in voted} - set(labels)
    used = sum(row.answer_key is not None for row in rows)
    return Withdrawal(len(voted), len(reopened), used, sorted({feature.name for feature in lone}), len(labels))


@dataclass(frozen=True, slots=True)
class _Named:
    queue: str
    name: str
    definition: str


def _lone_features(connection: Connection, person: int) -> list[_Named]:
    """Features that this person has named, and nobody else under the same name in the same queue."""
    named = select(items.c.queue, votes.c.answer).join(items, items.c.id == votes.c.item)
    named = named.where(items.c.kind != LABEL, votes.c.purpose == VOTE, votes.c.state.in_((GIVEN, HELD)))
    own = list(_names(connection, named.where(votes.c.person == person)))
    if not own:
        return []
    others = {
        (feature.queue, feature.name.casefold())
        for feature in _names(connection, named.where(votes.c.person != person))
    }
    return [feature for feature in dict.fromkeys(own) if (feature.queue, feature.name.casefold()) not in others]


def _names(connection: Connection, query: Select[Any]) -> Iterator[_Named]:
    for queue, answer in connection.execute(query):
        if answer and answer.get("name"):
            yield _Named(queue, answer["name"], answer.get("definition", ""))
            yield from (_Named(queue, name, definition) for name, definition, *_ in answer.get("more", ()))


def _labels_about(connection: Connection, lone: Sequence[_Named], rows: Sequence[Row[Any]]) -> list[int]:
    """Questions about these features that want votes, or will once these are withdrawn."""
    if not lone:
        return []
    wanted, voted = {(feature.queue, feature.name, feature.definition) for feature in lone}, {row.item for row in rows}
    columns = (items.c.id, items.c.state, items.c.queue, items.c.question)
    query = select(*columns).where(items.c.kind == LABEL, items.c.state.in_((OPEN, DONE)))
    return [
        row.id
        for row in connection.execute(query)
        if (row.state == OPEN or row.id in voted) and (row.queue, *row.question["feature"][:2]) in wanted
    ]
