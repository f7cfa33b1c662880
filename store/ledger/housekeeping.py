"""How much of what a store keeps, and removing what nobody needs any more: raw replies, and runs that did nothing.

Answers, charges and sums are never touched: results come out the same, and `store check` finds every sum right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import orjson
from sqlalchemy import (
    BigInteger,
    Connection,
    LargeBinary,
    Row,
    Table,
    Text,
    bindparam,
    cast,
    delete,
    exists,
    func,
    select,
    type_coerce,
    update,
)

from store.packed.answers import RAW, contents_of, remove_packed_replies
from store.schema import (
    answer_checksum,
    answers,
    charges,
    cost_totals,
    json_text,
    json_value,
    metadata,
    packed_claims,
    packed_keys,
    packs,
    replaced_answers,
    runs,
    uses,
)
from store.transactions import Repository, reads, writes

PAGE = 1_000  # rows at a time
# What the tables are about, by the beginning of their names; the first that fits.
KINDS = {
    "people": ("review_",),
    "charges": ("charges", "settlements", "cost_totals", "packed_claims"),
    "uses": ("uses", "packed_uses"),
    "answers": ("answers", "replaced_answers", "identities", "pack", "question_forms"),
    "runs": ("runs", "scopes"),
}


class RawReply(NamedTuple):
    """The raw text of an answer, and where it is kept."""

    table: str
    id: int
    key: str
    answered_at: float
    raw: str


class Housekeeping(Repository):
    @reads
    def sizes(self, connection: Connection) -> dict[str, int]:
        """Bytes by kind. Of SQLite what the rows hold, and in `indexes and free space` the rest of the file."""
        tables = _of_postgresql(connection) if connection.dialect.name == "postgresql" else _of_sqlite(connection)
        sizes = dict.fromkeys([*KINDS, "other"], 0)
        for name, size in tables.items():
            kind = next((kind for kind, starts in KINDS.items() if name.startswith(starts)), "other")
            sizes[kind] += size
        if connection.dialect.name == "sqlite":
            pages, page_size = (
                connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("page_count", "page_size")
            )
            sizes["indexes and free space"] = max(int(pages or 0) * int(page_size or 0) - sum(sizes.values()), 0)
        return sizes

    def replies(self, before: float) -> Iterator[list[RawReply]]:
        """Raw replies that are older, in pages."""
        for table in (answers, replaced_answers):
            after = 0
            while rows := self._page(table, before, after):
                yield [reply for row in rows if (reply := _reply(table.name, row)) is not None]
                after = rows[-1].id
        last = "00"
        while last:
            found, last = self._packed_page(before, last)
            if found:
                yield found

    @reads
    def _packed_page(self, connection: Connection, before: float, after: str) -> tuple[list[RawReply], str]:
        """Of answers whose keys follow, and the last key that was read; none at the end."""
        query = (
            select(packed_keys.c.key, packed_keys.c.pack, packed_keys.c.place, packs.c.answered_at)
            .join(packs, packs.c.id == packed_keys.c.pack)
            .where(packed_keys.c.key > bytes.fromhex(after), packs.c.answered_at < before)
        )
        rows = connection.execute(query.order_by(packed_keys.c.key).limit(PAGE)).all()
        contents = contents_of(connection, (row.pack for row in rows))
        found = ((row, contents[row.pack].member(RAW, row.place)) for row in rows if row.pack in contents)
        replies = [RawReply(packs.name, row.pack, row.key.hex(), row.answered_at, raw) for row, raw in found if raw]
        return replies, rows[-1].key.hex() if rows else ""

    @reads
    def _page(self, connection: Connection, table: Table, before: float, after: int) -> Sequence[Row[Any]]:
        answer_text = type_coerce(table.c.answer, Text).label("answer_text")
        of_page = select(table.c.id, table.c.key, table.c.answered_at, answer_text)
        wanted = of_page.where(table.c.id > after, table.c.answered_at < before)
        return connection.execute(wanted.order_by(table.c.id).limit(PAGE)).all()

    @writes
    def remove_replies(self, connection: Connection, replies: Sequence[RawReply]) -> None:
        """Without their raw text the answers are as before; their checksums are made again. One that was replaced since
        it was read is left alone."""
        current = [reply.id for reply in replies if reply.table == answers.name]
        texts = (type_coerce(answers.c[name], Text).label(name) for name in ("question", "answer"))
        found = select(answers.c.id, *texts, answers.c.cost, answers.c.answered_at)
        times = {reply.id: reply.answered_at for reply in replies if reply.table == answers.name}
        new = []
        for row in connection.execute(found.where(answers.c.id.in_(current))):
            answer = _without_raw(row.answer)
            if row.answered_at == times[row.id]:
                checksum = answer_checksum(row.question, answer, row.cost)
                new.append({"of_answer": row.id, "answer_text": answer, "new_checksum": checksum})
        if new:
            connection.execute(_STRIP, new)
        earlier = [reply.id for reply in replies if reply.table == replaced_answers.name]
        texts_before = select(replaced_answers.c.id, type_coerce(replaced_answers.c.answer, Text).label("answer_text"))
        old = [
            {"of_answer": row.id, "answer_text": _without_raw(row.answer_text)}
            for row in connection.execute(texts_before.where(replaced_answers.c.id.in_(earlier)))
        ]
        if old:
            connection.execute(_STRIP_REPLACED, old)
        remove_packed_replies(connection, [reply.key for reply in replies if reply.table == packs.name])

    @reads
    def idle_runs(self, connection: Connection, before: float) -> list[dict[str, Any]]:
        """Runs that have ended before this time and have neither asked nor used anything."""
        columns = (column for column in runs.c if column.name != "scope")
        found = select(*columns).where(*_IDLE, runs.c.ended_at < before).order_by(runs.c.id)
        return [dict(row) for row in connection.execute(found).mappings()]

    @writes
    def remove_runs(self, connection: Connection, numbers: Sequence[int]) -> int:
        """Those of the runs that are still idle; how many."""
        for start in range(0, len(numbers), PAGE):
            part = runs.c.id.in_(numbers[start : start + PAGE])
            idle = select(runs.c.id).where(part, *_IDLE)
            connection.execute(delete(cost_totals).where(cost_totals.c.run.in_(idle)))
            connection.execute(delete(runs).where(part, *_IDLE))
        return len(numbers)

    def give_back_space(self) -> bool:
        """Make an SQLite file as small as what it holds; False where runs that are writing prevent it. PostgreSQL does
        so by itself."""
        engine = self._transactions.engine
        if engine.dialect.name != "sqlite":
            return True
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("VACUUM")
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except Exception as error:
            if "locked" not in str(error) and "busy" not in str(error):
                raise
            return False
        finally:
            connection.close()
        return True


_ANSWER_TEXT = bindparam("answer_text", type_=Text)
_STRIP = (
    update(answers)
    .where(answers.c.id == bindparam("of_answer"))
    .values(answer=_ANSWER_TEXT, checksum=bindparam("new_checksum"))
)
_STRIP_REPLACED = (
    update(replaced_answers).where(replaced_answers.c.id == bindparam("of_answer")).values(answer=_ANSWER_TEXT)
)
_COUNTS = ("paid_calls", "requests", "paid", "unknown_calls", "unknown", "cached_calls")
_IDLE = (
    runs.c.ended_at.is_not(None),
    ~exists().where(charges.c.run == runs.c.id),
    ~exists().where(uses.c.run == runs.c.id),
    *(~exists().where(table.c.run == runs.c.id) for table in (packs, packed_claims)),
    ~exists().where(
        cost_totals.c.run == runs.c.id, sum((cost_totals.c[name] for name in _COUNTS), start=cast(0, BigInteger)) > 0
    ),
)


def _reply(table: str, row: Row[Any]) -> RawReply | None:
    try:
        answer = orjson.loads(row.answer_text)
    except ValueError:  # such as lone surrogates
        answer = json_value(row.answer_text)
    raw = answer.get(RAW) if isinstance(answer, dict) else None
    return RawReply(table, row.id, row.key, row.answered_at, raw) if raw else None


def _without_raw(text: str) -> str:
    return json_text(json_value(text) | {RAW: ""})


def _of_postgresql(connection: Connection) -> dict[str, int]:
    """With indexes and what is stored apart."""
    found = connection.exec_driver_sql(
        "SELECT relname, pg_total_relation_size(pg_class.oid) FROM pg_class "
        "JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = current_schema() AND relkind = 'r'"
    )
    return {str(name): int(size) for name, size in found}


def _of_sqlite(connection: Connection) -> dict[str, int]:
    """What the cells of each table hold; numbers are counted as their digits."""
    sizes = {}
    for table in metadata.tables.values():
        cells = (func.coalesce(func.length(cast(column, LargeBinary)), 0) for column in table.c)
        total = sum(cells, start=cast(0, BigInteger))
        sizes[table.name] = int(connection.execute(select(func.coalesce(func.sum(total), 0))).scalar() or 0)
    return sizes
