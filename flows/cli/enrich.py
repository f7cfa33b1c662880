"""The command `enrich`."""

from __future__ import annotations

from flows.cli.options import Output, takes
from flows.cli.terminal import terminal_display
from flows.enrich import EnrichSettings


@takes(EnrichSettings, positional="dataset")
def enrich(settings: EnrichSettings, output: Output) -> None:
    from flows.enrich import check, run_flow

    folder, _ = check(settings)
    summary = run_flow(settings, terminal_display())
    output.print(summary.to_json(), [*summary.lines(), f"written to {folder}"])
