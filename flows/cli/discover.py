"""The commands discover, estimate, costs and server."""

from __future__ import annotations

import os
import signal
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.table import Table

from flows.cli.options import PLAIN, STORE, Output, StoreOutput, action, command_group, option, takes
from flows.cli.terminal import as_json, messages, results, terminal_display
from flows.discover import DiscoverSettings
from flows.settings import micro_of
from models import in_usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flows.discover import RunForecast
    from reports import Run
    from reports.run import RunSummary
    from store import Cost, Store


@takes(DiscoverSettings, positional="dataset")
def discover(settings: DiscoverSettings, output: Output) -> None:
    from flows.prefect_api import starting_prefect

    with starting_prefect():
        from flows.discover import prepare

        prepared = prepare(settings, terminal_display())
        prepared.check_oracle()
    from flows.discover import run_flow

    run = run_flow(prepared)
    if output.json:
        print(as_json(run.summary.to_json()))
    else:
        _print_features(run)


@takes(DiscoverSettings, positional="dataset")
def estimate(settings: DiscoverSettings, output: Output) -> None:
    from flows.discover import forecast

    estimated = forecast(settings, terminal_display())
    if output.json:
        print(as_json(estimated.to_json()))
    else:
        _print_estimate(estimated)


def costs(
    run: Annotated[str | None, option("RUN", "a run folder, its name or its id (default: all)")] = None,
    /,
    *,
    output: StoreOutput = STORE,
) -> None:
    from flows.settings import open_store

    rows = _cost_rows(open_store(output.store, terminal_display()), run)
    if output.json:
        print(as_json([asdict(row) for row in rows]))
    else:
        _print_costs(rows)


server = command_group("server", "server --port 4200")


@action(server, "server serve --port 4200")
@server.default
def serve(
    *,
    port: Annotated[int, option("PORT", "port to listen at")] = 4200,
    output: Output = PLAIN,  # noqa: ARG001
) -> None:
    """Keep a Prefect server running until Ctrl-C (the default)."""
    from flows.prefect_api import PASSWORD, keep_server
    from flows.settings import prefect_environment, state_folder

    os.environ.update(prefect_environment())
    with keep_server(state_folder(), port) as kept:
        messages().print(f"Prefect answers at {kept.url}; runs from this account use it. Ctrl-C ends it.")
        messages().print(
            f"In a browser {kept.url.removesuffix('/api')} asks for the password in {state_folder() / PASSWORD}; "
            "workers and `prefect` need it in PREFECT_API_AUTH_STRING.",
            soft_wrap=True,
        )
        signal.pause()


@action(server, "server stop")
def stop(*, output: Output = PLAIN) -> None:
    """Stop the server that runs have left in the background; it ends by itself too (TWOTHIRDS_SERVER_MINUTES)."""
    from flows.prefect_api import stop_background_servers
    from flows.settings import state_folder

    stopped, used = stop_background_servers(state_folder())
    lines = [f"stopped {url}" for url in stopped] + [f"{url} goes on: a run uses it" for url in used]
    output.print({"stopped": stopped, "used": used}, lines or ["no Prefect server runs in the background"])


def _print_features(run: Run) -> None:
    summary, out = run.summary, results()
    table = Table(title=f"{summary.dataset.name}: features in order of discovery", title_justify="left")
    for heading in ("#", "feature", "from", "positives", "interesting", "distinct"):
        table.add_column(heading, justify="right" if heading in ("#", "positives") else "left")
    for row in run.features.itertuples():
        marks = ["yes" if bool(value) else "no" for value in (row.interesting, row.distinct)]
        table.add_row(str(row.order), str(row.name), str(row.question), f"{row.positives}/{row.labelled}", *marks)
    out.print(table)
    for row in run.features.itertuples():
        if row.twin:
            out.print(f"{row.name}: {row.twin!s}, by what it selects or by its words")
    for line in _result_lines(summary):
        out.print(line)
    out.print(f"written to {run.folder}")


def _result_lines(summary: RunSummary) -> Iterator[str]:
    from reports.drawing import plural

    yield (
        f"{plural(summary.features, 'feature')}, {summary.interesting_distinct} interesting and distinct, from "
        f"{summary.queries} {'query' if summary.queries == 1 else 'queries'}; g {summary.g:.3f}; stopped because of "
        f"{summary.stopped_because}"
    )
    if summary.target:
        yield str(summary.target)
    if truth := summary.truth:
        accuracy = truth.mean_balanced_accuracy
        yield f"truth: {truth.matched} of {truth.of} attributes matched" + (
            f", mean balanced accuracy {accuracy:.3f}" if accuracy is not None else ""
        )
    yield from summary.unusable.lines() if summary.unusable else []
    in_all = summary.cost_usd if summary.total_usd is None else summary.total_usd
    yield (
        f"{plural(summary.paid_calls, 'question')} paid, {summary.cached_calls:,} from the store, "
        f"{in_usd(micro_of(summary.cost_usd))}; this run in all {in_usd(micro_of(in_all))}"
    )


def _print_estimate(estimate: RunForecast) -> None:
    out = results()
    most, left = (in_usd(micro_of(amount), at_most=True) for amount in (estimate.usd, estimate.usd_left))
    out.print(
        f"{estimate.dataset} ({estimate.examples} examples) with {estimate.oracle}: at most "
        f"{estimate.calls:,} calls and {most}; {estimate.kept:,} answers are kept, "
        f"{estimate.calls_left:,} calls and {left} are left",
    )
    if estimate.requests is not None:
        out.print(
            f"likely, if every comparison finds a feature and every label takes all its votes: "
            f"{estimate.requests:,} requests, {estimate.input_tokens:,} tokens in, "
            f"{estimate.output_tokens:,} out, {in_usd(micro_of(estimate.usd_about or 0.0))}",
        )


def _cost_rows(store: Store, which: str | None) -> list[Cost]:
    from store import StoreError

    rows = store.costs.lines(Path(which).name if which else None)
    if which and not rows:
        raise StoreError(f"no run {which!r} in this store: `python -m flows costs` lists those that are")
    return rows


def _print_costs(rows: list[Cost]) -> None:
    table = Table()
    headings = ("run", "oracle", "kind", "questions", "paid", "cached", "tokens in", "tokens out", "USD", "USD saved")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < 3 else "right")
    for row in rows:
        counts = (row.questions, row.paid_calls, row.cached_calls, row.input_tokens, row.output_tokens)
        table.add_row(
            f"{row.name} {row.run_id[:8]}",
            row.oracle,
            row.kind,
            *(f"{count:,}" for count in counts),
            *(in_usd(amount).removesuffix(" USD") for amount in (row.paid, row.cached_worth)),
        )
    results().print(table)
    if calls := sum(row.unknown_calls for row in rows):
        most = in_usd(sum(row.unknown for row in rows), 6)
        results().print(
            f"the cost of requests for {calls:,} questions is not known: at most {most} more; "
            "`python -m flows store settle` books what the bill shows"
        )
