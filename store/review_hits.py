"""Tasks that are published elsewhere (Mechanical Turk): which questions each holds and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from store.inserting import insert_new
from store.review_workers import refuse_unconfirmed
from store.schema import review_hits, review_items, review_waits, runs

PLANNED, POSTED, COLLECTED = "planned", "posted", "collected"


@dataclass(frozen=True, slots=True)
class Hit:
    token: str
    queue: str
    items: tuple[int, ...]
    terms: Mapping[str, Any]
    run_id: str
    hit_id: str | None = None
    state: str = PLANNED
    created_at: float = 0.0


def plan(connection: Connection, hits: Sequence[Hit], now: float) -> None:
    """Write down what is about to be posted, before it is."""
    names = ("token", "queue", "run_id", "hit_id", "state")
    rows = [
        {**{name: getattr(hit, name) for name in names}, "items": list(hit.items), "terms": dict(hit.terms)}
        for hit in hits
    ]
    insert_new(connection, review_hits, [row | {"created_at": now} for row in rows])
    publish(connection, [item for hit in hits for item in hit.items], published=True)


def publish(connection: Connection, wanted: Sequence[int], *, published: bool) -> None:
    """Take questions from the page of invited people, or give them back to it."""
    chosen = review_items.c.id.in_(list(wanted))
    connection.execute(update(review_items).where(chosen).values(published=int(published)))


def asking_run(connection: Connection, wanted: Sequence[int]) -> str | None:
    """The run that waits for these questions, the latest where several do."""
    query = (
        select(review_waits.c.run_id)
        .join(runs, runs.c.run_id == review_waits.c.run_id)
        .where(review_waits.c.item.in_(list(wanted)))
        .order_by(runs.c.started_at.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def every(connection: Connection) -> list[Hit]:
    rows = connection.execute(select(review_hits).order_by(review_hits.c.created_at, review_hits.c.token)).mappings()
    return [Hit(**{**row, "items": tuple(row["items"])}) for row in rows]


def one(connection: Connection, token: str) -> Hit | None:
    row = connection.execute(select(review_hits).where(review_hits.c.token == token)).mappings().one_or_none()
    return None if row is None else Hit(**{**row, "items": tuple(row["items"])})


def move(connection: Connection, token: str, state: str, hit_id: str | None) -> None:
    values = {"state": state} | ({"hit_id": hit_id} if hit_id else {})
    connection.execute(update(review_hits).where(review_hits.c.token == token).values(**values))
    if state == COLLECTED and (hit := one(connection, token)) is not None:
        refuse_unconfirmed(connection, hit.items)
        publish(connection, hit.items, published=False)
