"""The command `enrich`."""

from __future__ import annotations

from flows.cli.options import Output, takes
from flows.cli.terminal import print_result, terminal_display
from flows.enrich.settings import EnrichSettings

DONE = 0


@takes(EnrichSettings, positional="dataset")
def enrich(settings: EnrichSettings, output: Output) -> int:
    from flows.enrich.flow import check, run_flow

    folder, _ = check(settings)
    summary = run_flow(settings, terminal_display())
    print_result(summary.to_json(), [*summary.lines(), f"written to {folder}"], json=output.json)
    return DONE
