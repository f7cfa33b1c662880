"""What a discovery will cost: it is rehearsed by the code that asks, with made-up answers."""

from flows.discover.price.forecast import (
    AGREE,
    LOW_DETAIL,
    PROVIDER_BATCH,
    NamedPlan,
    PricedPlan,
    RunForecast,
    about_usd,
    forecast_discovery,
    plans_of,
    price_of,
    what_is_kept,
)
from flows.discover.price.predicted import AskedShares, label_cells, predicted_range
from flows.discover.price.rehearsal import (
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
