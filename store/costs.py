"""What runs have cost, per run, oracle and kind of question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Row, bindparam, select, update

from twothirds.store.content import decode
from twothirds.store.engine import insert_new, reads, writes
from twothirds.store.owners import is_dead
from twothirds.store.runs import RunRepository, called, short_id
from twothirds.store.schema import CLOSED, COMPUTED, PROBE, oracles, requests, runs, scopes, storable, uncharged


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
    unknown_calls: int = 0  # requests of which an attempt never reported its cost: it may have been charged
    unknown: int = 0  # the most that those attempts may have cost
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
    oracle: str
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
        steps.append(f"`twothirds store settle {short_id(row.run_id)}` books what the bill shows")
    return Night(
        run_id=row.run_id,
        name=row.name,
        flow=row.flow,
        oracle=row.oracle,
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


_IN_DOUBT = sa.case(  # of an open request only what no process will close
    (sa.or_(requests.c.state == CLOSED, requests.c.owner == ""), requests.c.booked - requests.c.cost), else_=0
)
_SUMS = {
    "questions": sa.case((requests.c.kind == PROBE, 0), else_=requests.c.answered - requests.c.dropped),
    "paid_calls": requests.c.answered,
    "requests": requests.c.attempts,
    "input_tokens": requests.c.input_tokens,
    "output_tokens": requests.c.output_tokens,
    "paid": requests.c.cost,
    "unknown_calls": sa.case((_IN_DOUBT > 0, 1), else_=0),
    "unknown": _IN_DOUBT,
}
_LINE = ("run_id", "name", "oracle", "kind", "started_at")
_OF_RUN = (runs.c.id, runs.c.run_id, runs.c.name, runs.c.started_at)
_ASKED = (
    select(
        *_OF_RUN,
        oracles.c.name.label("oracle"),
        requests.c.kind,
        *(sa.cast(sa.func.sum(amount), sa.BigInteger).label(name) for name, amount in _SUMS.items()),
    )
    .select_from(requests)
    .join(runs, runs.c.id == requests.c.run)
    .join(oracles, oracles.c.id == requests.c.oracle)
    .group_by(*_OF_RUN, oracles.c.name, requests.c.kind)
)
_UNCHARGED = select(
    *_OF_RUN, uncharged.c.oracle, uncharged.c.kind, uncharged.c.stored, uncharged.c.worth, uncharged.c.computed
).join(runs, runs.c.id == uncharged.c.run)


def cost_lines(connection: Connection, chosen: sa.ColumnElement[bool]) -> list[Cost]:
    """By run, oracle and kind, of the runs that are chosen; without lines of nothing."""
    lines: dict[tuple[Any, ...], Cost] = {}
    for row in connection.execute(_ASKED.where(chosen)):
        counts: dict[str, Any] = {name: int(getattr(row, name)) for name in _SUMS}
        if any(counts.values()):
            if row.kind == PROBE:  # costs money but asks nothing
                counts["paid_calls"] = 0
            line = Cost(**{name: getattr(row, name) for name in _LINE}, **counts)
            lines[row.id, row.oracle, row.kind] = line
    for row in connection.execute(_UNCHARGED.where(chosen)):
        at = (row.id, row.oracle, row.kind)
        line = lines.get(at) or Cost(**{name: getattr(row, name) for name in _LINE})
        lines[at] = replace(
            line,
            paid_calls=line.paid_calls + row.computed,
            cached_calls=row.stored,
            cached_worth=row.worth,
            questions=line.questions + row.computed + row.stored,
        )
    return [lines[at] for at in sorted(lines)]


def _total(lines: Sequence[Cost]) -> Totals:
    paid_by_kind = Counter[str]()
    for line in lines:
        paid_by_kind[line.kind] += line.paid
    return Totals(
        paid_calls=sum(line.paid_calls for line in lines if line.kind != PROBE),
        cached_calls=sum(line.cached_calls for line in lines),
        paid=sum(line.paid for line in lines),
        unknown_calls=sum(line.unknown_calls for line in lines),
        unknown=sum(line.unknown for line in lines),
        paid_by_kind=dict(paid_by_kind),
    )


LATEST = 500  # requests among which those of one oracle are looked for: the store may hold millions
_of_line = tuple(uncharged.c[name] == bindparam(f"of_{name}") for name in ("run", "oracle", "kind"))
_COUNT = (
    update(uncharged)
    .where(*_of_line)
    .values({name: uncharged.c[name] + bindparam(f"more_{name}") for name in ("stored", "worth", "computed")})
)


class Costs(RunRepository):
    @writes
    def note_stored(
        self, connection: Connection, run_id: str, oracle: str, hits: Mapping[str, tuple[int, int]]
    ) -> None:
        """Count answers that the run took from the store: by kind how many, and what they had cost."""
        for kind, (stored, worth) in sorted(hits.items()):
            _count(connection, self._runs.find(connection, run_id).run, oracle, kind, stored=stored, worth=worth)

    @writes
    def note_computed(self, connection: Connection, run_id: str, oracle: str, labels: int) -> None:
        """Count labels that were computed free of charge; they are not stored."""
        _count(connection, self._runs.find(connection, run_id).run, oracle, COMPUTED, computed=labels)

    @reads
    def latest(
        self, connection: Connection, oracle: str, prompts: str, alike: Mapping[str, Any]
    ) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Question and answer of those among the latest that this oracle gave to these prompts, with such
        parameters."""
        asked = connection.execute(select(oracles.c.id, oracles.c.identity).where(oracles.c.name == oracle))
        wanted = [
            row.id
            for row in asked
            if row.identity.get("prompts") == prompts and alike.items() <= row.identity.get("parameters", {}).items()
        ]
        if not wanted:
            return []
        newest = connection.execute(select(sa.func.max(requests.c.id))).scalar() or 0
        latest = select(requests.c.content).where(requests.c.id > newest - LATEST, requests.c.content.is_not(None))
        rows = connection.execute(latest.where(requests.c.oracle.in_(wanted)).order_by(requests.c.id)).scalars()
        return [(entry[0], entry[1]) for content in rows for entry in decode(content) if entry is not None]

    @reads
    def totals(self, connection: Connection, run_id: str) -> Totals:
        """What one run has paid and used so far, all its attempts together."""
        return _total(cost_lines(connection, runs.c.id == self._runs.find(connection, run_id).run))

    @reads
    def totals_of_scope(self, connection: Connection, scope: str) -> Totals:
        """The same of all runs of a scope: what a run that was repeated or resumed has cost in all."""
        of_scope = select(scopes.c.id).where(scopes.c.scope == storable(scope)).scalar_subquery()
        return _total(cost_lines(connection, runs.c.scope == of_scope))

    @reads
    def lines(self, connection: Connection, run: str | None = None) -> list[Cost]:
        """By run, oracle and kind: of the runs that are called so (see `called`), or of every run."""
        return cost_lines(connection, called(run))

    @reads
    def nights(self, connection: Connection, run: str | None = None) -> list[Night]:
        """Every run that is called so, the latest first, those that asked nothing too. A later run of the same table,
        or of the same scope, takes over what is to be done about an earlier one, which it does not begin beside."""
        lines: dict[str, list[Cost]] = {}
        for line in cost_lines(connection, called(run)):
            lines.setdefault(line.run_id, []).append(line)
        found, seen = list[Night](), set[tuple[str, str | int]]()
        chosen = select(runs, called(run).label("chosen"))
        for row in connection.execute(chosen.order_by(runs.c.started_at.desc(), runs.c.id.desc())):
            subject = (row.flow, row.job if row.flow == TABLE else row.scope)
            if row.chosen and (row.flow != PROBE or row.run_id in lines):
                found.append(_night(row, lines.get(row.run_id, ()), is_latest=subject not in seen))
            seen.add(subject)
        return found


def _count(connection: Connection, run: int, oracle: str, kind: str, **more: int) -> None:
    line = {"run": run, "oracle": storable(oracle), "kind": storable(kind)}
    values = {f"of_{name}": value for name, value in line.items()}
    values |= {f"more_{name}": more.get(name, 0) for name in ("stored", "worth", "computed")}
    if connection.execute(_COUNT, values).rowcount == 0:
        insert_new(connection, uncharged, [{**line, "stored": 0, "worth": 0, "computed": 0}])
        connection.execute(_COUNT, values)
