"""All answers of a store with what their keys were computed from, and all charges, for tests."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sqlalchemy import select

from store import Store
from store.packed.claims import all_packed_claims
from store.schema import CLAIMED, PAID, SENT, charges


class KeptAnswer(NamedTuple):
    key: str
    kind: str
    oracle: str
    identity: Any
    question: Any
    answer: Any
    cost: int


def every_answer(store: Store) -> list[KeptAnswer]:
    """Packed or not."""
    found = [one for page in store.check.answers() for one in page]
    return [
        KeptAnswer(
            one.key,
            one.kind,
            one.oracle,
            json.loads(one.identity),
            json.loads(one.question),
            json.loads(one.answer),
            one.cost,
        )
        for one in found
    ]


class BookedCharge(NamedTuple):
    key: str
    kind: str
    state: str
    cost: int


def every_charge(store: Store) -> list[BookedCharge]:
    """Packed or not."""
    found = [
        BookedCharge(one.key, one.kind, PAID, one.cost) for page in store.check.answers() for one in page if not one.id
    ]
    with store.engine.connect() as connection:
        rows = connection.execute(select(charges.c.key, charges.c.kind, charges.c.state, charges.c.cost))
        found += [BookedCharge(*row) for row in rows]
        for claim in all_packed_claims(connection):
            states = [CLAIMED if doubt is None else SENT for doubt in claim.in_doubt]
            found += [BookedCharge(key, claim.kind, state, 0) for key, state in zip(claim.keys, states, strict=True)]
    return found
