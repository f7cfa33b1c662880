"""What the queue holds and who did what, for progress, the admin page and the export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Select, func, null, select

from store.review.attention import PERSON
from store.review.items import CHECK, EXPIRED, GIVEN, LEASED, OPEN, VOTE, digests_in, items, read_examples, votes
from store.review.leases import is_available
from store.review.people import people
from store.transactions import Clock, Repository, Transactions, reads

PACE_SAMPLE = 50
MAX_NAMES = 200  # that are suggested
MANY, MANY_SECONDS = 500, 1.0  # a count as large as this is cached for a moment


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """How far one person is; `seconds` is the median time they take for a question, None before their first."""

    given: int
    left: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class QueueState:
    queue: str
    kind: str
    state: str
    questions: int
    wanted: int
    given: int


_NAMES_GIVEN = (
    select(votes.c.answer)
    .join(items, items.c.id == votes.c.item)
    .where(items.c.kind.not_in(("label", "family")), votes.c.state == GIVEN)  # that names an attribute
    .order_by(votes.c.answered_at.desc())
    .limit(MAX_NAMES)
)
_FIRST_OF_PAGE = (
    select(func.min(items.c.id)).where(items.c.kind == "label", items.c.state != CHECK).group_by(items.c.page)
)
_LABELLED = select(items.c.question).where(items.c.id.in_(_FIRST_OF_PAGE)).order_by(items.c.id.desc()).limit(MAX_NAMES)
_RECORD = (
    select(
        votes.c.id,
        votes.c.item,
        items.c.queue,
        items.c.kind,
        items.c.question,
        items.c.expected,
        people.c.name.label("by"),
        people.c.role,
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
        self._counts: dict[str | None, tuple[int, float]] = {}  # by queue: available questions, and when counted

    @reads
    def progress(self, connection: Connection, person: int, queue: str | None = None) -> QueueProgress:
        """How far a person is, in one queue or in all."""
        now, one_queue = self._clock(), queue is not None
        values = {"now": now} | ({"queue": queue} if one_queue else {})
        available, counted_at = self._counts.get(queue, (0, float("-inf")))
        if now - counted_at >= MANY_SECONDS:
            available = int(connection.execute(_free(one_queue), values).scalar_one())
            if available >= MANY:
                self._counts[queue] = (available, now)
        counts, *paces = connection.execute(_progress(one_queue), values | {"person": person})
        seconds = sorted(row.seconds for row in paces)
        left = available + counts.leased - counts.seen
        return QueueProgress(counts.given, left, seconds[len(seconds) // 2] if seconds else None)

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
    def names_used(self, connection: Connection) -> list[str]:
        """Names of features: those that people gave, the latest first, then those that were labelled."""
        answers = connection.execute(_NAMES_GIVEN).scalars()
        names = [answer["name"] for answer in answers if answer and answer.get("name")]
        names += [question["feature"][0] for question in connection.execute(_LABELLED).scalars()]
        return list(dict.fromkeys(names))

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
    return select(func.count()).select_from(items).where(is_available(one_queue))


@cache
def _progress(one_queue: bool) -> CompoundSelect[Any]:
    """One row of counts, then the times of the latest answers."""
    own = select(func.count()).where(votes.c.person == PERSON)
    available = is_available(one_queue)
    seen = own.join(items, items.c.id == votes.c.item).where(
        available, votes.c.purpose == VOTE, votes.c.state != EXPIRED
    )
    counts = select(
        own.where(votes.c.state == GIVEN).scalar_subquery().label("given"),
        own.where(votes.c.state == LEASED).scalar_subquery().label("leased"),
        seen.scalar_subquery().label("seen"),
        null().label("seconds"),
    )
    latest = (
        select(votes.c.seconds)
        .where(votes.c.person == PERSON, votes.c.state == GIVEN)
        .order_by(votes.c.answered_at.desc())
        .limit(PACE_SAMPLE)
        .subquery()
    )
    return counts.union_all(select(null(), null(), null(), latest.c.seconds))
