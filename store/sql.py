"""SQL that both databases understand: INSERT … ON CONFLICT DO NOTHING, and lists of keys or rows as one parameter.

Lists are passed as JSON, which both databases unpack. So a statement is prepared once, whatever the size of the batch,
and other threads can run while the database works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Select,
    Subquery,
    Table,
    bindparam,
    cast,
    literal_column,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from store.schema import Json

T = TypeVar("T")

CHUNK = 500  # values in one IN (…): well below the limits of both databases
KEYS: BindParameter[Any] = bindparam("keys", expanding=True)  # such an IN (…) in a statement that is built once


def any_of(column: Column[int]) -> ColumnElement[bool]:
    """That the column is one of `keys`. The statement is the same for any number of keys, so it is built and planned
    once."""
    return column.in_(select(cast(_elements(_EachText, "keys"), BigInteger)))


def or_nothing(rows: Select[Any]) -> Select[Any]:
    """For `insert(…).from_select(…)`: skips rows that violate a unique constraint. They need a WHERE: else SQLite
    takes the ON for that of a join."""
    return rows.suffix_with("ON CONFLICT DO NOTHING")


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows that violate no unique constraint."""
    dialect_insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    if rows:
        connection.execute(dialect_insert(table).on_conflict_do_nothing(), list(rows))


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


class _Each(FunctionElement[Any]):
    """One row for each element of a JSON array."""

    inherit_cache = True
    in_postgresql = "json_array_elements"


class _EachText(_Each):
    inherit_cache = True
    in_postgresql = "json_array_elements_text"


@compiles(_Each, "sqlite")
def _each_in_sqlite(rows: _Each, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(rows.clauses, **options)})"


@compiles(_Each, "postgresql")
def _each_in_postgresql(rows: _Each, compiler: Any, **options: Any) -> str:
    return f"{rows.in_postgresql}(CAST({compiler.process(rows.clauses, **options)} AS JSON))"


def _elements(kind: type[_Each], parameter: str) -> ColumnElement[Any]:
    column: ColumnElement[Any] = kind(bindparam(parameter, type_=Json)).table_valued("value").c.value
    return column


def json_array(parameter: str = "keys") -> Select[Any]:
    """The texts of a list, for `column.in_(…)`."""
    return select(_elements(_EachText, parameter))


def values_table(parameter: str = "rows", **columns: TypeEngine[Any] | type[TypeEngine[Any]]) -> Subquery:
    """The rows of a list, each a list of values in the order of the columns."""
    row = _elements(_Each, parameter)
    values = (
        cast(row.op("->>")(literal_column(str(index))), kind).label(name)
        for index, (name, kind) in enumerate(columns.items())
    )
    return select(*values).subquery("given")
