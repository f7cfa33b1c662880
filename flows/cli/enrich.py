"""The command `enrich`."""

from __future__ import annotations

from flows.cli.options import Output, takes
from flows.cli.terminal import showing
from flows.enrich.settings import EnrichSettings


@takes(EnrichSettings, positional="dataset")
def enrich(settings: EnrichSettings, output: Output) -> None:
    with showing():
        from flows.enrich.flow import check, run_flow
        from flows.enrich.summary import told

        folder, _ = check(settings)
        summary = run_flow(settings)
    lines = told(summary) if "waits_for" in summary else [*told(summary), f"written to {folder}"]
    output.print(summary, lines)
