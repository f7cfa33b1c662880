"""The command `compare`."""

from __future__ import annotations

import json
from typing import Any

from flows.cli.options import Output, takes
from flows.cli.terminal import as_json, results, terminal_display
from flows.compare import CompareSettings


@takes(CompareSettings, positional="dataset")
def compare(settings: CompareSettings, output: Output) -> None:
    from flows.prefect_api import starting_prefect

    with starting_prefect():
        from flows.compare import prepare_comparison

        prepared = prepare_comparison(settings, terminal_display())
    from flows.compare import run_flow

    result = run_flow(prepared)
    if output.json:
        print(as_json(json.loads((prepared.folder / "comparison.json").read_text(encoding="utf-8"))))
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    from rich.table import Table

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
