"""All rows of one store into another, of SQLite or PostgreSQL, as they are."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, Engine, TableClause, column, func, insert, select, table, text

from store.schema import answers, metadata, review_people, runs, version

ROWS = 1000


def is_empty(engine: Engine) -> bool:
    with engine.connect() as connection:
        return not any(connection.execute(select(one).limit(1)).first() for one in (runs, answers, review_people))


def copy_rows(source: Engine, target: Engine, tell: Callable[[int, int], None]) -> None:
    """Copy what the source holds at one moment, in one transaction; the tables of the target are there and empty."""
    reading = source.connect()
    if source.dialect.name == "postgresql":
        reading = reading.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with reading, reading.begin(), target.execution_options(writes=True).begin() as writing:
        tables = [one for one in metadata.sorted_tables if one is not version]
        plain = {one.name: table(one.name, *(column(part.name) for part in one.columns)) for one in tables}
        total = sum(_count(reading, each) for each in plain.values())
        done = 0
        for one in tables:
            raw = plain[one.name]
            rows = reading.execution_options(yield_per=ROWS).execute(select(raw)).mappings()
            for part in rows.partitions(ROWS):
                writing.execute(insert(raw), [dict(row) for row in part])
                done += len(part)
                tell(done, total)
            if target.dialect.name == "postgresql" and "id" in one.columns:
                _go_on_after(writing, one.name)


def _count(connection: Connection, of: TableClause) -> int:
    return connection.execute(select(func.count()).select_from(of)).scalar_one()


def _go_on_after(connection: Connection, name: str) -> None:
    """New rows get numbers above those that were copied."""
    connection.execute(
        text(f"SELECT setval(pg_get_serial_sequence(:name, 'id'), max(id)) FROM {name} HAVING max(id) IS NOT NULL"),  # noqa: S608 (a table of ours)
        {"name": name},
    )
