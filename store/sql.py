"""SQL that both databases understand where they differ: INSERT … ON CONFLICT DO NOTHING, and lists of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import BindParameter, Column, ColumnElement, Connection, Table, bindparam
from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T")

CHUNK = 500  # values in one IN (…): well below the limits of both databases
KEYS: BindParameter[Any] = bindparam("keys", expanding=True)  # such an IN (…) in a statement that is built once


def any_of(column: Column[int]) -> ColumnElement[bool]:
    """That the column is one of `keys`."""
    return column.in_(KEYS)


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert the rows that violate no unique constraint; returns how many."""
    dialect_insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    if not rows:
        return 0
    return connection.execute(dialect_insert(table).on_conflict_do_nothing(), list(rows)).rowcount


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
