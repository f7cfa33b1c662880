"""The commands for data sets that grow: enrich labels what is new, rediscover proposes new features."""

from __future__ import annotations

import argparse

from flows.cli.options import add_options, read_options
from flows.cli.runs import Command
from flows.cli.terminal import print_result

ENRICH_EXAMPLE = (
    "example: python -m flows enrich datasets/faces --features runs/faces --oracle contrastive --out enriched/faces"
)
REDISCOVER_EXAMPLE = (
    "example: python -m flows rediscover datasets/faces --table enriched/faces --oracle contrastive --queries 20"
)
DONE = 0


def add_enrich_commands(command: Command) -> None:
    from flows.enrich.settings import EnrichSettings, RediscoverSettings

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
    from flows.enrich.settings import RediscoverSettings

    settings = read_options(arguments, RediscoverSettings)
    from flows.cli.progress import TerminalDisplay
    from flows.cli.terminal import messages
    from flows.enrich.rediscover import PROPOSALS, run_flow

    rows = run_flow(settings, TerminalDisplay(messages()))
    lines = [f"{row['name']} ({row['share']:.0%}): {row['definition']}" for row in rows] or ["nothing new"]
    lines.append(f"written to {settings.table}/{PROPOSALS}")
    print_result(rows, lines, json=arguments.json)
    return DONE


def _enrich(arguments: argparse.Namespace) -> int:
    from flows.enrich.settings import EnrichSettings

    settings = read_options(arguments, EnrichSettings)
    from flows.cli.progress import TerminalDisplay
    from flows.cli.terminal import messages
    from flows.enrich.flow import check, run_flow

    folder, _ = check(settings)
    summary = run_flow(settings, TerminalDisplay(messages()))
    print_result(summary.to_json(), [*summary.lines(), f"written to {folder}"], json=arguments.json)
    return DONE
