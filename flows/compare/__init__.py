"""The compare flow: the same questions to several oracles."""

from typing import TYPE_CHECKING

from flows import on_first_use
from flows.compare.settings import CompareSettings

if TYPE_CHECKING:
    from flows.compare.flow import compare_flow, run_flow
    from flows.compare.forecast import forecast_comparison
    from flows.compare.preparation import prepare_comparison

__getattr__ = on_first_use(
    __name__,
    {
        "flow": "compare_flow run_flow",
        "forecast": "forecast_comparison",
        "preparation": "prepare_comparison",
    },
)
