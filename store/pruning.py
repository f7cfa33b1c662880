"""How much of what a store keeps, and removing what nobody needs any more: raw replies, and runs that did nothing.

Answers, charges and sums are never touched: results come out the same, and `store check` finds every sum right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Connection, LargeBinary, Row, bindparam, cast, delete, exists, func, select, update

from twothirds.store.content import checksum, decode, encode
from twothirds.store.schema import metadata, requests, runs, uncharged
from twothirds.store.transactions import Repository, reads, writes

PAGE = 100  # requests at a time
RAW = "raw"  # the member of an answer that holds the reply as it came
# What the tables are about, by the beginning of their names; the first that fits.
KINDS = {
    "people": ("review_",),
    "answers": ("requests", "questions", "oracles", "settlements"),
    "runs": ("runs", "scopes", "uncharged"),
}


class RawReply(NamedTuple):
    """The raw text of an answer, and which answer of which request it belongs to."""

    request: int
    position: int
    answered_at: float
    raw: str


_OLD = (
    select(requests.c.id, requests.c.answered_at, requests.c.content)
    .where(requests.c.id > bindparam("after"), requests.c.answered_at < bindparam("before"))
    .order_by(requests.c.id)
    .limit(PAGE)
)
_STRIP = (
    update(requests)
    .where(requests.c.id == bindparam("at"))
    .values(content=bindparam("new_content"), checksum=bindparam("new_checksum"))
)


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
        after = 0
        while rows := self._page(before, after):
            yield [
                RawReply(row.id, position, row.answered_at, entry[1][RAW])
                for row in rows
                for position, entry in enumerate(decode(row.content))
                if entry is not None and entry[1].get(RAW)
            ]
            after = rows[-1].id

    @reads
    def _page(self, connection: Connection, before: float, after: int) -> Sequence[Row[Any]]:
        return connection.execute(_OLD, {"before": before, "after": after}).all()

    @writes
    def remove_replies(self, connection: Connection, replies: Sequence[RawReply]) -> None:
        """Without their raw text the answers are as before; their checksums are made again."""
        wanted = defaultdict[int, set[int]](set)
        for reply in replies:
            wanted[reply.request].add(reply.position)
        found = select(requests.c.id, requests.c.content).where(requests.c.id.in_(list(wanted))).with_for_update()
        new = []
        for row in connection.execute(found):
            entries = decode(row.content)
            for position in wanted[row.id]:
                if entries[position] is not None:
                    entries[position][1][RAW] = ""
            content = encode(entries)
            new.append({"at": row.id, "new_content": content, "new_checksum": checksum(content)})
        if new:
            connection.execute(_STRIP, new)

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
            connection.execute(delete(uncharged).where(uncharged.c.run.in_(idle)))
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


_IDLE = (
    runs.c.ended_at.is_not(None),
    ~exists().where(requests.c.run == runs.c.id),
    ~exists().where(uncharged.c.run == runs.c.id, uncharged.c.stored + uncharged.c.computed > 0),
)


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
