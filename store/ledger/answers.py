"""Answers, each kept under its key, and the charges that were paid for them.

An answer is kept for good, unless it was of no use and its question was asked again on purpose: then the new answer
takes its place, the old one moves to `replaced_answers`, and both charges stay booked."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import orjson
from sqlalchemy import BigInteger, Connection, Double, Text, bindparam, func, insert, select, type_coerce, update

from store.errors import StoreError
from store.ledger.books import (
    LOCKED_CHARGES,
    Balance,
    Change,
    Charge,
    Line,
    book,
    book_sums,
    count_answers,
    count_computed,
    count_uses,
    locked_balance,
)
from store.ledger.runs import RunRepository
from store.packed.answers import (
    count_packed,
    lookup_packed,
    note_packed_uses,
    packed_members,
    packed_scopes,
    packed_times,
)
from store.packed.content import AnswerRecord
from store.packed.keys import find_packed
from store.packed.settle import PreparedPack, prepare_packs, settle_packed
from store.schema import (
    PAID,
    answer_checksum,
    answers,
    charges,
    identities,
    json_text,
    json_value,
    replaced_answers,
    runs,
    scopes,
    storable,
    uses,
)
from store.sql import insert_new, json_array, or_nothing, values_table
from store.transactions import reads, writes

_COUNTED_BY_PACK = ("requests", "input_tokens", "output_tokens")
_key_and_fence = attrgetter("key", "fence")
_COUNT = select(func.count()).select_from(answers)
_LOOKUP = select(answers.c.key, answers.c.answer).where(answers.c.key.in_(json_array()))
_TEXTS = select(answers.c.key, type_coerce(answers.c.answer, Text)).where(answers.c.key.in_(json_array()))
_NEW_ROWS = values_table(
    key=Text, identity=BigInteger, kind=Text, question=Text, answer=Text, cost=BigInteger, checksum=Text
)
_NEW_ANSWERS = select(*_NEW_ROWS.c, bindparam("at", type_=Double)).where(_NEW_ROWS.c.identity > 0)
_INSERT = (
    insert(answers).from_select([*_NEW_ROWS.c.keys(), "answered_at"], or_nothing(_NEW_ANSWERS)).returning(answers.c.key)
)
_SETTLED = values_table(
    key=Text,
    fence=BigInteger,
    oracle=Text,
    kind=Text,
    cost=BigInteger,
    requests=BigInteger,
    input_tokens=BigInteger,
    output_tokens=BigInteger,
    seconds=Double,
    in_doubt=BigInteger,
)
_ROW_NAMES, _SETTLED_NAMES = _NEW_ROWS.c.keys(), _SETTLED.c.keys()
_SETTLE = (
    update(charges)
    .where(charges.c.key == _SETTLED.c.key, charges.c.fence == _SETTLED.c.fence)
    .values({name: column for name, column in _SETTLED.c.items() if name not in ("key", "fence", "cost")})
    # One that was settled by hand while it was unknown stays booked beside the late answer.
    .values(state=PAID, settled_at=bindparam("at", type_=Double), cost=charges.c.cost + _SETTLED.c.cost)
)
_OLDER = (
    select(answers.c.id, answers.c.key, answers.c.answered_at)
    .where(answers.c.key.in_(json_array()))
    .order_by(answers.c.id)
)
_TO_REPLACE = _OLDER.add_columns(type_coerce(answers.c.question, Text)).with_for_update()
_MOVED = (answers.c.key, answers.c.answer, answers.c.cost, answers.c.answered_at)
_MOVE = insert(replaced_answers).from_select(
    [*(column.name for column in _MOVED), "replaced_at"],
    select(*_MOVED, bindparam("at", type_=Double)).where(answers.c.id == bindparam("of_answer")),
)
_REPLACE = (
    update(answers)
    .where(answers.c.id == bindparam("of_answer"))
    .values(
        answer=bindparam("new_answer", type_=Text),
        cost=bindparam("new_cost"),
        checksum=bindparam("new_checksum"),
        answered_at=bindparam("at", type_=Double),
    )
)
_PAID_IN_SCOPE = (
    select(charges.c.key)
    .join(runs, runs.c.id == charges.c.run)
    .where(charges.c.key.in_(json_array()), charges.c.state == PAID)
    .where(runs.c.scope == bindparam("of_scope", type_=BigInteger))
)
_IDENTITIES = select(identities.c.digest, identities.c.id).where(identities.c.digest.in_(json_array()))
_USED = select(bindparam("of_run", type_=BigInteger), answers.c.id).where(answers.c.key.in_(json_array()))
_USE = insert(uses).from_select(["run", "answer"], or_nothing(_USED.order_by(answers.c.id)))


class StoredAnswers(RunRepository):
    @reads
    def lookup(self, connection: Connection, keys: Collection[str]) -> dict[str, dict[str, Any]]:
        """The answers that are kept, by key."""
        return _lookup(connection, keys)

    @reads
    def member(self, connection: Connection, name: str, keys: Collection[str]) -> dict[str, Any]:
        """One member of each of these answers, at a fifth of the cost of all."""
        found = packed_members(connection, name, keys)
        others = [key for key in keys if key not in found]
        rows = connection.execute(_TEXTS, {"keys": others}).tuples().all() if others else ()
        return found | {key: _member(name, text) for key, text in rows}

    @reads
    def older(self, connection: Connection, keys: Collection[str], than: float) -> set[str]:
        """Those of the keys whose answer was kept before this time."""
        rows = connection.execute(_OLDER, {"keys": list(keys)}).all() if keys else ()
        times = packed_times(connection, find_packed(connection, keys)) | {row.key: row.answered_at for row in rows}
        return {key for key, at in times.items() if at < than}

    @reads
    def paid_by(self, connection: Connection, scope: str, keys: Collection[str]) -> set[str]:
        """Those of the keys whose answer a run of this scope has paid for."""
        number = connection.execute(select(scopes.c.id).where(scopes.c.scope == storable(scope))).scalar()
        packed = packed_scopes(connection, find_packed(connection, keys))
        others = {"keys": [key for key in keys if key not in packed], "of_scope": number}
        paid = set(connection.execute(_PAID_IN_SCOPE, others).scalars()) if others["keys"] else set[str]()
        return paid | {key for key, of_scope in packed.items() if of_scope == number}

    @writes
    def record(
        self, connection: Connection, run_id: str, records: Collection[AnswerRecord]
    ) -> dict[str, dict[str, Any]]:
        """Keep answers, book what they cost and end their claims. Late answers, whose claim was lost, are booked too.

        Returns the kept answer of each question that had been answered before: that is the one to use."""
        run, now = self._runs.find(connection, run_id), self._clock()
        ordered = sorted({_key_and_fence(record): record for record in records}.values(), key=_key_and_fence)
        number_of = _numbered(connection, ordered)
        prepared = prepare_packs(connection, ordered, number_of)
        locked_balance(connection, run.scope)
        packs, repeated, rest = settle_packed(connection, prepared, now)
        _book_packs(connection, packs)
        if (overcharge := max((record.overcharge for record in ordered), default=1.0)) > 1.0:
            raised = {"overcharge": overcharge}
            higher = update(scopes).where(scopes.c.id == run.scope, scopes.c.overcharge < overcharge)
            connection.execute(higher.values(raised))
        return _lookup(connection, [*repeated, *_record_rows(connection, rest, number_of, now)])

    @writes
    def note_uses(self, connection: Connection, run_id: str, keys: Collection[str]) -> None:
        """Note that the run used these answers from the store, without paying for them."""
        run = self._runs.find(connection, run_id)
        locked_balance(connection, run.scope)  # no answer is paid for meanwhile
        found = find_packed(connection, keys)
        totals, new = dict[Line, Counter[str]](), 0
        for record in note_packed_uses(connection, run.run, run.scope, found):
            cached = {"cached_calls": record.calls, "cached_worth": record.worth}
            totals.setdefault((run.run, record.oracle, record.kind), Counter()).update(cached)
            new += record.new
        book_sums(connection, {run.scope: Balance(kept=new)}, totals)
        used = sorted({key for key in keys if key not in found})
        if used:
            count_uses(connection, run.run, run.scope, used)
            connection.execute(_USE, {"of_run": run.run, "keys": used})

    @writes
    def note_computed(self, connection: Connection, run_id: str, oracle: str, labels: int) -> None:
        """Note that the run had so many labels computed free of charge; they are not kept."""
        run = self._runs.find(connection, run_id)
        locked_balance(connection, run.scope)
        count_computed(connection, run.run, storable(oracle), labels)

    @reads
    def count(self, connection: Connection, scope: str | None = None) -> int:
        """How many answers are kept, or how many of them the runs of a scope have paid for or used."""
        if scope is None:
            return connection.execute(_COUNT).scalar_one() + count_packed(connection)
        return connection.execute(select(scopes.c.kept).where(scopes.c.scope == scope)).scalar() or 0


def _lookup(connection: Connection, keys: Collection[str]) -> dict[str, dict[str, Any]]:
    found = lookup_packed(connection, keys)
    others = [key for key in keys if key not in found]
    return found | dict(connection.execute(_LOOKUP, {"keys": others}).tuples().all()) if others else found


def _book_packs(connection: Connection, packs: Iterable[PreparedPack]) -> None:
    """As many paid calls as there are answers, and a reservation less."""
    balances: dict[int, Balance] = {}
    totals: dict[Line, Counter[str]] = {}
    for pack in packs:
        claim, records, count = pack.claim, pack.records, len(pack.records)
        cost = sum(record.cost for record in records)
        change = Balance(spent=cost, reserved=-pack.reserved, kept=count)
        balances[claim.scope] = balances.get(claim.scope, Balance()) + change
        sums = {name: sum(getattr(record, name) for record in records) for name in _COUNTED_BY_PACK}
        line = (claim.run, storable(records[0].oracle), storable(records[0].kind))
        totals.setdefault(line, Counter()).update({"paid_calls": count, "paid": cost, **sums})
    book_sums(connection, balances, totals)


def _record_rows(
    connection: Connection, ordered: Sequence[AnswerRecord], number_of: Callable[[AnswerRecord], int], now: float
) -> list[str]:
    """Keep and book answers in rows of their own; returns the keys of those that had been answered before."""
    if not ordered:
        return []
    charged = connection.execute(LOCKED_CHARGES, {"keys": sorted({record.key for record in ordered})})
    known = {(charge.key, charge.fence): charge for charge in map(Charge._make, charged)}
    changes = _settle(connection, ordered, known, now)
    rows = {record.key: _answer_row(record, number_of(record)) for record in reversed(ordered)}
    values = {"rows": [rows[key] for key in sorted(rows)], "at": now}
    first = set(connection.execute(_INSERT, values).scalars().all())
    before = [key for key in rows if key not in first]
    count_answers(connection, changes, known.values(), before)
    replaced = _replace(connection, [record for record in ordered if record.key not in first], now)
    return [key for key in before if key not in replaced]


def _member(name: str, text: str) -> Any:
    try:
        answer = orjson.loads(text)
    except ValueError:  # such as lone surrogates
        answer = json_value(text)
    return answer.get(name) if isinstance(answer, dict) else None


def _settle(
    connection: Connection, records: Sequence[AnswerRecord], known: Mapping[tuple[str, int], Charge], now: float
) -> list[Change]:
    """Turn each claim into a paid charge, whatever its state is by now; one that is paid already is left alone."""
    settled, changes = [], []
    for record in records:
        before = known.get((record.key, record.fence))
        if before is None:
            raise StoreError(
                f"answer {record.key} was never claimed under fence {record.fence}: claim a question before asking it"
            )
        if before.state != PAID:
            texts = {"oracle": storable(record.oracle), "kind": storable(record.kind)}
            settled.append([texts[name] if name in texts else getattr(record, name) for name in _SETTLED_NAMES])
            changes.append((before, _paid(before, record)))
    if settled:
        connection.execute(_SETTLE, {"rows": settled, "at": now})
        book(connection, changes)
    return changes


def _paid(before: Charge, record: AnswerRecord) -> Charge:
    return before._replace(
        state=PAID,
        oracle=storable(record.oracle),
        kind=storable(record.kind),
        in_doubt=record.in_doubt,
        cost=before.cost + record.cost,  # more than the answer's where some was settled by hand before
        requests=record.requests,
        input_tokens=record.input_tokens,
        output_tokens=record.output_tokens,
    )


def _replace(connection: Connection, records: Sequence[AnswerRecord], now: float) -> set[str]:
    """Replace the answers that are older than their record allows; returns their keys. The question stays, in the very
    text that it is stored in."""
    limits = {record.key: (record, record.replaces) for record in records if record.replaces is not None}
    older = connection.execute(_TO_REPLACE, {"keys": sorted(limits)}).all() if limits else []
    replaced = set()
    for number, key, answered_at, question in older:
        record, limit = limits[key]
        if answered_at < limit:
            answer = json_text(dict(record.answer))
            new = {"new_answer": answer, "new_cost": record.cost}
            of = {"of_answer": number, "at": now}
            connection.execute(_MOVE, of)
            connection.execute(_REPLACE, of | new | {"new_checksum": answer_checksum(question, answer, record.cost)})
            replaced.add(key)
    return replaced


def _answer_row(record: AnswerRecord, identity: int) -> list[Any]:
    """In the order of the columns of _NEW_ROWS."""
    question, answer = json_text(dict(record.question)), json_text(dict(record.answer))
    values = {
        "key": record.key,
        "identity": identity,
        "kind": storable(record.kind),
        "question": question,
        "answer": answer,
        "cost": record.cost,
        "checksum": answer_checksum(question, answer, record.cost),
    }
    return [values[name] for name in _ROW_NAMES]


def _numbered(connection: Connection, records: Sequence[AnswerRecord]) -> Callable[[AnswerRecord], int]:
    """Tells the row of a record's identity. The records of a batch mostly share one object, which is digested once."""
    distinct = {(record.oracle, id(record.identity)): record for record in records}
    digests = {at: identity_digest(record.oracle, record.identity) for at, record in distinct.items()}
    rows = _identity_numbers(connection, {digests[at]: record for at, record in distinct.items()})
    numbers = {at: rows[digest] for at, digest in digests.items()}
    if len(set(numbers.values())) == 1:
        same = next(iter(numbers.values()))
        return lambda _record: same
    return lambda record: numbers[record.oracle, id(record.identity)]


def _identity_numbers(connection: Connection, distinct: Mapping[str, AnswerRecord]) -> dict[str, int]:
    """The rows of the identities, inserted where they are new."""
    wanted = {"keys": sorted(distinct)}
    numbers: dict[str, int] = dict(connection.execute(_IDENTITIES, wanted).tuples().all())
    if len(numbers) < len(distinct):
        rows = [
            {"digest": digest, "oracle": record.oracle, "identity": dict(record.identity)}
            for digest, record in sorted(distinct.items())
            if digest not in numbers
        ]
        insert_new(connection, identities, rows)
        numbers = dict(connection.execute(_IDENTITIES, wanted).tuples().all())
    return numbers


KEY_LENGTH, PREFIX_LENGTH = 64, 16  # hexadecimal digits in all, and those that digest the example


def identity_digest(oracle: str, identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([storable(oracle), dict(identity)], sort_keys=True).encode()).hexdigest()


def ledger_key(content: Mapping[str, Any], digest: str) -> str:
    """The key of a question with this content; `digest` is the SHA-256 of its oracle and content in hexadecimal."""
    return key_prefix(content) + digest[: KEY_LENGTH - PREFIX_LENGTH]


def key_prefix(content: Mapping[str, Any]) -> str:
    """A digest of the example that is to be labelled, or of the first one that is compared."""
    examples = content.get("example", content.get("examples"))
    return _prefix_of(str(examples[0] if isinstance(examples, list) and examples else examples))


@lru_cache(maxsize=1_024)
def _prefix_of(example: str) -> str:
    """The questions about one example come one after the other."""
    return hashlib.sha256(example.encode("utf-8", "surrogatepass")).hexdigest()[:PREFIX_LENGTH]
