"""The command that labels what is new: enrich."""

from __future__ import annotations

import argparse
import json

from flows.options import add_options, read_options
from flows.run_commands import Command

ENRICH_EXAMPLE = (
    "example: python -m flows enrich datasets/faces --features runs/faces --oracle contrastive --out enriched/faces"
)
DONE = 0


def add_enrich_command(command: Command) -> None:
    from flows.enrich_settings import EnrichSettings

    add_options(
        command("enrich", "label what is new in a data set with features already found", ENRICH_EXAMPLE, _enrich),
        EnrichSettings,
        positional="dataset",
    )


def _enrich(arguments: argparse.Namespace) -> int:
    from flows.enrich_settings import EnrichSettings

    settings = read_options(arguments, EnrichSettings)
    from flows.display import TerminalDisplay, displaying
    from flows.terminal import messages

    with displaying(TerminalDisplay(messages())):
        from flows.enrich import check, run_flow
        from flows.enrich_summary import told

        check(settings)
        summary = run_flow(settings)
    print(json.dumps(summary, indent=2, ensure_ascii=False) if arguments.json else "\n".join(told(summary)))
    return DONE
