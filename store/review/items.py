"""Questions that wait for people: each with its examples, the votes it needs, and who waits for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, delete, func, insert, or_, select, text, update

from store.schema import review_examples, review_items, review_votes, review_waits
from store.sql import KEYS, chunks, insert_new

OPEN, DONE, GIVEN_UP, CHECK = "open", "done", "given up", "check"  # states of a question
LEASED, EXPIRED, HELD, GIVEN = "leased", "expired", "held", "given"  # states of a vote
VOTE, CHECKED, REPEAT = "vote", "check", "repeat"  # purposes of a vote
items, votes = review_items, review_votes
MANY = 500
# What is needed of a question to lay it before a person.
ASKED = tuple(items.c[name] for name in ("id", "page", "votes", "digest", "kind", "question", "queue"))


@dataclass(frozen=True, slots=True)
class Ask:
    """A question for people. `digest` names it: the same question asked again is the same row."""

    digest: str
    queue: str
    kind: str
    question: Mapping[str, Any]
    examples: Mapping[str, Mapping[str, Any]]  # by digest: id, and text or image
    page: str = ""  # questions with the same value may be shown on one page; empty: alone
    votes: int = 1
    patience: int = 2
    priority: int = 0
    deadline: float | None = None
    price: int = 0
    hourly: int = 0
    expected: str | None = None  # makes it an attention check: everybody may be asked, no vote is counted


@dataclass(slots=True)
class Standing:
    """How far a question is. `given` holds the votes that count, by the number of their place."""

    item: int
    votes: int
    given_up: bool  # skipped too often, or its deadline is over: nobody is asked any more
    given: dict[int, Vote] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Vote:
    id: int
    by: str
    answer: dict[str, Any]
    seconds: float
    cost: int
    answered_at: float
    prepaid: bool = False  # the cost is in the books already, as that of a task published elsewhere


def enqueue(connection: Connection, asks: Sequence[Ask], now: float) -> None:
    """Enter what is new; what is there already gets the larger number of votes and the higher priority."""
    insert_new(connection, review_examples, _example_rows(asks))
    insert_new(connection, items, [_row(ask, now) for ask in asks])
    if len(asks) >= MANY and connection.dialect.name == "postgresql":  # else it plans as if there were none
        connection.execute(text("ANALYZE review_items"))
    raised = [{"of": ask.digest, "wanted": ask.votes, "urgent": ask.priority} for ask in asks if ask.expected is None]
    if raised:
        connection.execute(_RAISE, raised)


_RAISE = (
    update(items)
    .where(
        items.c.digest == bindparam("of"),
        or_(items.c.votes < bindparam("wanted"), items.c.priority < bindparam("urgent")),
    )
    .values(
        votes=case((items.c.votes < bindparam("wanted"), bindparam("wanted")), else_=items.c.votes),
        priority=case((items.c.priority < bindparam("urgent"), bindparam("urgent")), else_=items.c.priority),
        state=case(((items.c.state == DONE) & (items.c.given < bindparam("wanted")), OPEN), else_=items.c.state),
    )
)


def _example_rows(asks: Sequence[Ask]) -> list[dict[str, Any]]:
    every = {digest: shown for ask in asks for digest, shown in ask.examples.items()}
    return [{"digest": digest, "shown": dict(shown)} for digest, shown in sorted(every.items())]


def _row(ask: Ask, now: float) -> dict[str, Any]:
    return {
        **{name: getattr(ask, name) for name in ("digest", "queue", "kind", "page", "votes", "patience", "priority")},
        **{name: getattr(ask, name) for name in ("deadline", "price", "hourly", "expected")},
        "question": dict(ask.question),
        "filled": 0,
        "given": 0,
        "skipped": 0,
        "published": 0,
        "state": OPEN if ask.expected is None else CHECK,
        "created_at": now,
    }


_STANDING = select(items.c.digest, items.c.id, items.c.votes, items.c.state, items.c.deadline).where(
    items.c.digest.in_(KEYS)
)


def standing(connection: Connection, digests: Sequence[str], now: float) -> dict[str, Standing]:
    """How far each of these questions is; those that were never entered are missing."""
    from store.review.people import WORKER, people

    found: dict[str, Standing] = {}
    for part in chunks(digests):
        rows = connection.execute(_STANDING, {"keys": part}).all()
        by_item = {}
        for row in rows:
            over = row.deadline is not None and row.deadline <= now and row.state == OPEN
            by_item[row.id] = found[row.digest] = Standing(row.id, row.votes, row.state == GIVEN_UP or over)
        query = (
            select(votes, people.c.name, people.c.role)
            .join(people, people.c.id == votes.c.person)
            .where(votes.c.item.in_(list(by_item)), votes.c.state == "given", votes.c.purpose == "vote")
        )
        for vote in connection.execute(query):
            by_item[vote.item].given[vote.slot] = Vote(
                vote.id, vote.name, vote.answer, vote.seconds, vote.cost, vote.answered_at, vote.role == WORKER
            )
    return found


def take(connection: Connection, keys: Mapping[int, str]) -> None:
    """Note under which key each vote enters the ledger: from then on it cannot be undone."""
    rows = [{"of": vote, "under": key} for vote, key in sorted(keys.items())]
    if rows:
        connection.execute(
            update(votes).where(votes.c.id == bindparam("of")).values(answer_key=bindparam("under")), rows
        )


def wait_for(connection: Connection, run_id: str, wanted: Iterable[int], *, suspended: bool) -> None:
    """Note what a run waits for, in place of what it waited for before."""
    connection.execute(delete(review_waits).where(review_waits.c.run_id == run_id))
    rows = [{"run_id": run_id, "item": item, "suspended": int(suspended)} for item in sorted(set(wanted))]
    if rows:
        connection.execute(insert(review_waits), rows)


def still_open(connection: Connection, wanted: Sequence[int], now: float) -> int:
    count = 0
    for part in chunks(wanted):
        query = select(func.count()).where(items.c.id.in_(part), _waiting(now))
        count += connection.execute(query).scalar_one()
    return count


def last_answer(connection: Connection, wanted: Sequence[int]) -> float:
    latest = 0.0
    for part in chunks(wanted):
        query = select(func.max(votes.c.answered_at)).where(votes.c.item.in_(part), votes.c.state == "given")
        latest = max(latest, connection.execute(query).scalar() or 0.0)
    return latest


def _waiting(now: float) -> ColumnElement[bool]:
    return and_(items.c.state == OPEN, or_(items.c.deadline.is_(None), items.c.deadline > now))


def ready_runs(connection: Connection, now: float) -> list[str]:
    """Suspended runs all of whose questions are answered or given up."""
    query = (
        select(review_waits.c.run_id)
        .join(items, items.c.id == review_waits.c.item)
        .where(review_waits.c.suspended == 1)
        .group_by(review_waits.c.run_id)
        .having(func.sum(case((_waiting(now), 1), else_=0)) == 0)
    )
    return list(connection.execute(query).scalars())


def wait_over(connection: Connection, run_id: str) -> None:
    connection.execute(delete(review_waits).where(review_waits.c.run_id == run_id))


def digests_in(question: Mapping[str, Any]) -> list[str]:
    return [question["example"]] if "example" in question else [*question["examples"], *question["without"]]


def digests_of(connection: Connection, wanted: Sequence[int]) -> set[str]:
    found = connection.execute(select(items.c.question).where(items.c.id.in_(list(wanted)))).scalars()
    return {digest for question in found for digest in digests_in(question)}


def examples(connection: Connection, digests: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for part in chunks(sorted(set(digests))):
        query = select(review_examples).where(review_examples.c.digest.in_(part))
        found.update((row.digest, row.shown) for row in connection.execute(query))
    return found
