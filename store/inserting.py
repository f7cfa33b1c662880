"""INSERT … ON CONFLICT DO NOTHING, which both databases know but SQLAlchemy spells per dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T")

CHUNK = 500  # values in one IN (…): well below the limits of both databases


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert those rows that break no uniqueness."""
    if rows:
        connection.execute(insert_or_nothing(connection, table), list(rows))


def insert_new_returning(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], column: Column[str]
) -> set[str]:
    """Insert those rows that break no uniqueness; the column's values of those that went in."""
    if not rows:
        return set()
    statement = insert_or_nothing(connection, table).returning(column)
    return set(connection.execute(statement, list(rows)).scalars())


def insert_or_nothing(connection: Connection, table: Table) -> Any:
    insert: Any = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    return insert(table).on_conflict_do_nothing()


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
