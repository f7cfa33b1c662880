"""The command `replicate`."""

from __future__ import annotations

from flows.cli.options import Output, takes
from flows.cli.terminal import print_result, terminal_display
from flows.replicate import ReplicateSettings, run_flow

DONE = 0


@takes(ReplicateSettings)
def replicate(settings: ReplicateSettings, output: Output) -> int:
    summary = run_flow(settings, terminal_display())
    lines = [f"{row['verdict']}: {row['claim']} ({row['runs']:,} runs)" for row in summary]
    print_result(summary, [*lines, f"written to {settings.out}"], json=output.json)
    return DONE
