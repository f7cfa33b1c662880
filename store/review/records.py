"""What the queue holds and who did what, for progress, the admin page and the export."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, case, func, literal_column, or_, select

from twothirds.store.engine import Clock, Repository, Transactions, reads
from twothirds.store.review.items import (
    CHECK,
    DATASET,
    EXPIRED,
    GIVEN,
    LEASED,
    OPEN,
    VOTE,
    digests_in,
    items,
    read_examples,
    votes,
)
from twothirds.store.review.leases import PERSON, is_available
from twothirds.store.review.people import people

PACE_SAMPLE = 50
MAX_NAMES = 200  # that are suggested
MANY, MANY_SECONDS = 500, 1.0  # a count as large as this is cached for a moment


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """How far one person is. `seconds` is the median time that they take for a comparison and for a label, or others
    do where they have not answered such a question yet; None where nobody has."""

    given: int
    comparisons: int  # that are left
    labels: int
    seconds: tuple[float | None, float | None]

    @property
    def left(self) -> int:
        return self.comparisons + self.labels


@dataclass(frozen=True, slots=True)
class QueueState:
    queue: str
    kind: str
    state: str
    questions: int
    wanted: int
    given: int


_IN_QUEUE = items.c.queue == bindparam("queue")
_NAMES_GIVEN = (
    select(votes.c.answer, items.c.question)
    .join(items, items.c.id == votes.c.item)
    .where(items.c.kind.not_in(("label", "family")), votes.c.state == GIVEN, _IN_QUEUE)  # that names an attribute
    .order_by(votes.c.answered_at.desc())
    .limit(MAX_NAMES)
)
_FIRST_OF_PAGE = (
    select(func.min(items.c.id))
    .where(items.c.kind == "label", items.c.state != CHECK, _IN_QUEUE)
    .group_by(items.c.page)
)
_LABELLED = select(items.c.question).where(items.c.id.in_(_FIRST_OF_PAGE)).order_by(items.c.id.desc()).limit(MAX_NAMES)
# Without parameters, or PostgreSQL takes it for another expression in GROUP BY.
_IS_LABEL = case((items.c.kind == literal_column("'label'"), literal_column("1")), else_=literal_column("0")).label(
    "is_label"
)
# The times of the latest answers of everybody, for those who have given none of the kind yet.
_USUAL = (
    select(_IS_LABEL, votes.c.seconds)
    .join(items, items.c.id == votes.c.item)
    .where(votes.c.state == GIVEN)
    .order_by(votes.c.id.desc())
    .limit(PACE_SAMPLE)
)
_RECORD = (
    select(
        votes.c.id,
        votes.c.item,
        items.c.queue,
        items.c.kind,
        items.c.question,
        items.c.expected,
        people.c.name.label("by"),
        *(votes.c[name] for name in ("purpose", "slot", "state", "answer", "seconds", "cost", "answered_at")),
    )
    .join(items, items.c.id == votes.c.item)
    .join(people, people.c.id == votes.c.person)
    .where(votes.c.state.not_in((LEASED, EXPIRED)))
    .order_by(votes.c.id)
)


class Records(Repository):
    def __init__(self, transactions: Transactions, clock: Clock) -> None:
        super().__init__(transactions, clock)
        self._counts: dict[str | None, tuple[list[int], float]] = {}  # by queue: available questions, and when counted

    @reads
    def progress(self, connection: Connection, person: int, queue: str | None = None) -> QueueProgress:
        """How far a person is, in one queue or in all."""
        now, one_queue = self._clock(), queue is not None
        values = {"now": now} | ({"queue": queue} if one_queue else {})
        available, counted_at = self._counts.get(queue, ([0, 0], float("-inf")))
        if now - counted_at >= MANY_SECONDS:
            available = _by_kind(connection.execute(_free(one_queue), values))
            if sum(available) >= MANY:
                self._counts[queue] = (available, now)
        own = values | {"person": person}
        taken = _by_kind(connection.execute(_taken(one_queue), own))
        given = int(connection.execute(_GIVEN, own).scalar_one())
        comparisons, labels = (max(0, free + more) for free, more in zip(available, taken, strict=True))
        paces = self._paces(connection, person, [comparisons, labels])
        return QueueProgress(given, comparisons, labels, paces)

    def _paces(self, connection: Connection, person: int, left: list[int]) -> tuple[float | None, float | None]:
        own = [(row.is_label, row.seconds) for row in connection.execute(_OWN_PACE, {"person": person})]
        unknown = {kind for kind in (0, 1) if left[kind]} - {kind for kind, _ in own}
        if unknown:
            own += [(row.is_label, row.seconds) for row in connection.execute(_USUAL) if row.is_label in unknown]
        comparing, labelling = (sorted(seconds for kind, seconds in own if kind == wanted) for wanted in (0, 1))
        return _median(comparing), _median(labelling)

    @reads
    def states(self, connection: Connection) -> list[QueueState]:
        columns = (items.c.queue, items.c.kind, items.c.state)
        wanted, given = (func.coalesce(func.sum(column), 0) for column in (items.c.votes, items.c.given))
        query = select(*columns, func.count(), wanted, given).group_by(*columns).order_by(*columns)
        return [QueueState(*row[:3], *map(int, row[3:])) for row in connection.execute(query)]

    @reads
    def waiting(self, connection: Connection, queue: str | None = None) -> list[dict[str, Any]]:
        """Open questions, the most urgent first."""
        query = select(items).where(items.c.state == OPEN).order_by(items.c.priority.desc(), items.c.id)
        if queue is not None:
            query = query.where(items.c.queue == queue)
        return [dict(row) for row in connection.execute(query).mappings()]

    @reads
    def names_used(self, connection: Connection, queue: str, dataset: str = "") -> list[str]:
        """Names of features in one queue about one data set: those that people gave, the latest first, then those that
        were labelled."""
        asked = {"queue": queue}
        given = [(row.answer, row.question) for row in connection.execute(_NAMES_GIVEN, asked)]
        names = [
            answer["name"]
            for answer, question in given
            if answer and answer.get("name") and question.get(DATASET, "") == dataset
        ]
        labelled = connection.execute(_LABELLED, asked).scalars()
        names += [question["feature"][0] for question in labelled if question.get(DATASET, "") == dataset]
        return list(dict.fromkeys(names))

    @reads
    def features_asked(self, connection: Connection, queue: str) -> list[str]:
        """The names of the features that people of the queue are or were asked about, the latest first."""
        questions = connection.execute(_LABELLED, {"queue": queue}).scalars()
        return list(dict.fromkeys(question["feature"][0] for question in questions))

    def answers(self) -> Iterator[dict[str, Any]]:
        """Every answer that was given, skipped, late or withdrawn; no transaction stays open between pages of them."""
        after = 0
        while page := self._page(after):
            yield from page
            after = page[-1]["id"]

    @reads
    def _page(self, connection: Connection, after: int) -> list[dict[str, Any]]:
        """The next answers in the order of their leases, with the ids of their examples."""
        rows = [dict(row) for row in connection.execute(_RECORD.where(votes.c.id > after).limit(1000)).mappings()]
        examples = read_examples(connection, [digest for row in rows for digest in digests_in(row["question"])])
        for row in rows:
            row["ids"] = [examples.get(digest, {}).get("id", digest) for digest in digests_in(row["question"])]
        return rows

    @reads
    def consensus(self, connection: Connection) -> dict[int, str]:
        """The verdict of each label question on which at least two votes were given and all agree."""
        query = (
            select(votes.c.item, votes.c.answer)
            .join(items, items.c.id == votes.c.item)
            .where(items.c.kind == "label", votes.c.purpose == VOTE, votes.c.state == GIVEN)
        )
        verdicts: dict[int, list[str]] = {}
        for row in connection.execute(query):
            verdicts.setdefault(row.item, []).append(row.answer.get("verdict", ""))
        return {item: given[0] for item, given in verdicts.items() if len(given) > 1 and len(set(given)) == 1}


@cache
def _free(one_queue: bool) -> Select[Any]:
    return select(_IS_LABEL, func.count().label("n")).where(is_available(one_queue)).group_by(_IS_LABEL)


_OWN = votes.c.person == PERSON
_GIVEN = select(func.count()).where(_OWN, votes.c.state == GIVEN)
_LATEST = (
    select(votes.c.item, votes.c.seconds)
    .where(_OWN, votes.c.state == GIVEN)
    .order_by(votes.c.answered_at.desc())
    .limit(PACE_SAMPLE)
    .subquery()
)
_OWN_PACE = select(_IS_LABEL, _LATEST.c.seconds).join(items, items.c.id == _LATEST.c.item)


@cache
def _taken(one_queue: bool) -> Select[Any]:
    """By kind of question: what the person has leased, less what is available and has been seen by them."""
    seen = case((and_(is_available(one_queue), votes.c.purpose == VOTE), 1), else_=0)
    leased = case((votes.c.state == LEASED, 1), else_=0)
    return (
        select(_IS_LABEL, func.sum(leased - seen).label("n"))
        .select_from(votes.join(items, items.c.id == votes.c.item))
        .where(_OWN, votes.c.state != EXPIRED, or_(votes.c.state == LEASED, items.c.state == OPEN))
        .group_by(_IS_LABEL)
    )


def _by_kind(rows: Iterable[Row[Any]]) -> list[int]:
    """How many comparisons and how many labels."""
    found = {row.is_label: int(row.n) for row in rows}
    return [found.get(0, 0), found.get(1, 0)]


def _median(ordered: list[float]) -> float | None:
    return ordered[len(ordered) // 2] if ordered else None
