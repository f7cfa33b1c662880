"""Tasks that are published elsewhere (Mechanical Turk): which questions each holds and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from store.inserting import insert_new
from store.schema import review_hits

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


def every(connection: Connection) -> list[Hit]:
    rows = connection.execute(select(review_hits).order_by(review_hits.c.created_at, review_hits.c.token)).mappings()
    return [Hit(**{**row, "items": tuple(row["items"])}) for row in rows]


def one(connection: Connection, token: str) -> Hit | None:
    row = connection.execute(select(review_hits).where(review_hits.c.token == token)).mappings().one_or_none()
    return None if row is None else Hit(**{**row, "items": tuple(row["items"])})


def move(connection: Connection, token: str, state: str, hit_id: str | None) -> None:
    values = {"state": state} | ({"hit_id": hit_id} if hit_id else {})
    connection.execute(update(review_hits).where(review_hits.c.token == token).values(**values))
