"""The enrich flow, which labels what is new, and rediscover."""

from typing import TYPE_CHECKING

from flows import on_first_use
from flows.enrich.settings import EnrichSettings, RediscoverSettings

if TYPE_CHECKING:
    from flows.enrich.checks import check, check_oracles
    from flows.enrich.flow import enrich, enrich_flow, nightly_flow, run_flow
    from flows.enrich.forecast import forecast_enrichment, forecast_rediscovery
    from flows.enrich.rediscover import PROPOSALS, rediscover_flow, run_rediscover_flow

__getattr__ = on_first_use(
    __name__,
    {
        "checks": "check check_oracles",
        "flow": "enrich enrich_flow nightly_flow run_flow",
        "forecast": "forecast_enrichment forecast_rediscovery",
        "rediscover": "PROPOSALS rediscover_flow run_rediscover_flow",
    },
)
