"""What runs have cost, per run, oracle and kind of question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, func, or_, select

from store.ledger.runs import RunRepository
from store.schema import PAID, PROBE, UNKNOWN, answers, charges, identities, runs, uses
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
    unknown_calls: int = 0  # of which a request was sent and never told its cost: it may have been charged
    unknown: int = 0  # the most that those requests may have cost
    questions: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """Of one run, over all oracles and kinds of questions. Probing a server costs money but is not a call."""

    paid_calls: int = 0
    cached_calls: int = 0
    paid: int = 0
    unknown_calls: int = 0
    unknown: int = 0


_CALLS = ("questions", "paid_calls", "unknown_calls", "requests")
_CHARGED = (*_CALLS, "input_tokens", "output_tokens", "paid", "unknown")


class Costs(RunRepository):
    @reads
    def totals(self, connection: Connection, run_id: str) -> Totals:
        """What one run has paid and used so far, all its attempts together."""
        run = self._runs.find(connection, run_id).run
        is_paid, is_unknown = charges.c.state == PAID, charges.c.state == UNKNOWN
        query = select(
            func.count(case((and_(is_paid, charges.c.kind != PROBE), 1))).label("paid_calls"),
            func.sum(charges.c.cost).label("paid"),
            func.count(case((charges.c.in_doubt > 0, 1))).label("unknown_calls"),
            func.sum(charges.c.in_doubt).label("unknown"),
        ).where(charges.c.run == run, or_(is_paid, is_unknown))
        row = connection.execute(query).one()
        cached = sum(int(line.cached_calls) for line in _cached(connection, runs.c.id == run))
        return Totals(row.paid_calls, cached, int(row.paid or 0), row.unknown_calls, int(row.unknown or 0))

    @reads
    def lines(self, connection: Connection, run: str | None = None) -> list[Cost]:
        """By run, oracle and kind: of the run with that id, of all runs with that name, or of every run."""
        chosen = runs.c.id.is_not(None) if run is None else or_(runs.c.run_id == run, runs.c.name == run)
        lines: dict[tuple[int, str, str], Cost] = {}
        for row in _charged(connection, chosen):
            paid = {name: int(getattr(row, name) or 0) for name in _CHARGED}
            lines[row.run, row.oracle, row.kind] = Cost(row.run_id, row.name, row.oracle, row.kind, **paid)
        for row in _cached(connection, chosen):
            at = (row.run, row.oracle, row.kind)
            line = lines.get(at, Cost(row.run_id, row.name, row.oracle, row.kind))
            calls, worth = int(row.cached_calls), int(row.cached_worth)
            lines[at] = replace(line, cached_calls=calls, cached_worth=worth, questions=line.questions + calls)
        return [lines[at] for at in sorted(lines)]


def _charged(connection: Connection, chosen: ColumnElement[bool]) -> Sequence[Row[Any]]:
    is_paid, is_unknown = charges.c.state == PAID, charges.c.state == UNKNOWN
    query = (
        select(
            charges.c.run,
            runs.c.run_id,
            runs.c.name,
            charges.c.oracle,
            charges.c.kind,
            func.count(case((is_paid, 1))).label("paid_calls"),
            func.count(case((is_paid, charges.c.key)).distinct()).label("questions"),
            func.sum(charges.c.requests).label("requests"),
            func.sum(charges.c.input_tokens).label("input_tokens"),
            func.sum(charges.c.output_tokens).label("output_tokens"),
            func.sum(charges.c.cost).label("paid"),
            func.count(case((charges.c.in_doubt > 0, 1))).label("unknown_calls"),
            func.sum(charges.c.in_doubt).label("unknown"),
        )
        .join(runs, runs.c.id == charges.c.run)
        .where(chosen, or_(is_paid, is_unknown))
        .group_by(charges.c.run, runs.c.run_id, runs.c.name, charges.c.oracle, charges.c.kind)
    )
    return connection.execute(query).all()


def _cached(connection: Connection, chosen: ColumnElement[bool]) -> Sequence[Row[Any]]:
    """Answers that a run used and did not pay for itself."""
    paid_itself = and_(charges.c.key == answers.c.key, charges.c.run == uses.c.run, charges.c.state == PAID)
    query = (
        select(
            uses.c.run,
            runs.c.run_id,
            runs.c.name,
            identities.c.oracle,
            answers.c.kind,
            func.count().label("cached_calls"),
            func.sum(answers.c.cost).label("cached_worth"),
        )
        .join(runs, runs.c.id == uses.c.run)
        .join(answers, answers.c.id == uses.c.answer)
        .join(identities, identities.c.id == answers.c.identity)
        .outerjoin(charges, paid_itself)
        .where(chosen, charges.c.key.is_(None))
        .group_by(uses.c.run, runs.c.run_id, runs.c.name, identities.c.oracle, answers.c.kind)
    )
    return connection.execute(query).all()
