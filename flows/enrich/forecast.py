"""What an enrichment will cost, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np

from twothirds.flows.enrich.batches import Labeller, Resources, open_oracle
from twothirds.flows.enrich.checks import check
from twothirds.flows.enrich.predict import Predictor
from twothirds.flows.enrich.propose import limits_of, sample_of
from twothirds.flows.enrich.schemas import next_table_schema
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.enrich.summary import EnrichSummary
from twothirds.flows.enrich.update import Enrichment
from twothirds.flows.estimate import (
    LIKELY,
    SAMPLE,
    Asked,
    AskedShares,
    Chances,
    Discovery,
    Estimate,
    LabelPlan,
    Pricing,
    unanswered_by,
)
from twothirds.flows.events import SILENT, Events
from twothirds.flows.settings import OutFolder, local_folder
from twothirds.models import Feature, LabelBatch, Members, Oracle
from twothirds.reports.run import RunError, TableBusy, locked
from twothirds.reports.versions import GROWING, SUMMARY, read_table
from twothirds.sources import Example, name_of
from twothirds.store import Store


@dataclass
class Pool:
    """Examples that lack labels of the same features: how many, and a random sample of them."""

    features: Sequence[Feature]
    count: int = 0
    sample: list[Example] = field(default_factory=list)

    def add(self, example: Example, rng: np.random.Generator) -> None:
        self.count += 1
        place = len(self.sample) if len(self.sample) < SAMPLE else int(rng.integers(self.count))
        if place < SAMPLE:
            self.sample[place : place + 1] = [example]

    def plan(self, votes: int, shares: AskedShares | None, chances: Chances) -> Iterator[Asked]:
        """Of all that is lacking, or of what is not predicted."""
        times = self.count / len(self.sample)
        return LabelPlan(votes, chances).of_pool(self.sample, self.features, times, shares)


def forecast_enrichment(settings: EnrichSettings, events: Events = SILENT) -> Estimate:
    """Of the labels that the table lacks: the data set is read through, and nothing is asked or written."""
    folder, features = check(settings)
    oracle, store = open_oracle(settings, events)
    out = _table_folder(settings.out) if settings.out else OutFolder(folder)
    table = read_table(folder)
    same = settings.model_copy(update={"votes": table.table_schema.votes}) if table.table_schema.columns else settings
    table.define(next_table_schema(table.table_schema, features, table.table_schema.oracle, same))
    labeller = Labeller(settings, "", "", Resources(events))
    work = Enrichment(table, features, labeller, _ask_nothing, backfill=settings.backfill, in_flight=1)
    with events.waiting(f"reading {settings.dataset} and working out the price"):
        pools = _pools(work, settings)
        total, words = Estimate(), list[str]()
        for pool in pools:
            shares = _shares(settings, folder, oracle, pool)
            total += _of_pool(pool, settings.votes, oracle, store, shares)
            words += [shares.words(settings.agree)] if shares and settings.agree is not None else []
            if settings.cheap is not None and shares is not None and shares.saves:
                cheap, _ = open_oracle(settings.model_copy(update={"oracle": settings.cheap}), events)
                total += _of_pool(pool, 1, cheap, store)
                words.append(f"{settings.cheap.partition('?')[0]} labels everything first")
        if settings.propose:
            total += _of_proposals(settings, oracle)
    spent, _ = store.runs.spent(settings.scope(out.place, oracle.identity.to_json(), table.table_schema.version))
    return replace(
        total,
        dataset=name_of(settings.dataset),
        oracle=settings.oracle.partition("?")[0],
        examples=sum(pool.count for pool in pools),
        spent=spent,
        budget_left=settings.budget_left(store),
        assumed="; ".join(dict.fromkeys(words)),
    )


def _table_folder(out: str) -> OutFolder:
    """The folder of a table that is read. One elsewhere is fetched, while nobody on this machine enriches its copy."""
    with locked(local_folder(out), "enrichment", TableBusy) if "://" in out else nullcontext():
        return OutFolder.of(out, SUMMARY, writable=False, growing=GROWING)


def _ask_nothing(_labeller: Labeller, _batch: LabelBatch) -> NoReturn:
    raise AssertionError("an estimate asks nothing")


def _pools(work: Enrichment, settings: EnrichSettings) -> list[Pool]:
    pools, rng = dict[tuple[Feature, ...], Pool](), np.random.default_rng(0)
    for example, features in work.lacking(settings.dataset, settings.columns):
        pools.setdefault(features, Pool(features)).add(example, rng)
    return list(pools.values())


def _of_pool(pool: Pool, votes: int, oracle: Oracle, store: Store, shares: AskedShares | None = None) -> Estimate:
    members = Members.alone(oracle)
    pricing = Pricing(members, unanswered_by(members, store))
    in_full = partial(pool.plan, votes, None) if shares is not None and shares.saves else None
    return pricing.estimate(partial(pool.plan, votes, shares), in_full=in_full)


def _shares(settings: EnrichSettings, folder: Path, oracle: Oracle, pool: Pool) -> AskedShares | None:
    """None where no label is predicted."""
    if settings.agree is None:
        return None
    promise, left = settings.promise, _left_before(folder, settings, pool.features)
    if left is None:
        return AskedShares.expected(pool.count, len(pool.features), promise)
    stored = (
        Predictor(settings, folder, folder, oracle.identity.to_json(), sampling_number="").read(pool.features)
        is not None
    )
    return AskedShares.as_before(pool.count, promise, left, stored=stored)


PREDICTING_TERMS = ("agree", "delta", "embedder", "cheap", "uncertified")


def _left_before(folder: Path, settings: EnrichSettings, features: Sequence[Feature]) -> tuple[float, ...] | None:
    """Of each feature, which share the last run of the table asked of what it did not learn from; None where it
    predicted nothing, or other features, or on other terms."""
    try:
        earlier = EnrichSummary.read(folder)
    except RunError:
        return None
    chosen = settings.model_dump(mode="json")
    if any(earlier.settings.get(name) != chosen[name] for name in PREDICTING_TERMS):
        return None
    of_last = {
        entry["feature"]: entry["certificate"] for entry in earlier.certificates if entry["version"] == earlier.version
    }
    if not any(of_last.values()) or not all(feature.name in of_last for feature in features):
        return None
    last, without = [of_last[feature.name] for feature in features], 0.0 if settings.leaves else 1.0
    return tuple(
        1 - certificate["covered"] / certificate["population"] if certificate else without for certificate in last
    )


def _of_proposals(settings: EnrichSettings, oracle: Oracle) -> Estimate:
    """As if nothing were stored."""
    examples = sample_of(settings, oracle)
    limits = limits_of(settings, oracle)
    work = Discovery(examples, limits.queries, labels_after=limits.labels_after, votes=settings.votes)
    estimated = Pricing(Members.alone(oracle)).estimate(work.plan)
    return replace(estimated, features=len(work.found(LIKELY)))
