"""Questions that wait for people, the votes that each has, and the runs that wait for them.

Whatever is said about a question follows from its votes: they are counted by query, and `update_states` derives the
state of a question from them. Statements are built once: building one takes longer than running it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam, select, update

from twothirds.store.engine import KEYS, Clock, Repository, Transactions, analyze, chunks, insert_new, reads, writes
from twothirds.store.schema import (
    review_examples,
    review_items,
    review_people,
    review_rulings,
    review_used,
    review_votes,
    review_waits,
    runs,
)

OPEN, DONE, ABANDONED, CHECK = "open", "done", "given up", "check"  # states of a question
LEASED, EXPIRED, HELD, GIVEN = "leased", "expired", "held", "given"  # states of a vote
LATE, SKIPPED, WITHDRAWN = "late", "skipped", "withdrawn"
VOTE, CHECKED, REPEAT, RULING = "vote", "check", "repeat", "ruling"  # purposes of an answer; a ruling is no vote
LABEL = "label"  # the kind of questions of which many share a page
DATASET = "dataset"  # of a question: the name of the data set that its examples are from
EXEMPLARS = "exemplars"  # of a label: digests of examples that are shown beside it, and whether each has the feature
MANY = 500
MAX_CACHED_EXAMPLES = 10_000

items, votes, rulings = review_items, review_votes, review_rulings
RULED = select(rulings.c.item).where(~rulings.c.withdrawn)
SLOTS_TAKEN = select(sa.func.count(votes.c.slot)).where(votes.c.item == items.c.id).correlate(items).scalar_subquery()
# The columns that are needed to ask a person.
ASKED = tuple(items.c[name] for name in ("id", "page", "votes", "digest", "kind", "question", "queue"))


def votes_in(state: str) -> sa.ScalarSelect[int]:
    """How many votes of a question are in this state."""
    counted = (votes.c.item == items.c.id, votes.c.purpose == VOTE, votes.c.state == state)
    return select(sa.func.count()).where(*counted).correlate(items).scalar_subquery()


_STATE = sa.case(
    (sa.or_(items.c.id.in_(RULED), votes_in(GIVEN) >= items.c.votes), DONE),
    (votes_in(SKIPPED) >= items.c.patience, ABANDONED),
    else_=OPEN,
)
_UPDATE_STATES = (
    update(items).where(items.c.id.in_(KEYS), items.c.state != CHECK, items.c.state != _STATE).values(state=_STATE)
)


def update_states(connection: sa.Connection, numbers: Collection[int]) -> None:
    """Derive the states of these questions from their votes; to be called after each change of votes."""
    for part in chunks(sorted(set(numbers))):
        connection.execute(_UPDATE_STATES, {"keys": part})


@dataclass(frozen=True, slots=True)
class ReviewQuestion:
    """A question for people. `digest` identifies it: the same question asked again is the same row."""

    digest: str
    queue: str
    kind: str
    question: Mapping[str, Any]
    examples: Mapping[str, Mapping[str, Any]]  # by digest: id, and text or image
    page: str = ""  # questions with the same value may share a page; empty: alone on its page
    votes: int = 1
    patience: int = 2
    priority: int = 0
    deadline: float | None = None
    price: int = 0
    hourly: int = 0
    expected: str | None = None  # makes it an attention check: anyone may be asked, and no vote counts


@dataclass(slots=True)
class Standing:
    """How far a question is. `given` holds the votes that count, by slot."""

    item: int
    votes: int
    abandoned: bool  # skipped too often or past its deadline: no longer asked
    given: dict[int, Vote] = field(default_factory=dict)
    ruling: Vote | None = None  # outranks the votes


@dataclass(frozen=True, slots=True)
class Vote:
    """A vote that counts, or a ruling."""

    item: int
    person: int
    by: str
    answer: dict[str, Any]
    seconds: float
    cost: int
    answered_at: float
    prepaid: bool = False  # the cost is booked already, with the task that was published elsewhere


_RAISE = (
    update(items)
    .where(
        items.c.digest == bindparam("of"),
        sa.or_(items.c.votes < bindparam("wanted"), items.c.priority < bindparam("urgent")),
    )
    .values(
        votes=sa.case((items.c.votes < bindparam("wanted"), bindparam("wanted")), else_=items.c.votes),
        priority=sa.case((items.c.priority < bindparam("urgent"), bindparam("urgent")), else_=items.c.priority),
    )
)
_NUMBERS = select(items.c.id).where(items.c.digest.in_(KEYS))
_STANDING = select(items.c.digest, items.c.id, items.c.votes, items.c.state, items.c.deadline).where(
    items.c.digest.in_(KEYS)
)
_BY = (review_people.c.name, review_people.c.is_worker)
_GIVEN = (
    select(votes, *_BY)
    .join(review_people)
    .where(votes.c.item.in_(KEYS), votes.c.state == GIVEN, votes.c.purpose == VOTE)
)
_RULINGS = select(rulings, *_BY).join(review_people).where(rulings.c.item.in_(KEYS), ~rulings.c.withdrawn)


class Questions(Repository):
    def __init__(self, transactions: Transactions, clock: Clock) -> None:
        super().__init__(transactions, clock)
        self._examples: dict[str, dict[str, Any]] = {}

    @writes
    def enqueue(self, connection: sa.Connection, questions: Sequence[ReviewQuestion]) -> None:
        """Insert new questions; one that exists gets the larger number of votes and the higher priority."""
        examples = {digest: content for asked in questions for digest, content in asked.examples.items()}
        rows = [{"digest": digest, "shown": dict(content)} for digest, content in sorted(examples.items())]
        insert_new(connection, review_examples, rows)
        now = self._clock()
        insert_new(connection, items, [_row(asked, now) for asked in questions])
        if len(questions) >= MANY:
            analyze(connection, items)
        raised = [
            {"of": asked.digest, "wanted": asked.votes, "urgent": asked.priority}
            for asked in questions
            if asked.expected is None
        ]
        if raised:
            connection.execute(_RAISE, raised)
            for part in chunks([question["of"] for question in raised]):
                update_states(connection, connection.execute(_NUMBERS, {"keys": part}).scalars().all())

    @reads
    def standing(self, connection: sa.Connection, digests: Sequence[str]) -> dict[str, Standing]:
        """How far each of these questions is; those that were never enqueued are missing."""
        found: dict[str, Standing] = {}
        now = self._clock()
        for part in chunks(digests):
            by_item = {}
            for row in connection.execute(_STANDING, {"keys": part}).all():
                is_late = row.deadline is not None and row.deadline <= now and row.state == OPEN
                by_item[row.id] = found[row.digest] = Standing(row.id, row.votes, row.state == ABANDONED or is_late)
            for vote in connection.execute(_GIVEN, {"keys": list(by_item)}):
                by_item[vote.item].given[vote.slot] = Vote(
                    item=vote.item,
                    person=vote.person,
                    by=vote.name,
                    answer=vote.answer,
                    seconds=vote.seconds,
                    cost=vote.cost,
                    answered_at=vote.answered_at,
                    prepaid=vote.is_worker,
                )
            for row in connection.execute(_RULINGS, {"keys": list(by_item)}):
                ruling = Vote(row.item, row.person, row.name, row.answer, 0.0, 0, answered_at=row.ruled_at)
                by_item[row.item].ruling = ruling
        return found

    @writes
    def note_used(self, connection: sa.Connection, used: Mapping[str, Vote]) -> None:
        """Note by its key in the ledger each answer that is this vote: from then on it cannot be undone."""
        rows = [{"answer_key": key, "item": vote.item, "person": vote.person} for key, vote in sorted(used.items())]
        insert_new(connection, review_used, rows)

    @reads
    def digests_of(self, connection: sa.Connection, wanted: Collection[int]) -> set[str]:
        """The examples of these questions."""
        found = connection.execute(select(items.c.question).where(items.c.id.in_(list(wanted)))).scalars()
        return {digest for question in found for digest in digests_shown(question)}

    def example(self, digest: str) -> dict[str, Any] | None:
        return self.examples([digest]).get(digest)

    def examples(self, digests: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The contents of examples, by digest. They never change, so the recent ones are cached."""
        cached = self._examples
        missing = [digest for digest in digests if digest not in cached]
        if missing:
            found = self._transactions.read(partial(read_examples, digests=missing))
            cached = ({} if len(cached) > MAX_CACHED_EXAMPLES else cached) | found
            self._examples = cached
        return {digest: cached[digest] for digest in digests if digest in cached}


_FIELDS = (
    "digest",
    "queue",
    "kind",
    "page",
    "votes",
    "patience",
    "priority",
    "deadline",
    "price",
    "hourly",
    "expected",
)


def _row(asked: ReviewQuestion, now: float) -> dict[str, Any]:
    return {
        **{name: getattr(asked, name) for name in _FIELDS},
        "question": dict(asked.question),
        "published": False,
        "state": OPEN if asked.expected is None else CHECK,
        "created_at": now,
    }


def digests_shown(question: Mapping[str, Any]) -> list[str]:
    """All examples that a page with the question shows."""
    return [*digests_in(question), *(digest for digest, _ in question.get(EXEMPLARS, ()))]


def digests_in(question: Mapping[str, Any]) -> list[str]:
    if "example" in question:
        return [question["example"]]
    return [*question["examples"], *question.get("without", ())]


def read_examples(connection: sa.Connection, digests: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for part in chunks(sorted(set(digests))):
        query = select(review_examples).where(review_examples.c.digest.in_(part))
        found.update((row.digest, row.shown) for row in connection.execute(query))
    return found


class Waits(Repository):
    """Which runs wait for which questions."""

    @writes
    def begin(
        self, connection: sa.Connection, run_id: str, wanted: Collection[int], *, suspended: bool = False
    ) -> None:
        """Note the questions that a run waits for, instead of those before."""
        connection.execute(sa.delete(review_waits).where(review_waits.c.run_id == run_id))
        rows = [{"run_id": run_id, "item": item, "suspended": suspended} for item in sorted(set(wanted))]
        insert_new(connection, review_waits, rows)

    @writes
    def end(self, connection: sa.Connection, run_id: str) -> None:
        connection.execute(sa.delete(review_waits).where(review_waits.c.run_id == run_id))

    @reads
    def ready_runs(self, connection: sa.Connection) -> list[str]:
        """Suspended runs that can go on: all their questions are answered or given up."""
        still_open = sa.func.sum(sa.case((_is_open(self._clock()), 1), else_=0))
        query = select(review_waits.c.run_id).join(items, items.c.id == review_waits.c.item)
        grouped = query.where(review_waits.c.suspended).group_by(review_waits.c.run_id).having(still_open == 0)
        return list(connection.execute(grouped).scalars())

    @reads
    def open_count(self, connection: sa.Connection, wanted: Sequence[int]) -> int:
        """How many of these questions still need votes."""
        is_open = _is_open(self._clock())
        queries = [select(sa.func.count()).where(items.c.id.in_(part), is_open) for part in chunks(wanted)]
        return sum(connection.execute(query).scalar_one() for query in queries)

    @reads
    def seconds_since_answer(self, connection: sa.Connection, wanted: Sequence[int]) -> float:
        """Since the latest vote on one of these questions that was not given by a clock that was ahead."""
        now = self._clock()
        latest = select(sa.func.max(votes.c.answered_at)).where(votes.c.state == GIVEN, votes.c.answered_at <= now + 1)
        queries = [latest.where(votes.c.item.in_(part)) for part in chunks(wanted)]
        return now - max((connection.execute(query).scalar() or 0.0 for query in queries), default=0.0)

    @reads
    def run_of(self, connection: sa.Connection, wanted: Collection[int]) -> str | None:
        """The run that waits for these questions, the latest if several do."""
        query = select(review_waits.c.run_id).join(runs, runs.c.run_id == review_waits.c.run_id)
        of_items = query.where(review_waits.c.item.in_(list(wanted)))
        return connection.execute(of_items.order_by(runs.c.started_at.desc()).limit(1)).scalar()


def _is_open(now: float) -> sa.ColumnElement[bool]:
    return sa.and_(items.c.state == OPEN, sa.or_(items.c.deadline.is_(None), items.c.deadline > now))
