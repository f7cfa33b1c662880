"""The command `replicate`."""

from __future__ import annotations

from flows.cli.options import Output, takes
from flows.cli.terminal import terminal_display
from flows.compare import ReplicateSettings, run_replicate_flow


@takes(ReplicateSettings)
def replicate(settings: ReplicateSettings, output: Output) -> None:
    summary = run_replicate_flow(settings, terminal_display())
    lines = [f"{row['verdict']}: {row['claim']} ({row['runs']:,} runs)" for row in summary]
    output.print(summary, [*lines, f"written to {settings.out}"])
