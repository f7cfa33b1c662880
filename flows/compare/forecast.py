"""What a comparison will cost, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from twothirds.flows.compare.preparation import PreparedComparison, people_of
from twothirds.flows.discover.forecast import price_of
from twothirds.flows.estimate import Asked, Chances, Estimate, Pricing, draw, made_up_features, unanswered_by
from twothirds.flows.oracles import recorded_votes
from twothirds.models import Label, Members


def forecast_comparison(prepared: PreparedComparison) -> Estimate:
    """Sends nothing to any server."""
    asked = [index for index, oracle in enumerate(prepared.built) if recorded_votes(oracle) is None]
    return replace(
        sum((_of_oracle(prepared, index) for index in asked), Estimate()),
        dataset=prepared.dataset.name,
        oracle=" and ".join(text.partition("?")[0] for text in prepared.settings.oracles),
        examples=len(prepared.examples),
    )


def _of_oracle(prepared: PreparedComparison, index: int) -> Estimate:
    """What one oracle is asked like all others, and the discovery that it makes by itself."""
    oracle, settings = prepared.built[index], prepared.settings
    rows = prepared.people_rows if index == people_of(settings) else range(len(prepared.examples))
    sample, votes = draw([prepared.examples[row] for row in rows]), settings.votes_of(index)

    def plan(chances: Chances) -> Iterator[Asked]:
        yield Asked(prepared.questions)
        features = prepared.features or tuple(made_up_features(chances.named(settings.queries)))
        cells = ((feature, example) for example in sample for feature in features)
        labels = [Label(feature, example, voter) for feature, example in cells for voter in range(votes)]
        yield Asked(labels, len(rows) / len(sample))

    members = Members.alone(oracle)
    pricing = Pricing(members, unanswered_by(members, prepared.store))
    discovers = settings.own_discovery or (prepared.features is None and index == 0)
    return pricing.estimate(plan) + (price_of(prepared.discovery_by(index)) if discovers else Estimate())
