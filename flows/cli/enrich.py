"""The commands enrich and rediscover."""

from __future__ import annotations

from flows.cli.errors import status_of
from flows.cli.money import agreed_budget
from flows.cli.options import Paying, takes
from flows.cli.terminal import terminal_display
from flows.enrich import EnrichSettings, RediscoverSettings


@takes(EnrichSettings, positional="dataset", output=Paying)
def enrich(settings: EnrichSettings, output: Paying) -> int:
    from flows.prefect_api import starting_prefect

    with starting_prefect():
        from flows.enrich import check, check_oracles

        folder, _ = check(settings)
        display = terminal_display(output.log)
        check_oracles(settings, display)
        from flows.enrich import forecast_enrichment, run_flow

        terms = (settings.budget, output, display, settings.oracle, settings.cheap)
        budget = agreed_budget(lambda: forecast_enrichment(settings, display), *terms)
    summary = run_flow(settings.with_budget(budget), display)
    output.print(summary.to_json(), [*summary.lines(), f"written to {folder}"])
    return status_of(summary.stopped_because)


@takes(RediscoverSettings, positional="dataset", output=Paying)
def rediscover(settings: RediscoverSettings, output: Paying) -> int:
    from flows.prefect_api import starting_prefect

    with starting_prefect():
        from flows.enrich import check_oracles

        display = terminal_display(output.log)
        check_oracles(settings, display)
        from flows.enrich import PROPOSALS, forecast_rediscovery, run_rediscover_flow

        terms = (settings.budget, output, display, settings.oracle)
        budget = agreed_budget(lambda: forecast_rediscovery(settings, display), *terms)
    found = run_rediscover_flow(settings.with_budget(budget), display)
    rows = found.rows
    lines = [f"{row['name']} ({row['share']:.0%}): {row['definition']}" for row in rows] or ["nothing new"]
    output.print(rows, [*lines, f"written to {settings.table}/{PROPOSALS}"])
    return status_of(found.stopped_because)
