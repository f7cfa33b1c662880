"""The command `rediscover`."""

from __future__ import annotations

from flows.cli.options import Output, takes
from flows.cli.terminal import showing
from flows.enrich.rediscover import PROPOSALS, RediscoverSettings, run_flow


@takes(RediscoverSettings, positional="dataset")
def rediscover(settings: RediscoverSettings, output: Output) -> None:
    with showing():
        rows = run_flow(settings)
    lines = [f"{row['name']} ({row['share']:.0%}): {row['definition']}" for row in rows] or ["nothing new"]
    output.print(rows, [*lines, f"written to {settings.table}/{PROPOSALS}"])
