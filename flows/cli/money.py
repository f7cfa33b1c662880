"""The commands estimate and costs, and the question before money is spent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.table import Table

from twothirds.flows.cli.options import (
    PLAIN,
    STORE,
    DatasetOption,
    MostLabels,
    Output,
    StoreOutput,
    WhichLabels,
    action,
    command_group,
    flag,
    option,
    takes,
)
from twothirds.flows.cli.terminal import as_json, confirm, results, terminal_events
from twothirds.flows.compare.settings import CompareSettings
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.events import Events
from twothirds.models import in_usd

if TYPE_CHECKING:
    from twothirds.flows.estimate import Estimate
    from twothirds.store import Cost, Night

estimate = command_group("estimate", "estimate datasets/faces --oracle simulated?price=0.0001 --votes 5")


@estimate.default
@takes(DiscoverSettings, positional="dataset")
def estimate_discover(settings: DiscoverSettings, output: Output) -> None:
    """Say what a discovery will cost. For another command: estimate enrich, estimate compare …"""
    from twothirds.flows.discover.forecast import forecast_discovery
    from twothirds.flows.discover.preparation import prepare

    events = terminal_events()
    prepared = prepare(settings, events)
    with events.waiting("working out the price"):
        expected = forecast_discovery(prepared)
    _print_estimate(expected, output)


@action(estimate, "estimate enrich datasets/faces --features runs/faces --oracle openai:gpt-4o-mini", name="enrich")
@takes(EnrichSettings, positional="dataset")
def estimate_enrich(settings: EnrichSettings, output: Output) -> None:
    """Say what the labels will cost that a table lacks."""
    from twothirds.flows.enrich.forecast import forecast_enrichment

    _print_estimate(forecast_enrichment(settings, terminal_events()), output)


@action(estimate, "estimate compare datasets/faces --oracles openai:gpt-4o-mini simulated", name="compare")
@takes(CompareSettings, positional="dataset")
def estimate_compare(settings: CompareSettings, output: Output) -> None:
    """Say what a comparison of oracles will cost."""
    from twothirds.flows.compare.forecast import forecast_comparison
    from twothirds.flows.compare.preparation import prepare_comparison

    events = terminal_events()
    prepared = prepare_comparison(settings, events)
    with events.waiting("working out the price"):
        expected = forecast_comparison(prepared)
    _print_estimate(expected, output)


@action(estimate, "estimate report runs/faces --target weight", name="report")
def estimate_report(
    run: Annotated[str, option("RUN", "a run folder")],
    /,
    *,
    target: Annotated[str, option("COLUMN", "the column that is to be predicted")],
    dataset: DatasetOption = None,
    output: Output = PLAIN,
) -> None:
    """Say what the controls of a report with --target will cost."""
    from twothirds.flows.runs import forecast_control
    from twothirds.reports import Run

    _print_estimate(forecast_control(Run(Path(run)), target, dataset, terminal_events()), output)


@action(estimate, "estimate rationale runs/faces --labels disputed", name="rationale")
def estimate_rationale(
    run: Annotated[str, option("RUN", "a run folder")],
    /,
    *,
    labels: WhichLabels = "doubtful",
    limit: MostLabels = 20,
    store: Annotated[str | None, option("STORE", "URL or path of the store (default: the run's)")] = None,
    dataset: DatasetOption = None,
    output: Output = PLAIN,
) -> None:
    """Say what asking why will cost."""
    from twothirds.flows.runs import RationaleRequest, forecast_reasons
    from twothirds.reports import Run

    request = RationaleRequest(labels, limit, store=store, dataset=dataset)
    _print_estimate(forecast_reasons(Run(Path(run)), request, terminal_events()), output)


def costs(
    run: Annotated[str | None, option("RUN", "a run folder, its name, its id or the end of it (default: all)")] = None,
    /,
    *,
    nights: Annotated[bool, flag("a line for each run: when, how it ended, what it cost, and what to do")] = False,
    output: StoreOutput = STORE,
) -> None:
    from twothirds.flows.settings import open_store
    from twothirds.store import StoreError

    store, chosen = open_store(output.store, terminal_events()), Path(run).name if run else None
    found = store.costs.nights(chosen) if nights else []
    rows = [] if nights else store.costs.lines(chosen)
    if run and not found and not rows:
        raise StoreError(f"no run {run!r} in this store: `twothirds costs` lists those that are")
    if output.json:
        print(as_json([*map(asdict, found), *map(asdict, rows)]))
    elif nights:
        _print_nights(found)
    else:
        _print_costs(rows)


def ask_on_terminal(yes: bool, events: Events) -> Callable[[str], None]:
    """Agrees to a bill: `yes` does, or a person at a terminal. Raises UsageError where nobody does."""

    def agree(bill: str) -> None:
        if yes:
            events.say(bill)
        elif not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(f"{bill}: give --budget USD, or --yes to spend that; nothing was asked yet")
        elif not confirm([bill]):
            raise UsageError("nothing was asked or spent: give --budget USD for a limit of your own")

    return agree


def _print_estimate(expected: Estimate, output: Output) -> None:
    if output.json:
        print(as_json(expected.to_json()))
        return
    for line in expected.lines():
        results().print(line)


COUNTS = {
    "questions": "questions",
    "asked": "paid_calls",  # of which some may be free
    "cached": "cached_calls",
    "requests": "requests",
    "tokens in": "input_tokens",
    "tokens out": "output_tokens",
}
SUMS = {"USD": "paid", "unknown": "unknown", "USD saved": "cached_worth"}


def _figures(rows: list[Cost]) -> list[str]:
    def total(name: str) -> int:
        return sum(getattr(row, name) for row in rows)

    sums = [in_usd(total(name), at_most=name == "unknown").removesuffix(" USD") for name in SUMS.values()]
    return [f"{total(name):,}" for name in COUNTS.values()] + sums


def saved_by_sharing(rows: list[Cost]) -> str | None:
    """What the plan has saved: labels that shared a request, against a request for each of them."""
    shared = [row for row in rows if row.requests and row.paid_calls > row.requests]
    if not shared:
        return None
    calls, requests, paid = (sum(getattr(row, name) for row in shared) for name in ("paid_calls", "requests", "paid"))
    return (
        f"{calls:,} questions shared {requests:,} requests for {in_usd(paid)}; "
        f"asked one by one they would have taken {calls - requests:,} requests more"
    )


def _print_costs(rows: list[Cost]) -> None:
    from twothirds.store import short_id

    table = Table()
    words = ("run", "began", "oracle", "kind")
    for heading in (*words, *COUNTS, *SUMS):
        table.add_column(heading, justify="left" if heading in words else "right")
    for row in rows:
        began = f"{datetime.fromtimestamp(row.started_at, UTC):%Y-%m-%d}"
        table.add_row(f"{row.name} {short_id(row.run_id)}", began, row.oracle, row.kind, *_figures([row]))
    if len(rows) > 1:
        table.add_section()
        table.add_row("total", "", "", "", *_figures(rows))
    results().print(table)
    if (line := saved_by_sharing(rows)) is not None:
        results().print(line)
    if calls := sum(row.unknown_calls for row in rows):
        most = in_usd(sum(row.unknown for row in rows), at_most=True)
        results().print(
            f"the cost of {calls:,} request{'' if calls == 1 else 's'} is not known: at most {most} more; "
            "`twothirds store settle` books what the bill shows"
        )


def _print_nights(nights: list[Night]) -> None:
    """The latest last, and below the table what is to be done."""
    from twothirds.store import short_id

    def usd(amount: int, *, at_most: bool = False) -> str:
        return in_usd(amount, at_most=at_most).removesuffix(" USD")

    table = Table()
    for heading in ("began (UTC)", "run", "command", "oracle", "state"):
        table.add_column(heading)
    for heading in ("questions", "USD", "unknown"):
        table.add_column(heading, justify="right")
    todo = []
    for night in reversed(nights):
        began, run = datetime.fromtimestamp(night.started_at, UTC), f"{night.name} {short_id(night.run_id)}"
        sums = usd(night.paid), usd(night.unknown, at_most=True)
        table.add_row(
            f"{began:%Y-%m-%d %H:%M}", run, night.flow, night.oracle, night.state, f"{night.questions:,}", *sums
        )
        if night.todo:
            todo.append(f"{run}: {night.todo}")
    table.add_section()
    failed = sum(night.failed for night in nights)
    paid, unknown = sum(night.paid for night in nights), sum(night.unknown for night in nights)
    asked = f"{sum(night.questions for night in nights):,}"
    table.add_row("total", "", "", "", f"{failed} failed", asked, usd(paid), usd(unknown, at_most=True))
    results().print(table)
    for line in todo or ["nothing is to be done"]:
        results().print(line, soft_wrap=True)
