"""Many keys or rows in one parameter: a statement stays the same, and is prepared once, however many there are.

They travel as JSON, which both databases take apart. So a batch is a few statements whatever its size, and other
threads can work while the database does."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, bindparam, cast, literal_column, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from store.schema import Json


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
        cast(row.op("->>")(literal_column(str(place))), kind).label(name)
        for place, (name, kind) in enumerate(columns.items())
    )
    return select(*values).subquery("given")
