"""How the work of the store grows with what is kept: the plans of its statements, and the sums that it keeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, event, text

from tests.integration.conftest import Clock
from tests.support.store_steps import LEASE, PRICE, SCOPE, begin, claim, granted, pay, reply, send
from twothirds.store import Store, text_key

PER_REQUEST = 20
GROWING = {"requests", "questions"}
ASKED = 100  # questions of a step
# Steps that may look at every request once. No other may, and none at all of them for each.
LINEAR = {"check", "start", "totals", "costs"}


def named(numbers: Iterable[int]) -> list[tuple[str, ...]]:
    names = [f"key {number}" for number in numbers]
    return [tuple(names[at : at + PER_REQUEST]) for at in range(0, len(names), PER_REQUEST)]


def fill(store: Store, answers: int) -> None:
    begin(store)
    pay(store, named(range(answers)), cost=7)
    if store.engine.dialect.name == "postgresql":  # as autovacuum does a little later
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
    assert store.requests.count(SCOPE) == answers


_HAS_A_PLAN = re.compile(r"(SELECT|INSERT(?!.*VALUES)|UPDATE|DELETE)", re.DOTALL)


@dataclass
class Statements:
    """All that the store executes, by the step that it is part of."""

    step: str = ""
    of_step: dict[str, dict[str, Any]] = field(default_factory=dict)

    @contextmanager
    def watching(self, store: Store) -> Iterator[None]:
        def note(_connection: Any, _cursor: Any, statement: str, values: Any, _context: Any, many: bool) -> None:
            if _HAS_A_PLAN.match(statement) and GROWING & set(re.findall(r"\w+", statement)):
                self.of_step.setdefault(self.step, {})[statement] = values[0] if many else values

        event.listen(store.engine, "before_cursor_execute", note)
        try:
            yield
        finally:
            event.remove(store.engine, "before_cursor_execute", note)


def steps(store: Store, clock: Clock, kept: int) -> dict[str, Callable[[], object]]:
    """What a run does that is resumed when half of its questions are answered, and what is asked about it."""
    known, new = named(range(kept - ASKED, kept)), named(range(kept, kept + ASKED))
    keys = [text_key(name) for names in [*known, *new] for name in names]

    def expire() -> None:
        send(store, granted(store, new[:2], owner="dead"), owner="dead")
        clock.now += LEASE + 1
        store.requests.release("alive", granted(store, new[2:3], owner="alive"))

    def answer() -> None:
        claimed = claim(store, [*known, *new], run_id="run-3", budget=10**9).granted
        numbers = [one.request for one in claimed]
        send(store, numbers, run_id="run-3")
        replies = [reply(number, names) for number, names in zip(numbers[1:], new[1:], strict=True)]
        store.requests.record("run-3", replies)
        store.requests.note_batch("owner-1", numbers[:1], "a batch")
        store.requests.release("owner-1", numbers[:1])
        claim(store, new[:1], run_id="run-3")

    return {
        "open": lambda: Store.open(store.engine.url.render_as_string(hide_password=False)).close(),
        "begin": lambda: begin(store, "run-3"),
        "start": lambda: (store.requests.count(SCOPE), store.runs.spent(SCOPE), store.runs.overview()),
        "look up": lambda: store.requests.answers(keys),
        "expire": expire,
        "answer": answer,
        "totals": lambda: store.costs.totals("run-3"),
        "costs": lambda: (store.costs.lines(), store.costs.lines("run-1")),
        "check": lambda: (store.check.problems(), next(store.check.answers()), store.check.orphans()),
    }


def plans_of(store: Store, clock: Clock, kept: int) -> list[str]:
    """What is wrong with the plan of any statement."""
    seen = Statements()
    with seen.watching(store):
        for seen.step, step in steps(store, clock, kept).items():
            step()
    wrong = []
    for step_name, statements in seen.of_step.items():
        for statement, values in statements.items():
            for problem in problems_of(store, statement, values, kept, linear=step_name in LINEAR):
                wrong.append(f"{step_name}: {problem}: {' '.join(statement.split())[:300]}")
    assert {"answer", "costs", "check", "look up"} <= set(seen.of_step)
    return wrong


def problems_of(store: Store, statement: str, values: Any, kept: int, *, linear: bool) -> list[str]:
    with store.engine.connect() as connection, connection.begin() as transaction:
        try:
            if connection.dialect.name == "sqlite":
                return list(_in_sqlite(connection, statement, values, linear=linear))
            return list(_in_postgresql(connection, statement, values, 3 * kept if linear else 20 * ASKED))
        finally:
            transaction.rollback()


_LOOP = re.compile(r"(SCAN|SEARCH) (\S+)(?: USING (?:COVERING )?(?:INDEX (\S+)|PRIMARY KEY|INTEGER PRIMARY KEY)(.*))?")
_FEW = {"open_requests"}  # the index of what is in flight


def _in_sqlite(connection: Connection, statement: str, values: Any, *, linear: bool) -> Iterator[str]:
    """Loops over all rows, or all of a run, of a table that grows; and such loops within loops."""
    rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    parents = {row[0]: (row[1], row[3]) for row in rows}
    for place, (_number, parent, _unused, detail) in enumerate(rows):
        loop = _LOOP.match(detail)
        if loop is None or not _is_wide(*loop.groups()):
            continue
        around, inner = [parent], parent
        while inner in parents and "CORRELATED" in parents[inner][1]:
            inner = parents[inner][0]
            around.append(inner)
        outer = [row[3] for row in rows[:place] if row[1] in around and (found := _LOOP.match(row[3])) and found]
        is_delete = statement.startswith("DELETE")  # what may refer to the row is listed as if it were a loop
        if any(one.split()[1] in GROWING for one in outer) and not is_delete:
            yield f"{detail}, within {outer}"
        elif not linear:
            yield detail


def _is_wide(how: str, table: str, index: str | None, terms: str | None) -> bool:
    if table not in GROWING:
        return False
    of_a_run = (terms or "").strip().startswith("(run=?)")  # LEFT-JOIN may follow
    return (of_a_run and index not in _FEW) or (how == "SCAN" and index not in _FEW)


def _in_postgresql(connection: Connection, statement: str, values: Any, most: int) -> Iterator[str]:
    """Nodes of the plan that look at more rows than they may, counted while the statement is executed."""
    connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # of few rows it is right to read all
    (plan,) = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values).scalar_one()
    nodes = [plan["Plan"]]
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        removed = sum(node.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Join Filter", "Index Recheck"))
        looked_at = (node["Actual Rows"] + removed) * node["Actual Loops"]
        if looked_at > most:
            yield f"{node['Node Type']} of {node.get('Relation Name', '')} looks at {looked_at:,.0f} rows"


def test_no_statement_of_a_run_looks_at_more_rows_the_more_is_kept(store: Store, clock: Clock) -> None:
    fill(store, 12_000)
    wrong = plans_of(store, clock, 12_000)
    assert wrong == [], "\n".join(wrong)


def test_a_question_that_one_run_paid_for_twice_is_one_question(store: Store, clock: Clock) -> None:
    begin(store)
    [first] = granted(store, ["a"], owner="slow")
    send(store, [first], owner="slow")
    clock.now += LEASE + 1
    pay(store, ["ab"])
    store.requests.record("run-1", [reply(first, "a")])
    (line,) = store.costs.lines()
    assert (line.questions, line.paid_calls, line.paid, line.requests) == (2, 3, 2 * PRICE, 2)
    assert store.requests.count(SCOPE) == 2
    assert store.check.problems() == []
