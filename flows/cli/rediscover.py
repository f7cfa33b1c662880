"""The command `rediscover`."""

from __future__ import annotations

from flows.cli.options import Output, takes
from flows.cli.terminal import terminal_display
from flows.enrich import PROPOSALS, RediscoverSettings, run_rediscover_flow


@takes(RediscoverSettings, positional="dataset")
def rediscover(settings: RediscoverSettings, output: Output) -> None:
    rows = run_rediscover_flow(settings, terminal_display())
    lines = [f"{row['name']} ({row['share']:.0%}): {row['definition']}" for row in rows] or ["nothing new"]
    output.print(rows, [*lines, f"written to {settings.table}/{PROPOSALS}"])
