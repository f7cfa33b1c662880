"""INSERT … ON CONFLICT DO NOTHING for both databases, and lists of keys in pieces that both accept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    BindParameter,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Insert,
    Table,
    Text,
    TypeDecorator,
    bindparam,
    insert,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ClauseElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

T = TypeVar("T")

CHUNK = 500  # values in one IN (…): well below the limits of both databases
KEYS: BindParameter[Any] = bindparam("keys", expanding=True)  # such an IN (…) in a statement that is built once


class _Numbers(TypeDecorator[list[int]]):
    """A list of numbers as one value: an array, or JSON."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(ARRAY(BigInteger()) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: list[int] | None, dialect: Dialect) -> Any:
        return value if dialect.name == "postgresql" else json.dumps(value)


class _Among(FunctionElement[bool]):
    type = Boolean()
    inherit_cache = True
    _is_implicitly_boolean = True  # else SQLite is asked whether it equals 1, which no index answers


@compiles(_Among, "postgresql")
def _any(element: _Among, compiler: Any, **options: Any) -> str:
    column, numbers = element.clauses
    return f"{compiler.process(column, **options)} = ANY ({compiler.process(numbers, **options)})"


@compiles(_Among, "sqlite")
def _in(element: _Among, compiler: Any, **options: Any) -> str:
    column, numbers = element.clauses
    of_list = f"(SELECT value FROM json_each({compiler.process(numbers, **options)}))"  # noqa: S608 (a placeholder)
    return f"{compiler.process(column, **options)} IN {of_list}"


def among(column: Column[int]) -> ColumnElement[bool]:
    """That the column is one of `keys`. The statement is the same for one number and for a hundred, so that it is built
    and planned once."""
    return _Among(column, bindparam("keys", type_=_Numbers()))


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
