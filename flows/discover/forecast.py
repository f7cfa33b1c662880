"""What a discovery will cost, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from twothirds.discovery import UNKNOWN
from twothirds.flows.discover.findings import StopReason
from twothirds.flows.discover.preparation import Prepared
from twothirds.flows.estimate import (
    LIKELY,
    AskedShares,
    Chances,
    Discovery,
    Estimate,
    KnownPrice,
    LabelPlan,
    Pricing,
    draw,
)
from twothirds.models import Members
from twothirds.reports.run import STEER


def forecast_discovery(prepared: Prepared, likely: Chances = LIKELY) -> Estimate:
    """What a discovery will take, before anything is spent and without a request to any server."""
    settings, labels_rest = prepared.settings, prepared.labelled > len(prepared.compared)
    ended, shares = has_ended(prepared), expected_shares(prepared)
    spent, _ = prepared.store.runs.spent(prepared.scope)
    return replace(
        Estimate() if ended else price_of(prepared, likely),
        dataset=prepared.dataset.name,
        oracle=str(prepared.members.identity),
        examples=prepared.labelled,
        compared=len(prepared.compared) if labels_rest else None,
        known=_known_price(prepared),
        stored=prepared.store.requests.count(prepared.scope),
        spent=spent,
        ended=ended,
        assumed=_assumed(prepared, shares) if shares else "",
        budget_left=settings.budget_left(prepared.store),
    )


def price_of(prepared: Prepared, likely: Chances = LIKELY) -> Estimate:
    """Of a whole discovery, as if nothing were stored."""
    work, shares = _work(prepared), expected_shares(prepared)
    pricing = Pricing(prepared.members)
    if shares is None or not shares.saves:
        return replace(pricing.estimate(work.plan, likely=likely), features=len(work.found(likely)))
    predicted = replace(work, predicted=shares)
    total = pricing.estimate(predicted.plan, in_full=work.plan, likely=likely)
    if prepared.cheap is not None:
        total += Pricing(Members.alone(prepared.cheap)).estimate(work.labelled_once)
    return replace(total, features=len(work.found(likely)))


def _work(prepared: Prepared) -> Discovery:
    settings, n = prepared.settings, len(prepared.compared)
    examples = prepared.dataset.examples
    return Discovery(
        compared=prepared.compared,
        queries=prepared.profile.queries,
        form=prepared.make_strategy().next_questions(1)[0],
        labels_after=prepared.profile.labels_after,
        widest=prepared.profile.widest if settings.strategy == "auto" else None,
        voters=settings.voters,
        per_question=prepared.profile.features,
        votes=settings.votes,
        exemplars=settings.exemplars,
        ask_same=bool(settings.ask_same),
        exclude=tuple(settings.excluded),
        known_features=prepared.known_features,
        known=frozenset(
            (known.feature, examples[row].digest)
            for known in prepared.known
            for row in (known.labels != UNKNOWN).nonzero()[0].tolist()
        ),
        remaining=prepared.remaining if prepared.labelled > n else (),
    )


def expected_shares(prepared: Prepared) -> AskedShares | None:
    """Of the examples that are not compared; None where no label is predicted."""
    if prepared.settings.agree is None or not prepared.remaining:
        return None
    n = len(prepared.dataset.examples)
    most = prepared.profile.queries * prepared.profile.features + len(prepared.known)
    return AskedShares.expected(n, most, prepared.settings.promise, known=len(prepared.compared))


_AT_ITS_END = (StopReason.QUERIES, StopReason.TARGET_G, StopReason.NONES, StopReason.REPEATS, StopReason.EXHAUSTED)
_ENDED = {f"stopped: {reason}" for reason in _AT_ITS_END}
_DECIDE_NOTHING = {"budget", "per", "store", "out", "wait"}


def has_ended(prepared: Prepared) -> bool:
    """Whether a run with these settings came to its end, and no command for it (`steer`) may ask more."""
    if prepared.settings.retry_unusable or (prepared.folder / STEER).exists():
        return False
    mine = _what_decides(prepared.settings.model_dump(mode="json"))
    earlier = prepared.store.runs.latest([prepared.scope])
    return any(run.status in _ENDED and _what_decides(run.settings) == mine for run in earlier)


def _what_decides(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in _DECIDE_NOTHING}


def _assumed(prepared: Prepared, shares: AskedShares) -> str:
    labels_first = prepared.settings.cheap if shares.saves else None
    first = f"; {labels_first.partition('?')[0]} labels everything first" if labels_first else ""
    return shares.words(prepared.settings.agree or 0.0) + first


def _known_price(prepared: Prepared) -> KnownPrice:
    """Of all examples that are labelled."""
    examples, features = prepared.dataset.examples, prepared.known
    if not features:
        return KnownPrice()
    rows = prepared.rows if prepared.labelled < len(examples) else list(range(len(examples)))
    unknown = sum(int((known.labels[rows] == UNKNOWN).sum()) for known in features)
    sample = draw([examples[row] for row in rows])
    plan = LabelPlan(prepared.settings.votes, LIKELY, _work(prepared).known)
    asked = plan.of(sample, prepared.known_features, len(rows) / len(sample))
    cost, _ = Pricing(prepared.members).total(asked, LIKELY)
    return KnownPrice(len(features), unknown, len(features) * len(rows) - unknown, cost.cost)
