"""All answers of a store with what their keys were computed from, for tests."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, select

from store import Store
from store.schema import answers, identities

_ANSWERS = (
    select(*(column for column in answers.c if column.name != "identity"), identities.c.oracle, identities.c.identity)
    .join(identities, identities.c.id == answers.c.identity)
    .order_by(answers.c.id)
)


def every_answer(store: Store) -> list[Row[Any]]:
    return store.transactions.read(lambda connection: list(connection.execute(_ANSWERS).all()))
