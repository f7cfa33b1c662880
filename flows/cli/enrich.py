"""The commands enrich and rediscover."""

from __future__ import annotations

from flows.cli.options import Output, takes
from flows.cli.terminal import terminal_display
from flows.enrich import EnrichSettings, RediscoverSettings


@takes(EnrichSettings, positional="dataset")
def enrich(settings: EnrichSettings, output: Output) -> None:
    from flows.prefect_api import starting_prefect

    with starting_prefect():
        from flows.enrich import check, run_flow

        folder, _ = check(settings)
    summary = run_flow(settings, terminal_display())
    output.print(summary.to_json(), [*summary.lines(), f"written to {folder}"])


@takes(RediscoverSettings, positional="dataset")
def rediscover(settings: RediscoverSettings, output: Output) -> None:
    from flows.prefect_api import starting_prefect

    with starting_prefect():
        from flows.enrich import PROPOSALS, run_rediscover_flow

    rows = run_rediscover_flow(settings, terminal_display())
    lines = [f"{row['name']} ({row['share']:.0%}): {row['definition']}" for row in rows] or ["nothing new"]
    output.print(rows, [*lines, f"written to {settings.table}/{PROPOSALS}"])
