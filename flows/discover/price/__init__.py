"""What a discovery will cost: it is rehearsed by the code that asks, with made-up answers."""

from flows.discover.price.forecast import (
    RunForecast,
    forecast_discovery,
    price_of,
)
from flows.discover.price.rehearsal import (
    FOUND,
    SAMPLE,
    AskedShares,
    Measuring,
    PriceRange,
    RandomQuestions,
    RehearsedOracle,
    draw,
    forecast_of,
    is_known,
    is_paid,
    label_cells,
    made_up_feature,
    predicted_range,
    price_range,
    unanswered_by,
)
