"""The command `compare`: parse, call the flow, print."""

from __future__ import annotations

import argparse
import json
from typing import Any

from flows.cli.options import add_options, read_options
from flows.cli.runs import Command
from flows.cli.terminal import as_json

EXAMPLE = "example: python -m flows compare datasets/faces --oracles contrastive 'simulated?flip=0.1' --queries 10"
ABOUT = "put the same questions to several oracles: where they differ, who is right, what each costs"
DONE = 0


def add_compare_command(command: Command) -> None:
    from flows.compare.settings import CompareSettings

    add_options(command("compare", ABOUT, EXAMPLE, _compare), CompareSettings, positional="dataset")


def _compare(arguments: argparse.Namespace) -> int:
    from flows.compare.settings import CompareSettings

    settings = read_options(arguments, CompareSettings)
    from flows.cli.progress import TerminalDisplay
    from flows.cli.terminal import messages
    from flows.compare.preparation import prepare_comparison

    prepared = prepare_comparison(settings, TerminalDisplay(messages()))
    from flows.compare.flow import run_flow

    result = run_flow(prepared)
    if arguments.json:
        text = (prepared.folder / "comparison.json").read_text(encoding="utf-8")
        print(as_json(json.loads(text)))
    else:
        _print(result)
    return DONE


def _print(result: dict[str, Any]) -> None:
    from rich.table import Table

    from flows.cli.terminal import results

    out = results()
    table = Table()
    for heading, cell in result["summary"][0].items():
        table.add_column(heading, justify="left" if isinstance(cell, str) else "right")
    for row in result["summary"]:
        table.add_row(*map(_shown, row.values()))
    out.print(table)
    for sentence in result["verdict"]:
        out.print(sentence)
    out.print(f"written to {result['page']}")


def _shown(cell: object) -> str:
    return f"{cell:,.4f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)
