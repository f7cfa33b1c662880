"""Answers, each kept once and for good, and what was charged for them.

The names under which answers are kept: who was asked and what, and nothing else.

A key is a digest, but it begins with its example: questions about one example are neighbours in the indexes, so that a
batch of labels writes a page for each example and not one for each label, however large the store has become."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BigInteger, Connection, Double, Text, bindparam, select, update

from store.errors import StoreError
from store.ledger.runs import Balance, RunRow, locked_balance, move
from store.schema import (
    LIVE,
    PAID,
    UNKNOWN,
    answer_checksum,
    answers,
    charges,
    identities,
    json_text,
    runs,
    storable,
    uses,
)
from store.sql import KEYS, given, insert_new, insert_or_nothing, listed


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


_LOOKUP = select(answers.c.key, answers.c.answer).where(answers.c.key.in_(listed()))


def lookup(connection: Connection, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    return dict(connection.execute(_LOOKUP, {"keys": list(keys)}).tuples().all()) if keys else {}


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
    rows = {one.key: _answer_row(one, numbers[digests.of(one)]) for one in reversed(records)}
    values = {"rows": [rows[key] for key in sorted(rows)], "at": now}
    first = set(connection.execute(_KEEP, values).scalars().all())
    return lookup(connection, [key for key in rows if key not in first])


_KEPT = given(key=Text, identity=BigInteger, kind=Text, question=Text, answer=Text, cost=BigInteger, checksum=Text)
_KEEP = (
    insert_or_nothing(answers)
    .from_select(
        [*_KEPT.c.keys(), "answered_at"],
        select(*_KEPT.c, bindparam("at", type_=Double)).where(_KEPT.c.identity > 0),
    )
    .returning(answers.c.key)
)
_SETTLED = given(
    key=Text,
    fence=BigInteger,
    oracle=Text,
    kind=Text,
    cost=BigInteger,
    requests=BigInteger,
    input_tokens=BigInteger,
    output_tokens=BigInteger,
    seconds=Double,
)
_SETTLE = (
    update(charges)
    .where(charges.c.key == _SETTLED.c.key, charges.c.fence == _SETTLED.c.fence)
    .values({name: column for name, column in _SETTLED.c.items() if name not in ("key", "fence")})
    .values(state=PAID, settled_at=bindparam("at", type_=Double))
)


def _book(connection: Connection, records: Sequence[AnswerRecord], now: float) -> None:
    """Turn each claim into what was paid, whatever became of it meanwhile; one that was paid already is left alone."""
    found = _charges_of(connection, records)
    settled, changes = [], dict[int, Balance]()
    for one in records:
        before = found.get((one.key, one.fence))
        if before is None:
            raise StoreError(
                f"answer {one.key} was never claimed under fence {one.fence}: claim a question before asking it"
            )
        state, reserved, scope = before
        if state == PAID:
            continue
        settled.append(_settlement(one))
        spent = one.cost - (reserved if state == UNKNOWN else 0)
        changes[scope] = changes.get(scope, Balance()) + Balance(spent, -reserved if state in LIVE else 0)
    if settled:
        connection.execute(_SETTLE, {"rows": settled, "at": now})
        move(connection, changes)


_CHARGES = (
    select(charges.c.key, charges.c.fence, charges.c.state, charges.c.reserved, runs.c.scope)
    .join(runs, runs.c.id == charges.c.run)
    .where(charges.c.key.in_(listed()))
    .order_by(charges.c.key, charges.c.fence)
    .with_for_update(of=charges)
)


def _charges_of(connection: Connection, records: Sequence[AnswerRecord]) -> dict[tuple[str, int], tuple[str, int, int]]:
    """State, reservation and scope of each charge of these questions."""
    rows = connection.execute(_CHARGES, {"keys": sorted({one.key for one in records})}).all()
    return {(key, fence): (state, reserved, scope) for key, fence, state, reserved, scope in rows}


def _settlement(one: AnswerRecord) -> tuple[Any, ...]:
    measured = (one.requests, one.input_tokens, one.output_tokens, one.seconds)
    return (one.key, one.fence, storable(one.oracle), storable(one.kind), one.cost, *measured)


def _answer_row(one: AnswerRecord, identity: int) -> tuple[Any, ...]:
    kept = (json_text(dict(one.question)), json_text(dict(one.answer)))
    return (one.key, identity, storable(one.kind), *kept, one.cost, answer_checksum(*kept, one.cost))


class _Digests:
    """Digests of identities. The records of a batch mostly share one object, which is digested once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], str] = {}

    def of(self, one: AnswerRecord) -> str:
        at = (one.oracle, id(one.identity))
        if at not in self._known:
            self._known[at] = identity_digest(one.oracle, one.identity)
        return self._known[at]


def identity_digest(oracle: str, identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([storable(oracle), dict(identity)], sort_keys=True).encode()).hexdigest()


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


_USED = select(bindparam("of_run", type_=BigInteger), answers.c.id).where(answers.c.key.in_(listed()))
_USE = insert_or_nothing(uses).from_select(["run", "answer"], _USED.order_by(answers.c.id))


def note_uses(connection: Connection, run: RunRow, keys: Iterable[str]) -> None:
    """Note that the run took these answers from the store."""
    connection.execute(_USE, {"of_run": run.run, "keys": sorted(set(keys))})


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


LENGTH, PLACE = 64, 16  # hexadecimal digits in all, and those that tell the example


def placed(content: Mapping[str, Any], digest: str) -> str:
    """The key of a question with this content, of whose oracle and content this is the SHA-256 in hexadecimal."""
    return place_of(content) + digest[: LENGTH - PLACE]


def place_of(content: Mapping[str, Any]) -> str:
    """Where the questions about an example lie: the one to be labelled, or the first of those compared."""
    shown = content.get("example", content.get("examples"))
    first = shown[0] if isinstance(shown, list) and shown else shown
    return hashlib.sha256(str(first).encode("utf-8", "surrogatepass")).hexdigest()[:PLACE]
