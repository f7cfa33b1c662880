"""The commands for data sets that grow: enrich labels what is new, rediscover proposes new features."""

from __future__ import annotations

import argparse
import json

from flows.options import add_options, read_options
from flows.run_commands import Command

ENRICH_EXAMPLE = (
    "example: python -m flows enrich datasets/faces --features runs/faces --oracle contrastive --out enriched/faces"
)
REDISCOVER_EXAMPLE = (
    "example: python -m flows rediscover datasets/faces --table enriched/faces --oracle contrastive --queries 20"
)
DONE = 0


def add_enrich_commands(command: Command) -> None:
    from flows.enrich_settings import EnrichSettings
    from flows.rediscover_settings import RediscoverSettings

    add_options(
        command("enrich", "label what is new in a data set with features already found", ENRICH_EXAMPLE, _enrich),
        EnrichSettings,
        positional="dataset",
    )
    add_options(
        command(
            "rediscover", "propose features that tell apart what known ones do not", REDISCOVER_EXAMPLE, _rediscover
        ),
        RediscoverSettings,
        positional="dataset",
    )


def _rediscover(arguments: argparse.Namespace) -> int:
    from flows.rediscover_settings import RediscoverSettings

    settings = read_options(arguments, RediscoverSettings)
    from flows.display import TerminalDisplay, displaying
    from flows.terminal import messages

    with displaying(TerminalDisplay(messages())):
        from flows.rediscover import PROPOSALS, run_flow

        rows = run_flow(settings)
    lines = [f"{row['name']} ({row['share']:.0%}): {row['definition']}" for row in rows] or ["nothing new"]
    lines.append(f"written to {settings.table}/{PROPOSALS}")
    print(json.dumps(rows, indent=2, ensure_ascii=False) if arguments.json else "\n".join(lines))
    return DONE


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
