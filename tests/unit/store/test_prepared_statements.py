"""Statements that are compiled once: each value at its place, as its column holds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.exc import DBAPIError

from store import Store
from store.schema import question_forms, scopes
from store.sql import PreparedStatement, listed

ADD = insert(scopes).values({name: bindparam(name) for name in ("scope", "spent", "reserved", "kept")})


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with Store.open(str(tmp_path / "store.sqlite")) as store, store.engine.begin() as opened:
        yield opened


def row(scope: str, spent: int) -> dict[str, object]:
    return {"kept": 0, "reserved": 0, "spent": spent, "scope": scope}  # in another order than the columns


def test_values_reach_their_columns_by_name(connection: Connection) -> None:
    PreparedStatement(ADD).write_all(connection, [row("a", 1), row("b\0", 2)])
    spent = PreparedStatement(select(scopes.c.spent).where(scopes.c.scope == bindparam("of")))
    assert spent.rows(connection, {"of": "b\0"}) == [(2,)], "escaped as the column does it, both times"
    assert spent.rows(connection, {"of": "c"}) == []
    assert spent.scalar(connection, {"of": "a"}) == 1


def test_a_parameter_may_come_twice_and_statements_may_match_nothing(connection: Connection) -> None:
    PreparedStatement(ADD).write(connection, row("a", 5))
    more = bindparam("more", type_=scopes.c.spent.type)
    both = PreparedStatement(update(scopes).where(scopes.c.scope == bindparam("of")).values(spent=more, kept=more))
    assert both.write(connection, {"of": "a", "more": 7}) == 1
    assert both.write(connection, {"of": "b", "more": 8}) == 0
    assert connection.execute(select(scopes.c.spent, scopes.c.kept)).tuples().all() == [(7, 7)]


def test_json_is_written_from_values_and_read_as_text(connection: Connection) -> None:
    PreparedStatement(insert(question_forms)).write(connection, {"id": 1, "digest": "d", "form": {"voter": 0}})
    found = PreparedStatement(select(question_forms.c.form).where(question_forms.c.digest.in_(listed())))
    assert found.rows(connection, {"keys": ["d", "e"]}) == [('{"voter":0}',)]


def test_an_error_is_one_that_transactions_understand(connection: Connection) -> None:
    PreparedStatement(ADD).write(connection, row("a", 1))
    with pytest.raises(DBAPIError, match="UNIQUE"):
        PreparedStatement(ADD).write_all(connection, [row("b", 1), row("a", 1)])


def test_postgresql_gets_its_values_by_place_and_many_rows_as_arrays() -> None:
    of = PreparedStatement(select(scopes.c.spent).where(scopes.c.scope == bindparam("of")))._for(psycopg.dialect())  # type: ignore[no-untyped-call]
    assert of.text.endswith("WHERE scopes.scope = %s::VARCHAR")
    assert of.parameters({"of": "b\0"}) == ["b\\x00"]
    add = PreparedStatement(ADD)._for(psycopg.dialect())  # type: ignore[no-untyped-call]
    assert add.of_arrays.startswith("INSERT INTO scopes (")
    assert add.of_arrays.count("%s::") == len(add.processors)
