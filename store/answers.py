"""Answers, each kept once and for good, and what was charged for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, bindparam, literal, select, update

from store.errors import StoreError
from store.inserting import KEYS, chunks, insert_new, insert_new_returning, insert_or_nothing
from store.ledger import Balance, RunRow, locked_balance, move
from store.schema import LIVE, PAID, UNKNOWN, answers, charges, identities, runs, uses


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """An answer under the fence with which its question was claimed. `key` digests `identity` and `question`."""

    key: str
    fence: int
    oracle: str
    kind: str
    question: Mapping[str, Any]
    answer: Mapping[str, Any]
    cost: int
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    identity: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer with all that its key was computed from."""

    key: str
    oracle: str
    kind: str
    identity: dict[str, Any]
    question: dict[str, Any]
    answer: dict[str, Any]
    cost: int
    answered_at: float


_LOOKUP = select(answers.c.key, answers.c.answer).where(answers.c.key.in_(KEYS))


def lookup(connection: Connection, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for part in chunks(keys):
        found.update(tuple(row) for row in connection.execute(_LOOKUP, {"keys": part}))
    return found


def record(
    connection: Connection, run: RunRow, records: Sequence[AnswerRecord], now: float
) -> dict[str, dict[str, Any]]:
    """Book every charge, keep every answer that is the first to its question, and end the claims that are still open.

    Returns, for questions that had been answered before, the answer that is kept."""
    records = sorted({(one.key, one.fence): one for one in records}.values(), key=lambda one: (one.key, one.fence))
    locked_balance(connection, run.scope)
    _book(connection, records, now)
    digests = _Digests()
    numbers = _identity_numbers(connection, {digests.of(one): one for one in records})
    rows = {one.key: _answer_row(one, numbers[digests.of(one)], now) for one in reversed(records)}
    first = insert_new_returning(connection, answers, [rows[key] for key in sorted(rows)], answers.c.key)
    return lookup(connection, [key for key in rows if key not in first])


_SETTLE = (
    update(charges)
    .where(charges.c.key == bindparam("of_key"), charges.c.fence == bindparam("of_fence"))
    .values({name: bindparam(f"now_{name}") for name in ("state", "oracle", "kind", "cost", "settled_at")})
    .values({name: bindparam(f"now_{name}") for name in ("requests", "input_tokens", "output_tokens", "seconds")})
)


def _book(connection: Connection, records: Sequence[AnswerRecord], now: float) -> None:
    """Turn each claim into what was paid, whatever became of it meanwhile; one that was paid already is left alone."""
    found = _charges_of(connection, records)
    settled, changes = [], dict[int, Balance]()
    for one in records:
        row = found.get((one.key, one.fence))
        if row is None:
            raise StoreError(
                f"answer {one.key} was never claimed under fence {one.fence}: claim a question before asking it"
            )
        if row.state == PAID:
            continue
        settled.append(_settlement(one, now))
        undone = Balance(-row.reserved if row.state == UNKNOWN else 0, -row.reserved if row.state in LIVE else 0)
        changes[row.scope] = changes.get(row.scope, Balance()) + undone + Balance(one.cost, 0)
    if settled:
        connection.execute(_SETTLE, settled)
        move(connection, changes)


_CHARGES = (
    select(charges.c.key, charges.c.fence, charges.c.state, charges.c.reserved, runs.c.scope)
    .join(runs, runs.c.id == charges.c.run)
    .where(charges.c.key.in_(KEYS))
    .order_by(charges.c.key, charges.c.fence)
    .with_for_update(of=charges)
)


def _charges_of(connection: Connection, records: Sequence[AnswerRecord]) -> dict[tuple[str, int], Row[Any]]:
    found: dict[tuple[str, int], Row[Any]] = {}
    for part in chunks(sorted({one.key for one in records})):
        found.update(((row.key, row.fence), row) for row in connection.execute(_CHARGES, {"keys": part}))
    return found


def _settlement(one: AnswerRecord, now: float) -> dict[str, Any]:
    return {
        "of_key": one.key,
        "of_fence": one.fence,
        "now_state": PAID,
        "now_oracle": one.oracle,
        "now_kind": one.kind,
        "now_cost": one.cost,
        "now_settled_at": now,
        "now_requests": one.requests,
        "now_input_tokens": one.input_tokens,
        "now_output_tokens": one.output_tokens,
        "now_seconds": one.seconds,
    }


def _answer_row(one: AnswerRecord, identity: int, now: float) -> dict[str, Any]:
    return {
        "key": one.key,
        "identity": identity,
        "kind": one.kind,
        "question": dict(one.question),
        "answer": dict(one.answer),
        "cost": one.cost,
        "answered_at": now,
    }


class _Digests:
    """Digests of identities. The records of a batch mostly share one object, which is digested once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], str] = {}

    def of(self, one: AnswerRecord) -> str:
        at = (one.oracle, id(one.identity))
        if at not in self._known:
            text = json.dumps([one.oracle, dict(one.identity)], sort_keys=True)
            self._known[at] = hashlib.sha256(text.encode()).hexdigest()
        return self._known[at]


_IDENTITIES = select(identities.c.digest, identities.c.id).where(identities.c.digest.in_(KEYS))


def _identity_numbers(connection: Connection, distinct: Mapping[str, AnswerRecord]) -> dict[str, int]:
    """The rows of who answered, entered where they are new."""
    wanted = {"keys": sorted(distinct)}
    numbers = {row.digest: row.id for row in connection.execute(_IDENTITIES, wanted)}
    if len(numbers) < len(distinct):
        rows = [
            {"digest": digest, "oracle": one.oracle, "identity": dict(one.identity)}
            for digest, one in sorted(distinct.items())
            if digest not in numbers
        ]
        insert_new(connection, identities, rows)
        numbers = {row.digest: row.id for row in connection.execute(_IDENTITIES, wanted)}
    return numbers


def note_uses(connection: Connection, run: RunRow, keys: Iterable[str]) -> None:
    """Note that the run took these answers from the store."""
    for part in chunks(sorted(set(keys))):
        taken = select(literal(run.run), answers.c.id).where(answers.c.key.in_(part)).order_by(answers.c.id)
        connection.execute(insert_or_nothing(uses).from_select(["run", "answer"], taken))


def kept_answers(connection: Connection, after: int, limit: int) -> tuple[list[KeptAnswer], int]:
    """The next answers in the order in which they were kept, and where to go on."""
    query = (
        select(answers, identities.c.oracle, identities.c.identity.label("asked"))
        .join(identities, identities.c.id == answers.c.identity)
        .where(answers.c.id > after)
        .order_by(answers.c.id)
        .limit(limit)
    )
    rows = connection.execute(query).all()
    kept = [
        KeptAnswer(row.key, row.oracle, row.kind, row.asked, row.question, row.answer, row.cost, row.answered_at)
        for row in rows
    ]
    return kept, rows[-1].id if rows else after
