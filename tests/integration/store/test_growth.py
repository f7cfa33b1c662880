"""How the work of the store grows with what is kept: the plans of its statements, and the sums that it keeps."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, event, text

from store import Store
from tests.integration.conftest import Clock
from tests.support.store_steps import LEASE, PRICE, SCOPE, begin, claim, pay, record

PAYER, USER = "run-1", "run-2"
PER_EXAMPLE = 20
BATCH = 8_000


def keys_of(numbers: Sequence[int]) -> list[str]:
    """Those of one example are neighbours, as real ones are."""
    digests = [(number // PER_EXAMPLE, number) for number in numbers]
    return ["".join(hashlib.sha256(str(one).encode()).hexdigest()[:32] for one in pair) for pair in digests]


def fill(store: Store, answers: int) -> None:
    """One run has paid for so many answers; a second one of the same scope has used them all."""
    begin(store, PAYER)
    begin(store, USER)
    for start in range(0, answers, BATCH):
        keys = keys_of(range(start, min(start + BATCH, answers)))
        granted = claim(store, keys, run_id=PAYER, price=7, sending=len(keys)).granted
        store.answers.record(PAYER, [record(key, fence, cost=7) for key, fence in granted.items()])
        store.answers.note_uses(USER, keys)
    if store.engine.dialect.name == "postgresql":  # as autovacuum does a little later
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
    assert store.answers.count(SCOPE) == answers


GROWING = {"answers", "charges", "uses", "packed_keys", "packs", "packed_uses"}
ASKED = 100  # questions in the batch that is resumed
# Steps that may look at every row once, or at all rows of a run. No other may, and none at all rows for each row.
LINEAR = {"check": "it reads everything", "take over": "an account has but the charges of a few requests"}
SKIPPED = "SCAN uses"  # in INSERT INTO answers: SQLite looks at the uses only if a foreign key is violated already


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
    known, new = keys_of(range(kept - ASKED, kept)), keys_of(range(kept, kept + ASKED))

    def expire() -> None:
        claim(store, new[:9], run_id=USER, budget=0)
        claim(store, new[:9], run_id=USER, owner="dead", sending=5)
        clock.now += LEASE + 1
        claim(store, new[9:12], run_id=USER, owner="alive")
        store.claims.release("alive", new[9:12])

    def answer() -> None:
        granted = claim(store, [*known[:9], *new], run_id="run-3", sending=50).granted
        sent = store.claims.mark_sent("owner-1", granted)
        store.answers.record("run-3", [record(key, granted[key]) for key in sorted(sent)[:-9]])
        store.claims.abandon("owner-1", sorted(sent)[-9:])

    return {
        "open": lambda: Store.open(store.engine.url.render_as_string(hide_password=False)).close(),
        "begin": lambda: begin(store, "run-3"),
        "start": lambda: (store.answers.count(SCOPE), store.runs.spent(SCOPE), store.runs.overview()),
        "take over": lambda: store.runs.take_over("account", "run-3"),
        "look up": lambda: store.answers.lookup([*known, *new]),
        "use": lambda: store.answers.note_uses("run-3", known),
        "expire": expire,
        "answer": answer,
        "totals": lambda: store.costs.totals("run-3"),
        "costs": lambda: (store.costs.lines(), store.costs.lines(USER)),
        "check": lambda: (store.check.problems(), next(store.check.answers()), store.check.orphans()),
    }


def plans_of(store: Store, clock: Clock, kept: int) -> list[str]:
    """What is wrong with the plan of any statement."""
    begin(store, "probing", scope="account")
    granted = claim(store, ["what it can do"], run_id="probing", scope="account", sending=1).granted
    store.answers.record("probing", [record(key, fence, kind="probe") for key, fence in granted.items()])
    seen = Statements()
    with seen.watching(store):
        for seen.step, step in steps(store, clock, kept).items():
            step()
    wrong = []
    for step_name, statements in seen.of_step.items():
        for statement, values in statements.items():
            for problem in problems_of(store, statement, values, kept, linear=step_name in LINEAR):
                wrong.append(f"{step_name}: {problem}: {' '.join(statement.split())[:300]}")
    assert {"answer", "costs", "check", "use"} <= set(seen.of_step)
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
_FEW = {"live_claims_by_lease", "one_live_claim_per_key", "charges_asked_again"}  # indexes of what is in flight or rare


def _in_sqlite(connection: Connection, statement: str, values: Any, *, linear: bool) -> Iterator[str]:
    """Loops over all rows, or all of a run, of a table that grows; and such loops within loops."""
    rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    parents = {row[0]: (row[1], row[3]) for row in rows}
    for place, (_number, parent, _unused, detail) in enumerate(rows):
        loop = _LOOP.match(detail)
        if loop is None or not _is_wide(*loop.groups()) or (detail == SKIPPED and "INSERT INTO answers" in statement):
            continue
        around, inner = [parent], parent
        while inner in parents and "CORRELATED" in parents[inner][1]:
            inner = parents[inner][0]
            around.append(inner)
        outer = [row[3] for row in rows[:place] if row[1] in around and (found := _LOOP.match(row[3])) and found]
        is_delete = statement.startswith("DELETE")  # what may refer to the row is listed as if it were a loop
        if any(one.split()[1] in {*GROWING, "json_each"} for one in outer) and not is_delete:
            yield f"{detail}, within {outer}"
        elif not linear:
            yield detail


def _is_wide(how: str, table: str, index: str | None, terms: str | None) -> bool:
    if table not in GROWING and table != "earlier":
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


def test_an_answer_that_a_run_used_and_then_paid_for_late_counts_once(store: Store, clock: Clock) -> None:
    begin(store, PAYER)
    begin(store, USER)
    begin(store, "run-3", scope="another")
    slow = claim(store, ["a"], owner="slow", run_id=USER, sending=1).granted["a"]
    clock.now += LEASE + 1
    quick = claim(store, ["a"], owner="quick", run_id=PAYER, sending=1).granted["a"]
    store.answers.record(PAYER, [record("a", quick)])
    for run in (USER, USER, "run-3"):
        store.answers.note_uses(run, ["a"])
    assert (store.costs.totals(USER).cached_calls, store.costs.totals(USER).unknown_calls) == (1, 1)
    for _ in range(2):  # the acknowledgement of the first was lost
        store.answers.record(USER, [record("a", slow)])
    late = store.costs.totals(USER)
    assert (late.paid_calls, late.cached_calls, late.unknown_calls, late.paid, late.unknown) == (1, 0, 0, PRICE, 0)
    assert [store.answers.count(scope) for scope in (SCOPE, "another", "none")] == [1, 1, 0]
    assert store.check.problems() == []


def test_a_question_that_one_run_paid_for_twice_is_one_question(store: Store, clock: Clock) -> None:
    begin(store)
    first = claim(store, ["a"], owner="slow", sending=1).granted["a"]
    clock.now += LEASE + 1
    pay(store, ["a", "b"])
    store.answers.record("run-1", [record("a", first)])
    (line,) = store.costs.lines()
    assert (line.questions, line.paid_calls, line.paid, line.requests) == (2, 3, 3 * PRICE, 3)
    assert store.answers.count(SCOPE) == 2
    assert store.check.problems() == []
