"""Which runs wait for which questions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, and_, case, delete, func, insert, or_, select

from store.review.items import GIVEN, OPEN, items, votes
from store.schema import review_waits, runs
from store.sql import chunks
from store.transactions import Repository, reads, writes


class Waits(Repository):
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
