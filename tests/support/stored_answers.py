"""All answers and all requests of a store, for tests."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sqlalchemy import select

from twothirds.models.keys import stored_key
from twothirds.store import Store
from twothirds.store.content import split_keys
from twothirds.store.schema import requests


class KeptAnswer(NamedTuple):
    key: str
    kind: str
    oracle: str
    identity: Any
    question: Any
    answer: Any


def every_answer(store: Store) -> list[KeptAnswer]:
    found = []
    for page in store.check.answers():
        for request in page:
            identity = json.loads(request.identity)
            assert request.entries is not None
            found += [
                KeptAnswer(stored_key(identity, entry[0]), request.kind, request.oracle, identity, *entry)
                for entry in request.entries
                if entry is not None
            ]
    return found


class LedgerRequest(NamedTuple):
    id: int
    kind: str
    state: str
    keys: list[str]  # while it is open
    questions: int
    answered: int
    booked: int
    in_doubt: int
    cost: int


def every_request(store: Store) -> list[LedgerRequest]:
    columns = [requests.c[name] for name in LedgerRequest._fields]
    with store.engine.connect() as connection:
        rows = connection.execute(select(*columns).order_by(requests.c.id)).mappings().all()
    return [LedgerRequest(**{**row, "keys": split_keys(row["keys"] or b"")}) for row in rows]


def dropped_answers(store: Store) -> list[dict[str, Any]]:
    """Answers that are in the books and no longer count: late, withdrawn or asked again."""
    found = []
    for page in store.check.answers():
        for request in page:
            identity, entries = json.loads(request.identity), request.entries or []
            keys = {place: stored_key(identity, entry[0]) for place, entry in enumerate(entries) if entry is not None}
            leads = store.requests.positions(list(keys.values()))
            found += [
                dict(entries[place][1])  # type: ignore[index]
                for place, key in keys.items()
                if leads.get(key) != (request.id, place)
            ]
    return found
