"""What all runs have cost so far, over time, by run and by oracle: from the books of the store, and from runs that it
does not know."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fastapi.responses import Response
from markupsafe import Markup

from twothirds.reports.run import without_paths
from twothirds.store import Cost
from twothirds.studio.catalog import RunEntry
from twothirds.studio.pages import StudioPages, for_staff
from twothirds.studio.review import Visitor
from twothirds.studio.web import Series, stems_over_time, steps_over_time, usd

MICRO = 1_000_000
MOST_LISTED = 300
DRAWN = 5  # oracles with a line of their own
OTHERS, TOTAL = "all others", "in all"


@dataclass(frozen=True)
class PaidRun:
    """Of one run to one oracle."""

    at: float  # seconds since 1970
    run_id: str
    name: str
    flow: str
    oracle: str
    usd: float
    unknown_usd: float = 0.0  # what requests that never reported their cost may come to, at most
    questions: int = 0
    key: str = ""  # of the run, where it is served

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M")


def spendings(lines: Iterable[Cost], states: Sequence[Mapping[str, Any]], entries: Sequence[RunEntry]) -> list[PaidRun]:
    """The first one first. A run that another store has paid for counts as its run.json says."""
    began = {state["run_id"]: state for state in states}
    keys = {entry.summary.run_id: entry.key for entry in entries}
    found: dict[tuple[str, str], PaidRun] = {}
    for line in lines:
        state = began.get(line.run_id, {})
        oracle = without_paths(line.oracle)
        at = (line.run_id, oracle)
        known = found.get(at)
        found[at] = PaidRun(
            at=float(state.get("started_at", 0.0)),
            run_id=line.run_id,
            name=line.name,
            flow=str(state.get("flow", "")),
            oracle=oracle,
            usd=(known.usd if known else 0.0) + line.paid / MICRO,
            unknown_usd=(known.unknown_usd if known else 0.0) + line.unknown / MICRO,
            questions=(known.questions if known else 0) + line.questions,
            key=keys.get(line.run_id, ""),
        )
    for entry in entries:
        summary = entry.summary
        if summary.run_id not in began:
            with suppress(ValueError):  # a time that cannot be read
                found[summary.run_id, ""] = PaidRun(
                    at=datetime.fromisoformat(summary.finished_at).timestamp(),
                    run_id=summary.run_id,
                    name=entry.name,
                    flow="discover",
                    oracle=entry.oracle,
                    usd=entry.usd,
                    unknown_usd=summary.unknown_usd or 0.0,
                    questions=summary.paid_calls + summary.cached_calls,
                    key=entry.key,
                )
    return sorted(found.values(), key=lambda paid: (paid.at, paid.run_id))


@dataclass(frozen=True)
class CostChart:
    total: float
    unknown: float
    oracles: list[tuple[str, str, float]]  # name, style of its line, USD
    growth: Markup
    payments: Markup


def chart_of(spent: Sequence[PaidRun], now: float) -> CostChart:
    """The dearest oracles have lines of their own; what is unknown is drawn above the total."""
    by_oracle: dict[str, float] = defaultdict(float)
    for paid in spent:
        by_oracle[paid.oracle] += paid.usd + paid.unknown_usd
    dearest = sorted((name for name, amount in by_oracle.items() if amount), key=lambda name: -by_oracle[name])
    style = {name: f"s{place}" for place, name in enumerate(dearest[:DRAWN], start=1)}
    styles = style | dict.fromkeys(dearest[DRAWN:], "rest")
    total, unknown = sum(run.usd for run in spent), sum(run.unknown_usd for run in spent)
    lines = [_growth(TOTAL, "total", spent, now)]
    lines += [_growth(name, style[name], [run for run in spent if run.oracle == name], now) for name in style]
    if dearest[DRAWN:]:
        lines.append(_growth(OTHERS, "rest", [run for run in spent if run.oracle in dearest[DRAWN:]], now))
    if unknown:
        lines.append(_growth("at most, with what is not known", "most", spent, now, unknown=True))
    stems = [
        Series(f"{run.name}, {run.oracle}: {usd(run.usd)}", [run.at], [run.usd], styles[run.oracle])
        for run in spent
        if run.usd
    ]
    legend = [(name, style[name], sum(run.usd for run in spent if run.oracle == name)) for name in style]
    if rest := dearest[DRAWN:]:
        legend.append((OTHERS, "rest", sum(run.usd for run in spent if run.oracle in rest)))
    span = Series("", [spent[0].at, now], [0.0, 0.0], "none")
    return CostChart(
        total=total,
        unknown=unknown,
        oracles=legend,
        growth=steps_over_time("What all runs have cost, growing with time", lines),
        payments=stems_over_time("What each run has cost", [*stems, span]),
    )


def _growth(name: str, style: str, spent: Sequence[PaidRun], now: float, *, unknown: bool = False) -> Series:
    x, y, total = [], [], 0.0
    for paid in spent:
        total += paid.usd + (paid.unknown_usd if unknown else 0.0)
        x.append(paid.at)
        y.append(total)
    return Series(f"{name}: {usd(total)}", [*x, max(now, x[-1])], [*y, total], style)


class CostPages(StudioPages):
    @for_staff("GET /costs")
    def costs(self, visitor: Visitor) -> Response:
        spent = spendings(self._config.costs(), self._config.states(), self._run_catalog.entries())
        return self.render(
            "costs.html",
            visitor,
            spent=spent[::-1][:MOST_LISTED],
            listed=len(spent),
            chart=chart_of(spent, time.time()) if spent else None,
            most=max((paid.usd for paid in spent), default=0.0),
        )
