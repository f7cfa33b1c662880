"""What a comparison will cost, before anything is spent."""

from __future__ import annotations

from functools import partial

from flows.compare.ask_oracles import batches_of
from flows.compare.preparation import PreparedComparison, people_of
from flows.discover import (
    FOUND,
    SAMPLE,
    Measuring,
    PriceRange,
    RehearsedOracle,
    RunForecast,
    draw,
    is_paid,
    made_up_feature,
    price_of,
    price_range,
    unanswered_by,
)
from models import Poll
from models.people import RecordedVotes
from sources import Example


def forecast_comparison(prepared: PreparedComparison) -> RunForecast:
    """Sends nothing to any server."""
    prices = [price for index in range(len(prepared.built)) for price in _prices(prepared, index)]
    price, settings = sum(prices, PriceRange()), prepared.settings
    return RunForecast(
        dataset=prepared.dataset.name,
        oracle=" and ".join(text.partition("?")[0] for text in settings.oracles),
        examples=len(prepared.examples),
        price=price,
        calls=price.calls,
    )


def _prices(prepared: PreparedComparison, index: int) -> list[PriceRange]:
    """Of one oracle: what it is asked like all others, and the discovery that it makes by itself."""
    oracle, settings = prepared.built[index], prepared.settings
    if isinstance(oracle, RecordedVotes) or not is_paid(oracle, prepared.examples):
        return []
    measured = Measuring(prepared.examples)
    rows = prepared.people_rows if index == people_of(settings) else range(len(prepared.examples))
    sample = draw([prepared.examples[row] for row in rows], SAMPLE)
    weight = len(rows) / len(sample)
    asked = price_range(
        partial(_rehearse, prepared, index, sample),
        oracle,
        measured,
        weight=lambda _: weight,
        unanswered=unanswered_by(oracle, prepared.store),
    )
    discovers = settings.own_discovery or (prepared.features is None and index == 0)
    return [asked, price_of(prepared.discovery_by(index))] if discovers else [asked]


def _rehearse(prepared: PreparedComparison, index: int, sample: list[Example], rehearsal: RehearsedOracle) -> int:
    votes, queries = prepared.settings.votes_of(index), prepared.settings.queries
    poll = Poll(rehearsal, sample, votes)
    poll.compare(prepared.questions)
    found = queries if rehearsal.worst else round(FOUND * queries)
    features = prepared.features or tuple(map(made_up_feature, range(found)))
    for batch in batches_of(features, len(prepared.examples), votes):
        poll.label(batch)
    return 0
