"""Stores with many answers, made by the calls with which a run makes them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sqlalchemy import text

from store import Store
from tests.support.store_steps import SCOPE, begin, claim, record

PAYER, USER = "run-1", "run-2"
PER_EXAMPLE = 20
BATCH = 8_000


def keys_of(numbers: Sequence[int]) -> list[str]:
    """Those of one example are neighbours, as real ones are."""
    digests = [(number // PER_EXAMPLE, number) for number in numbers]
    return ["".join(hashlib.sha256(str(one).encode()).hexdigest()[:32] for one in pair) for pair in digests]


def fill(store: Store, answers: int) -> None:
    """One run has paid for so many answers; a second one of the same scope has used them all."""
    begin(store, PAYER)
    begin(store, USER)
    for start in range(0, answers, BATCH):
        keys = keys_of(range(start, min(start + BATCH, answers)))
        granted = claim(store, keys, run_id=PAYER, price=7, sending=len(keys)).granted
        store.answers.record(PAYER, [record(key, fence, cost=7) for key, fence in granted.items()])
        store.answers.note_uses(USER, keys)
    if store.engine.dialect.name == "postgresql":  # as autovacuum does a little later
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
    assert store.answers.count(SCOPE) == answers
