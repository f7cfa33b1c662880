"""What runs have cost, per run, oracle and kind of question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, exists, func, literal_column, select

from store.ledger.books import COUNTED
from store.ledger.expiry import is_dead
from store.ledger.runs import RunRepository, called, short_id
from store.packed.answers import latest_packed
from store.schema import PAID, PROBE, answers, charges, cost_totals, identities, runs, scopes, storable
from store.transactions import reads


@dataclass(frozen=True, slots=True)
class Cost:
    """One line of the ledger. Money is in micro-dollars."""

    run_id: str
    name: str
    oracle: str
    kind: str
    paid_calls: int = 0
    cached_calls: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    paid: int = 0
    cached_worth: int = 0  # what the answers taken from the store had cost
    unknown_calls: int = 0  # of which a request was sent and never reported its cost: it may have been charged
    unknown: int = 0  # the most that those requests may have cost
    questions: int = 0
    started_at: float = 0.0  # when the run began, in seconds since 1970


@dataclass(frozen=True, slots=True)
class Totals:
    """Of one run, over all oracles and kinds of questions. Probing a server costs money but is not a call."""

    paid_calls: int = 0
    cached_calls: int = 0
    paid: int = 0
    unknown_calls: int = 0
    unknown: int = 0
    paid_by_kind: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Night:
    """One run: how it ended, what it has cost in micro-dollars, and what to do about it (empty: nothing)."""

    run_id: str
    name: str
    flow: str
    job: str
    started_at: float  # seconds since 1970, as is ended_at
    ended_at: float | None
    state: str
    failed: bool
    questions: int
    paid: int
    unknown: int  # at most, of requests that never reported their cost
    todo: str


# As runs are listed: one that ended as it should is done, however it decided that.
_STATES = {
    **{f"stopped: {reason}": "done" for reason in ("queries", "target-g", "nones", "repeats", "nothing-unresolved")},
    "contract": "not as expected",
    "unusable": "answers unusable",
    "budget": "budget used up",
    "stopped: budget": "budget used up",
    "oracle-unavailable": "oracle unavailable",
    "stopped: oracle-unavailable": "oracle unavailable",
    "stopped: stopped": "stopped",
}
DONE, RUNNING, KILLED = "done", "running", "killed"
_FAILED = {"failed", KILLED, "not as expected", "answers unusable", "oracle unavailable"}
_REMEDIES = {KILLED: "its process is gone; run it again: answers that have arrived are not paid for again"}
TABLE = "enrich"  # the flow of which each repetition has a scope of its own


def _night(row: Row[Any], lines: Sequence[Cost], *, is_latest: bool) -> Night:
    state, unknown = _STATES.get(row.status, row.status), sum(line.unknown for line in lines)
    if state == RUNNING and (not is_latest or is_dead(row.process)):
        state = KILLED
    steps = []
    if is_latest and state not in (DONE, RUNNING):
        steps.append((row.summary or {}).get("message") or _REMEDIES.get(state, "look at its log, and run it again"))
    if unknown:
        steps.append(f"`python -m flows store settle {short_id(row.run_id)}` books what the bill shows")
    return Night(
        run_id=row.run_id,
        name=row.name,
        flow=row.flow,
        job=row.job,
        started_at=row.started_at,
        ended_at=row.ended_at,
        state=state,
        failed=state in _FAILED,
        questions=sum(line.questions for line in lines),
        paid=sum(line.paid for line in lines),
        unknown=unknown,
        todo="; ".join(steps),
    )


_LINES = select(cost_totals, runs.c.run_id, runs.c.name, runs.c.started_at).join(runs, runs.c.id == cost_totals.c.run)
_earlier = charges.alias("earlier")
# Only charges of questions that were asked again are looked at: there are few, and an index holds them.
_PAID_AGAIN = (
    select(charges.c.run, charges.c.oracle, charges.c.kind, func.count().label("calls"))
    .join(runs, runs.c.id == charges.c.run)
    .where(
        charges.c.fence > literal_column("1"),
        charges.c.state == PAID,
        exists().where(
            _earlier.c.key == charges.c.key,
            _earlier.c.fence < charges.c.fence,
            _earlier.c.run + 0 == charges.c.run,
            _earlier.c.state == PAID,
        ),
    )
    .group_by(charges.c.run, charges.c.oracle, charges.c.kind)
)


def _sum(connection: Connection, chosen: ColumnElement[bool]) -> Totals:
    total = Totals()
    for row in connection.execute(select(cost_totals).where(chosen)):
        total = Totals(
            total.paid_calls + (row.paid_calls if row.kind != PROBE else 0),
            total.cached_calls + row.cached_calls,
            total.paid + row.paid,
            total.unknown_calls + row.unknown_calls,
            total.unknown + row.unknown,
            {**total.paid_by_kind, row.kind: total.paid_by_kind.get(row.kind, 0) + row.paid},
        )
    return total


LATEST = 20_000  # answers among which those of one oracle are looked for: the store may hold millions
LATEST_PACKS = 500  # packs, likewise


class Costs(RunRepository):
    @reads
    def latest(
        self, connection: Connection, oracle: str, prompts: str, alike: Mapping[str, Any]
    ) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Question and answer of those among the latest that this oracle gave to these prompts, with such
        parameters."""
        asked = connection.execute(select(identities.c.id, identities.c.identity).where(identities.c.oracle == oracle))
        wanted = [
            row.id
            for row in asked
            if row.identity.get("prompts") == prompts and alike.items() <= row.identity.get("parameters", {}).items()
        ]
        if not wanted:
            return []
        newest = connection.execute(select(func.max(answers.c.id))).scalar() or 0
        latest = select(answers.c.question, answers.c.answer).where(answers.c.id > newest - LATEST)
        rows = connection.execute(latest.where(answers.c.identity.in_(wanted)))
        return [*((row.question, row.answer) for row in rows), *latest_packed(connection, wanted, LATEST_PACKS)]

    @reads
    def totals(self, connection: Connection, run_id: str) -> Totals:
        """What one run has paid and used so far, all its attempts together."""
        return _sum(connection, cost_totals.c.run == self._runs.find(connection, run_id).run)

    @reads
    def totals_of_scope(self, connection: Connection, scope: str) -> Totals:
        """The same of all runs of a scope: what a run that was repeated or resumed has cost in all."""
        within = select(runs.c.id).join(scopes, scopes.c.id == runs.c.scope).where(scopes.c.scope == storable(scope))
        return _sum(connection, cost_totals.c.run.in_(within))

    @reads
    def lines(self, connection: Connection, run: str | None = None) -> list[Cost]:
        """By run, oracle and kind: of the runs that are called so (see `called`), or of every run."""
        return _lines(connection, run)

    @reads
    def nights(self, connection: Connection, run: str | None = None) -> list[Night]:
        """Every run that is called so, the latest first, those that asked nothing too. A later run of the same table,
        or of the same scope, takes over what is to be done about an earlier one, which it does not begin beside."""
        lines: dict[str, list[Cost]] = {}
        for line in _lines(connection, run):
            lines.setdefault(line.run_id, []).append(line)
        found, seen = list[Night](), set[tuple[str, str | int]]()
        columns = (runs.c[name] for name in ("run_id", "scope", "name", "flow", "job", "process", "status", "summary"))
        chosen = select(*columns, runs.c.started_at, runs.c.ended_at, called(run).label("chosen"))
        for row in connection.execute(chosen.order_by(runs.c.started_at.desc(), runs.c.id.desc())):
            subject = (row.flow, row.job if row.flow == TABLE else row.scope)
            if row.chosen and (row.flow != PROBE or row.run_id in lines):
                found.append(_night(row, lines.get(row.run_id, ()), is_latest=subject not in seen))
            seen.add(subject)
        return found


def _lines(connection: Connection, run: str | None) -> list[Cost]:
    chosen = called(run)
    again = {tuple(at): calls for *at, calls in connection.execute(_PAID_AGAIN.where(chosen))}
    lines = {}
    for row in connection.execute(_LINES.where(chosen)):
        counts = {name: getattr(row, name) for name in COUNTED}
        if any(counts.values()):
            at = (row.run, row.oracle, row.kind)
            questions = row.paid_calls + row.cached_calls - again.get(at, 0)
            if row.kind == PROBE:  # costs money but asks nothing
                counts["paid_calls"] = questions = 0
            origin = {"questions": questions, "started_at": row.started_at}
            lines[at] = Cost(row.run_id, row.name, row.oracle, row.kind, **counts, **origin)
    return [lines[at] for at in sorted(lines)]
