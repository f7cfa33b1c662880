"""Questions that wait for people, each with its examples and the votes it needs, and the runs that wait for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, delete, func, insert, or_, select, update

from twothirds.store.engine import KEYS, Clock, Repository, Transactions, analyze, chunks, insert_new, reads, writes
from twothirds.store.review.people import people
from twothirds.store.schema import review_examples, review_items, review_votes, review_waits, runs

OPEN, DONE, ABANDONED, CHECK = "open", "done", "given up", "check"  # states of a question
LEASED, EXPIRED, HELD, GIVEN = "leased", "expired", "held", "given"  # states of a vote
VOTE, CHECKED, REPEAT, RULING = "vote", "check", "repeat", "ruling"  # purposes of a vote
items, votes = review_items, review_votes
DECIDES = votes.c.purpose.in_((VOTE, RULING))  # a ruling outranks the votes
MANY = 500
MAX_CACHED_EXAMPLES = 10_000
# The columns that are needed to ask a person.
ASKED = tuple(items.c[name] for name in ("id", "page", "votes", "digest", "kind", "question", "queue"))


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
    id: int
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
        or_(items.c.votes < bindparam("wanted"), items.c.priority < bindparam("urgent")),
    )
    .values(
        votes=case((items.c.votes < bindparam("wanted"), bindparam("wanted")), else_=items.c.votes),
        priority=case((items.c.priority < bindparam("urgent"), bindparam("urgent")), else_=items.c.priority),
        state=case(((items.c.state == DONE) & (items.c.given < bindparam("wanted")), OPEN), else_=items.c.state),
    )
)
_STANDING = select(items.c.digest, items.c.id, items.c.votes, items.c.state, items.c.deadline).where(
    items.c.digest.in_(KEYS)
)


class Items(Repository):
    def __init__(self, transactions: Transactions, clock: Clock) -> None:
        super().__init__(transactions, clock)
        self._examples: dict[str, dict[str, Any]] = {}

    @writes
    def enqueue(self, connection: Connection, questions: Sequence[ReviewQuestion]) -> None:
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

    @reads
    def standing(self, connection: Connection, digests: Sequence[str]) -> dict[str, Standing]:
        """How far each of these questions is; those that were never enqueued are missing."""
        found: dict[str, Standing] = {}
        now = self._clock()
        for part in chunks(digests):
            by_item = {}
            for row in connection.execute(_STANDING, {"keys": part}).all():
                is_late = row.deadline is not None and row.deadline <= now and row.state == OPEN
                by_item[row.id] = found[row.digest] = Standing(row.id, row.votes, row.state == ABANDONED or is_late)
            query = (
                select(votes, people.c.name, people.c.is_worker)
                .join(people, people.c.id == votes.c.person)
                .where(votes.c.item.in_(list(by_item)), votes.c.state == GIVEN, DECIDES)
            )
            for vote in connection.execute(query):
                given = Vote(vote.id, vote.name, vote.answer, vote.seconds, vote.cost, vote.answered_at, vote.is_worker)
                if vote.purpose == RULING:
                    by_item[vote.item].ruling = given
                else:
                    by_item[vote.item].given[vote.slot] = given
        return found

    @writes
    def note_keys(self, connection: Connection, keys: Mapping[int, str]) -> None:
        """Note under which key of the ledger each vote is recorded: from then on it cannot be undone."""
        rows = [{"of": vote, "under": key} for vote, key in sorted(keys.items())]
        if rows:
            noted = update(votes).where(votes.c.id == bindparam("of")).values(answer_key=bindparam("under"))
            connection.execute(noted, rows)

    @reads
    def digests_of(self, connection: Connection, wanted: Collection[int]) -> set[str]:
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


def _row(asked: ReviewQuestion, now: float) -> dict[str, Any]:
    return {
        **{name: getattr(asked, name) for name in ("digest", "queue", "kind", "page", "votes", "patience", "priority")},
        **{name: getattr(asked, name) for name in ("deadline", "price", "hourly", "expected")},
        **dict.fromkeys(("filled", "given", "skipped", "published"), 0),
        "question": dict(asked.question),
        "state": OPEN if asked.expected is None else CHECK,
        "created_at": now,
    }


DATASET = "dataset"  # of a question: the name of the data set that its examples are from
EXEMPLARS = "exemplars"  # of a label: digests of examples that are shown beside it, and whether each has the feature


def digests_shown(question: Mapping[str, Any]) -> list[str]:
    """All examples that a page with the question shows."""
    return [*digests_in(question), *(digest for digest, _ in question.get(EXEMPLARS, ()))]


def digests_in(question: Mapping[str, Any]) -> list[str]:
    if "example" in question:
        return [question["example"]]
    return [*question["examples"], *question.get("without", ())]


def read_examples(connection: Connection, digests: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for part in chunks(sorted(set(digests))):
        query = select(review_examples).where(review_examples.c.digest.in_(part))
        found.update((row.digest, row.shown) for row in connection.execute(query))
    return found


class Waits(Repository):
    """Which runs wait for which questions."""

    @writes
    def begin(self, connection: Connection, run_id: str, wanted: Collection[int], *, suspended: bool = False) -> None:
        """Note the questions that a run waits for, instead of those before."""
        connection.execute(delete(review_waits).where(review_waits.c.run_id == run_id))
        rows = [{"run_id": run_id, "item": item, "suspended": int(suspended)} for item in sorted(set(wanted))]
        if rows:
            connection.execute(insert(review_waits), rows)

    @writes
    def end(self, connection: Connection, run_id: str) -> None:
        connection.execute(delete(review_waits).where(review_waits.c.run_id == run_id))

    @reads
    def ready_runs(self, connection: Connection) -> list[str]:
        """Suspended runs that can go on: all their questions are answered or given up."""
        query = (
            select(review_waits.c.run_id)
            .join(items, items.c.id == review_waits.c.item)
            .where(review_waits.c.suspended == 1)
            .group_by(review_waits.c.run_id)
            .having(func.sum(case((_is_open(self._clock()), 1), else_=0)) == 0)
        )
        return list(connection.execute(query).scalars())

    @reads
    def open_count(self, connection: Connection, wanted: Sequence[int]) -> int:
        """How many of these questions still need votes."""
        is_open = _is_open(self._clock())
        queries = [select(func.count()).where(items.c.id.in_(part), is_open) for part in chunks(wanted)]
        return sum(connection.execute(query).scalar_one() for query in queries)

    @reads
    def seconds_since_answer(self, connection: Connection, wanted: Sequence[int]) -> float:
        """Since the latest vote on one of these questions that was not given by a clock that was ahead."""
        now = self._clock()
        latest = select(func.max(votes.c.answered_at)).where(votes.c.state == GIVEN, votes.c.answered_at <= now + 1)
        queries = [latest.where(votes.c.item.in_(part)) for part in chunks(wanted)]
        return now - max((connection.execute(query).scalar() or 0.0 for query in queries), default=0.0)

    @reads
    def run_of(self, connection: Connection, wanted: Collection[int]) -> str | None:
        """The run that waits for these questions, the latest if several do."""
        query = (
            select(review_waits.c.run_id)
            .join(runs, runs.c.run_id == review_waits.c.run_id)
            .where(review_waits.c.item.in_(list(wanted)))
            .order_by(runs.c.started_at.desc())
            .limit(1)
        )
        return connection.execute(query).scalar()


def _is_open(now: float) -> ColumnElement[bool]:
    return and_(items.c.state == OPEN, or_(items.c.deadline.is_(None), items.c.deadline > now))
