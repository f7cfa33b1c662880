"""The discover flow, and `discover` from Python."""

from typing import TYPE_CHECKING

from flows import on_first_use
from flows.discover.settings import OF_THE_STRATEGY, SUBSET, DiscoverSettings

if TYPE_CHECKING:
    from flows.discover.flow import Run, discover, discover_flow, run_discovery, run_flow
    from flows.discover.loop import Finding, Limits, Loop, StopReason
    from flows.discover.outcome import Outcome
    from flows.discover.preparation import RUNS, Prepared, RunForecast, forecast, prepare

__getattr__ = on_first_use(
    __name__,
    {
        "flow": "Run discover discover_flow run_discovery run_flow",
        "loop": "Finding Limits Loop StopReason",
        "outcome": "Outcome",
        "preparation": "Prepared RUNS RunForecast forecast prepare",
    },
)
