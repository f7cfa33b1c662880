"""SQL that both databases understand: INSERT … ON CONFLICT DO NOTHING, and lists of keys or rows as one parameter.

Lists are passed as JSON, which both databases unpack. So a statement is prepared once, whatever the size of the batch,
and other threads can run while the database works."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    BindParameter,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Delete,
    Dialect,
    Insert,
    Select,
    Subquery,
    Table,
    Text,
    TypeDecorator,
    Update,
    bindparam,
    cast,
    insert,
    literal_column,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ClauseElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from store.schema import Json

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
    _is_implicitly_boolean = True  # else SQLite compares it with 1, which uses no index


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
    """That the column is one of `keys`. The statement is the same for any number of keys, so it is built and planned
    once."""
    return _Among(column, bindparam("keys", type_=_Numbers()))


def in_words(connection: Connection, statement: str, values: tuple[Any, ...]) -> Sequence[Any]:
    """The rows of a statement in the database's own words, none of one that writes."""
    return by_driver(connection, statement, values).rows


class Done(NamedTuple):
    """What a statement has read, and how many rows it has written."""

    rows: Sequence[Any]
    written: int


def by_driver(connection: Connection, statement: str, values: Any, *, many: bool = False) -> Done:
    """Without SQLAlchemy, which takes as long as the database or longer for a statement that is short."""
    dialect, driver = connection.dialect, connection.connection.dbapi_connection
    library: Any = dialect.loaded_dbapi
    cursor: Any = driver.cursor()  # type: ignore[union-attr]
    try:
        if many:
            cursor.executemany(statement, values)
        else:
            cursor.execute(statement, values)
        return Done(cursor.fetchall() if cursor.description else (), cursor.rowcount)
    except library.Error as error:
        connection._handle_dbapi_exception(error, statement, None, cursor, None)  # as SQLAlchemy's own statements do
    finally:
        cursor.close()


class PreparedStatement:
    """A statement of SQLAlchemy that is compiled once for each database and then run by its driver.

    Values are given by the names of its parameters. Rows are as the driver gives them, JSON as text."""

    def __init__(self, statement: Select[Any] | Insert | Update | Delete) -> None:
        self._statement = statement
        self._compiled: dict[str, _Compiled] = {}  # by database

    def rows(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Any]:
        compiled = self._for(connection.dialect)
        return by_driver(connection, compiled.text, compiled.parameters(values)).rows

    def scalar(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """The value that it always has."""
        ((value,),) = self.rows(connection, values)
        return value

    def write(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Returns how many rows were written."""
        compiled = self._for(connection.dialect)
        return by_driver(connection, compiled.text, compiled.parameters(values)).written

    def write_all(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """The same for each of the rows, of which there is one at least."""
        compiled = self._for(connection.dialect)
        values = [compiled.parameters(row) for row in rows]
        if connection.dialect.name == "sqlite" or not isinstance(self._statement, Insert):
            by_driver(connection, compiled.text, values, many=True)
            return
        # In one statement, with an array for each column: one message to the server and back.
        by_driver(connection, compiled.of_arrays, [list(column) for column in zip(*values, strict=True)])

    def _for(self, dialect: Dialect) -> _Compiled:
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = _Compiled.of(self._statement, dialect)
        return compiled


class _Compiled(NamedTuple):
    text: str
    processors: list[tuple[str, Callable[[Any], Any] | None]]  # by name, in the order of the statement
    of_arrays: str  # the same for many rows, of an INSERT on PostgreSQL

    @classmethod
    def of(cls, statement: Select[Any] | Insert | Update | Delete, dialect: Dialect) -> _Compiled:
        compiled: Any = statement.compile(dialect=dialect)
        text = _NAMED.sub("%s", str(compiled))
        names = compiled.positiontup or _NAMED.findall(str(compiled))
        types = {name: compiled.binds[name].type.dialect_impl(dialect) for name in names}
        arrays = ", ".join(f"%s::{kind.compile(dialect=dialect)}[]" for kind in map(types.__getitem__, names))
        of_arrays = f"{text.partition(' VALUES ')[0]} SELECT * FROM unnest({arrays})"  # noqa: S608 (placeholders)
        return cls(text, [(name, types[name].bind_processor(dialect)) for name in names], of_arrays)

    def parameters(self, values: Mapping[str, Any]) -> list[Any]:
        return [values[name] if process is None else process(values[name]) for name, process in self.processors]


_NAMED = re.compile(r"%\((\w+)\)s")  # a parameter of PostgreSQL's driver


class _OrNothing(ClauseElement):
    """SQLAlchemy's own clause is compiled each time, which takes longer than the insert."""

    inherit_cache = True
    _traverse_internals = []  # noqa: RUF012 (constant; the type is that of SQLAlchemy)


@compiles(_OrNothing)
def _spell(_clause: _OrNothing, _compiler: Any, **_options: Any) -> str:
    return "ON CONFLICT DO NOTHING"


@cache
def insert_or_nothing(table: Table) -> Insert:
    """An INSERT that skips rows that violate a unique constraint."""
    statement = insert(table)
    statement._post_values_clause = _OrNothing()
    return statement


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows that violate no unique constraint."""
    if rows:
        connection.execute(insert_or_nothing(table), list(rows))


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
def _each_in_sqlite(each: _Each, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(each.clauses, **options)})"


@compiles(_Each, "postgresql")
def _each_in_postgresql(each: _Each, compiler: Any, **options: Any) -> str:
    return f"{each.in_postgresql}(CAST({compiler.process(each.clauses, **options)} AS JSON))"


def _elements(kind: type[_Each], parameter: str) -> ColumnElement[Any]:
    column: ColumnElement[Any] = kind(bindparam(parameter, type_=Json)).table_valued("value").c.value
    return column


def listed(parameter: str = "keys") -> Select[Any]:
    """The texts of a list, for `column.in_(…)`."""
    return select(_elements(_EachText, parameter))


def given(parameter: str = "rows", **columns: TypeEngine[Any] | type[TypeEngine[Any]]) -> Subquery:
    """The rows of a list, each a list of values in the order of the columns."""
    row = _elements(_Each, parameter)
    values = (
        cast(row.op("->>")(literal_column(str(index))), kind).label(name)
        for index, (name, kind) in enumerate(columns.items())
    )
    return select(*values).subquery("given")
