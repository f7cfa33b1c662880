"""The discover flow, and `discover` from Python."""

from typing import TYPE_CHECKING

from flows import on_first_use
from flows.discover.settings import OF_THE_STRATEGY, SUBSET, WORKING_SET, DiscoverSettings

if TYPE_CHECKING:
    from flows.discover.findings import Finding, StopReason
    from flows.discover.flow import Run, discover, discover_flow, run_discovery, run_flow
    from flows.discover.forecast import forecast_discovery, price_of
    from flows.discover.known import about_of, read_features, with_run_exemplars
    from flows.discover.live import AddFeature, AskAbout, CommandProblem, Veto, read_command
    from flows.discover.loop import Limits, Loop
    from flows.discover.outcome import Outcome
    from flows.discover.preparation import RUNS, Prepared, as_rows, prepare

__getattr__ = on_first_use(
    __name__,
    {
        "flow": "Run discover discover_flow run_discovery run_flow",
        "forecast": "forecast_discovery price_of",
        "known": "about_of read_features with_run_exemplars",
        "findings": "Finding StopReason",
        "live": "AddFeature AskAbout Veto CommandProblem read_command",
        "loop": "Limits Loop",
        "outcome": "Outcome",
        "preparation": "Prepared RUNS as_rows prepare",
    },
)
