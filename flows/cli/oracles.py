"""The command `oracles`: the kinds of oracle and their parameters."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from flows.cli.options import PLAIN, Output, option
from flows.cli.terminal import as_json, results
from flows.errors import UsageError
from flows.oracle_specs import KINDS, OracleKind


def oracles(kind: Annotated[str | None, option("KIND", "only this kind")] = None, /, *, output: Output = PLAIN) -> None:
    if kind is not None and kind not in KINDS:
        raise UsageError(f"unknown oracle {kind!r}: choose one of {', '.join(KINDS)}")
    chosen = {name: one for name, one in KINDS.items() if kind in (None, name)}
    if output.json:
        data = {
            name: {"form": one.form, "about": one.about, "parameters": [asdict(each) for each in one.parameters()]}
            for name, one in chosen.items()
        }
        print(as_json(data))
    else:
        _print(list(chosen.values()))


def _print(kinds: list[OracleKind]) -> None:
    from rich.table import Table

    out = results()
    for kind in kinds:
        out.print(f"{kind.form}: {kind.about}")
        table = Table(box=None, padding=(0, 2), header_style="")
        for heading in ("  parameter", "type", "default", "meaning"):
            table.add_column(heading)
        for one in kind.parameters():
            table.add_row(f"  {one.name}", one.type, one.default, one.about)
        out.print(table)
        out.print()
    out.print("parameters follow a ?, e.g. --oracle 'openai:gpt-4.1-nano?image_size=256&temperature=1'")
