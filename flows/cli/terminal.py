"""How anything gets on a terminal. Ids, names and paths may hold whatever somebody wrote: what would move the cursor,
change colours or turn a line around is shown as an escape, in tables, lines and JSON alike.

How results and messages are printed: tables on stdout, messages on stderr."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.discover.preparation import Prepared, RunForecast
from flows.reviewing.server_log import printable_lines
from models.oracle import MICRO
from reports.run.folder import Run
from sources.location import printable
from store import Cost, Store, StoreError


def as_json(value: Any) -> str:
    """For people and programs: the same value, with what a terminal would obey as JSON's own escapes."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(
        letter if letter == "\n" or printable(letter) == letter else json.dumps(letter)[1:-1] for letter in text
    )


def print_result(data: Any, lines: Iterable[str], *, json: bool) -> None:
    """Results go to stdout: as JSON, or as lines."""
    print(as_json(data) if json else "\n".join(map(printable, lines)))


def print_traceback(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """In place of Python's own, as `sys.excepthook`."""
    print(printable_lines("".join(traceback.format_exception(kind, error, where))), file=sys.stderr, end="")


PIPED_WIDTH = 160


class PlainConsole(Console):
    """Prints strings as they are: no markup, no colours for numbers, nothing that a terminal would obey."""

    def __init__(self, **named: Any) -> None:
        super().__init__(emoji=False, markup=False, highlight=False, **named)

    def render_str(self, text: str, **named: Any) -> Text:
        return super().render_str(printable_lines(text), **named)


def messages() -> Console:
    return PlainConsole(stderr=True)


def results() -> Console:
    return PlainConsole(width=None if sys.stdout.isatty() else PIPED_WIDTH)


def say_what_is_kept(prepared: Prepared) -> None:
    estimate = prepared.estimate()
    left = f"up to {estimate.calls_left:,} to ask, at most {estimate.usd_left:.2f} USD"
    if estimate.kept:
        messages().print(f"kept {estimate.kept:,} answers, {left}")
    else:
        messages().print(f"{estimate.examples} examples, {estimate.oracle}: {left}")


def print_features(run: Run) -> None:
    summary, out = run.summary, results()
    table = Table(title=f"{summary['dataset']['name']}: features in order of discovery", title_justify="left")
    for heading in ("#", "feature", "from", "positives", "interesting", "distinct"):
        table.add_column(heading, justify="right" if heading in ("#", "positives") else "left")
    examples = summary["dataset"]["compared"]
    for row in run.features.itertuples():
        marks = ["yes" if bool(value) else "no" for value in (row.interesting, row.distinct)]
        table.add_row(str(row.order), str(row.name), str(row.question), f"{row.positives}/{examples}", *marks)
    out.print(table)
    for row in run.features.itertuples():
        if getattr(row, "twin", "") and isinstance(row.twin, str):
            out.print(f"{row.name}: {row.twin}, by what it selects or by its words")
    out.print(
        f"{summary['features']} features, {summary['interesting_distinct']} interesting and distinct, from "
        f"{summary['queries']} queries; g {summary['g']:.3f}; stopped because of {summary['stopped_because']}",
    )
    if truth := summary.get("truth"):
        accuracy = truth["mean_balanced_accuracy"]
        out.print(
            f"truth: {truth['matched']} of {truth['of']} attributes matched"
            + (f", mean balanced accuracy {accuracy:.3f}" if accuracy is not None else ""),
        )
    out.print(
        f"{summary['paid_calls']:,} calls paid, {summary['cached_calls']:,} from the store, "
        f"{summary['cost_usd']:.4f} USD; written to {run.folder}",
    )


def print_estimate(estimate: RunForecast) -> None:
    out = results()
    out.print(
        f"{estimate.dataset} ({estimate.examples} examples) with {estimate.oracle}: at most "
        f"{estimate.calls:,} calls and {estimate.usd:.4f} USD; {estimate.kept:,} answers are kept, "
        f"{estimate.calls_left:,} calls and {estimate.usd_left:.4f} USD are left",
    )
    if estimate.requests is not None:
        out.print(
            f"likely, if every comparison finds a feature and every label takes all its votes: "
            f"{estimate.requests:,} requests, {estimate.input_tokens:,} tokens in, "
            f"{estimate.output_tokens:,} out, {estimate.usd_about:.4f} USD",
        )


def cost_rows(store: Store, which: str | None) -> list[Cost]:
    rows = store.costs(Path(which).name if which else None)
    if which and not rows:
        raise StoreError(f"no run {which!r} in this store: `python -m flows costs` lists those that are")
    return rows


def print_costs(rows: list[Cost]) -> None:
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
            *(f"{amount / MICRO:.4f}" for amount in (row.paid, row.cached_worth)),
        )
    results().print(table)
