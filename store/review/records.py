"""What the queue holds and who did what, for progress, the admin's page and the export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Select, func, null, select

from store.review.attention import PERSON
from store.review.items import CHECK, EXPIRED, GIVEN, LEASED, OPEN, VOTE, digests_in, examples, items, votes
from store.review.leases import on_the_page
from store.review.people import people

PACE_SAMPLE = 50
MOST_NAMES = 200  # that are suggested


@dataclass(frozen=True, slots=True)
class Progress:
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


def progress(connection: Connection, person: int, queue: str | None, now: float, free: int | None = None) -> Progress:
    """`free` says how many questions have a place, where that is known; counting them takes the longest of all."""
    values = {"person": person, "now": now} | ({"queue": queue} if queue is not None else {})
    if free is None:
        free = count_free(connection, queue, now)
    counts, *paces = connection.execute(_progress(queue is not None), values)
    seconds = sorted(row.seconds for row in paces)
    return Progress(counts.given, free + counts.leased - counts.met, seconds[len(seconds) // 2] if seconds else None)


def count_free(connection: Connection, queue: str | None, now: float) -> int:
    """Questions that still have a place for somebody."""
    values = {"now": now} | ({"queue": queue} if queue is not None else {})
    return int(connection.execute(_free(queue is not None), values).scalar_one())


@cache
def _free(one_queue: bool) -> Select[Any]:
    return select(func.count()).select_from(items).where(on_the_page(one_queue))


@cache
def _progress(one_queue: bool) -> CompoundSelect[Any]:
    """One row of counts, then what the latest answers took."""
    mine = select(func.count()).where(votes.c.person == PERSON)
    here = on_the_page(one_queue)
    met = mine.join(items, items.c.id == votes.c.item).where(here, votes.c.purpose == VOTE, votes.c.state != EXPIRED)
    counts = select(
        mine.where(votes.c.state == GIVEN).scalar_subquery().label("given"),
        mine.where(votes.c.state == LEASED).scalar_subquery().label("leased"),
        met.scalar_subquery().label("met"),
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


def queue_states(connection: Connection) -> list[QueueState]:
    query = (
        select(
            items.c.queue,
            items.c.kind,
            items.c.state,
            func.count(),
            func.coalesce(func.sum(items.c.votes), 0),
            func.coalesce(func.sum(items.c.given), 0),
        )
        .group_by(items.c.queue, items.c.kind, items.c.state)
        .order_by(items.c.queue, items.c.kind, items.c.state)
    )
    return [QueueState(*row[:3], *map(int, row[3:])) for row in connection.execute(query)]


def waiting(connection: Connection, queue: str | None = None) -> list[dict[str, Any]]:
    """Open questions, the most urgent first."""
    query = select(items).where(items.c.state == OPEN).order_by(items.c.priority.desc(), items.c.id)
    if queue is not None:
        query = query.where(items.c.queue == queue)
    return [dict(row) for row in connection.execute(query).mappings()]


def names_used(connection: Connection) -> list[str]:
    """Names of features: those that people gave, the latest first, then those that were labelled."""
    names = [answer["name"] for answer in connection.execute(_SAID).scalars() if answer and answer.get("name")]
    names += [question["feature"][0] for question in connection.execute(_LABELLED).scalars()]
    return list(dict.fromkeys(names))


_SAID = (
    select(votes.c.answer)
    .join(items, items.c.id == votes.c.item)
    .where(items.c.kind != "label", votes.c.state == "given")
    .order_by(votes.c.answered_at.desc())
    .limit(MOST_NAMES)
)
_FIRST_OF_PAGE = (
    select(func.min(items.c.id)).where(items.c.kind == "label", items.c.state != CHECK).group_by(items.c.page)
)
_LABELLED = select(items.c.question).where(items.c.id.in_(_FIRST_OF_PAGE)).order_by(items.c.id.desc()).limit(MOST_NAMES)


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


def records(connection: Connection, after: int, limit: int) -> list[dict[str, Any]]:
    """The next answers, whatever became of them, in the order of their leases, with the ids of their examples."""
    rows = [dict(row) for row in connection.execute(_RECORD.where(votes.c.id > after).limit(limit)).mappings()]
    shown = examples(connection, [digest for row in rows for digest in digests_in(row["question"])])
    for row in rows:
        row["ids"] = [shown.get(digest, {}).get("id", digest) for digest in digests_in(row["question"])]
    return rows


def consensus(connection: Connection) -> Iterator[tuple[int, str]]:
    """Labels on which at least two votes were given and all agree, with what they say."""
    query = (
        select(votes.c.item, votes.c.answer)
        .join(items, items.c.id == votes.c.item)
        .where(items.c.kind == "label", votes.c.purpose == VOTE, votes.c.state == "given")
    )
    said: dict[int, list[str]] = {}
    for row in connection.execute(query):
        said.setdefault(row.item, []).append(row.answer.get("verdict", ""))
    return ((item, verdicts[0]) for item, verdicts in said.items() if len(verdicts) > 1 and len(set(verdicts)) == 1)
