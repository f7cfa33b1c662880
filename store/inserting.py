"""INSERT … ON CONFLICT DO NOTHING for both databases, and lists of keys in pieces that both accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import BindParameter, Connection, Insert, Table, bindparam, insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ClauseElement

T = TypeVar("T")

CHUNK = 500  # values in one IN (…): well below the limits of both databases
KEYS: BindParameter[Any] = bindparam("keys", expanding=True)  # such an IN (…) in a statement that is built once


class _OrNothing(ClauseElement):
    """SQLAlchemy's own clause is compiled anew each time, which takes longer than the insert."""

    inherit_cache = True
    _traverse_internals = []  # noqa: RUF012 (nothing in it varies; the type is that of SQLAlchemy)


@compiles(_OrNothing)
def _spell(_clause: _OrNothing, _compiler: Any, **_options: Any) -> str:
    return "ON CONFLICT DO NOTHING"


@cache
def insert_or_nothing(table: Table) -> Insert:
    """An INSERT that leaves out rows that break a uniqueness."""
    statement = insert(table)
    statement._post_values_clause = _OrNothing()
    return statement


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert those rows that break no uniqueness."""
    if rows:
        connection.execute(insert_or_nothing(table), list(rows))


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
