"""The discover flow, and `discover` from Python."""

from typing import TYPE_CHECKING

from flows import on_first_use
from flows.discover.settings import OF_THE_STRATEGY, SUBSET, DiscoverSettings

if TYPE_CHECKING:
    from flows.discover.flow import Run, discover, discover_flow, run_discovery, run_flow
    from flows.discover.forecast import (
        AGREE,
        PricedPlan,
        RunForecast,
        about_usd,
        forecast_discovery,
        plans_of,
        price_of,
    )
    from flows.discover.given import about_of, read_features, with_run_exemplars
    from flows.discover.loop import Finding, Limits, Loop, StopReason
    from flows.discover.outcome import Outcome
    from flows.discover.predicted_price import AskedShares, label_cells, predicted_range
    from flows.discover.preparation import RUNS, Prepared, prepare
    from flows.discover.rehearsal import (
        FOUND,
        SAMPLE,
        Measuring,
        PriceRange,
        RandomQuestions,
        RehearsedOracle,
        draw,
        forecast_of,
        is_known,
        is_paid,
        made_up_feature,
        price_range,
        unanswered_by,
    )
    from flows.discover.savings import Savings

__getattr__ = on_first_use(
    __name__,
    {
        "flow": "Run discover discover_flow run_discovery run_flow",
        "forecast": "AGREE PricedPlan RunForecast about_usd forecast_discovery plans_of price_of",
        "given": "about_of read_features with_run_exemplars",
        "loop": "Finding Limits Loop StopReason",
        "outcome": "Outcome",
        "predicted_price": "AskedShares label_cells predicted_range",
        "preparation": "Prepared RUNS prepare",
        "rehearsal": "FOUND Measuring PriceRange RandomQuestions RehearsedOracle SAMPLE draw forecast_of is_known "
        "is_paid made_up_feature price_range unanswered_by",
        "savings": "Savings",
    },
)
