"""What an enrichment or a rediscovery will cost, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from discovery import Comparison, Kind
from flows.discover import (
    SAMPLE,
    AskedShares,
    Loop,
    Measuring,
    PriceRange,
    RandomQuestions,
    RehearsedOracle,
    RunForecast,
    draw,
    is_known,
    is_paid,
    label_cells,
    predicted_range,
    price_range,
    unanswered_by,
)
from flows.enrich.batches import Batch, BatchLabels, Labeller, Resources, open_oracle
from flows.enrich.checks import check
from flows.enrich.flow import next_table_schema, table_folder
from flows.enrich.predict import Predictor
from flows.enrich.rediscover import limits_of, sample_of
from flows.enrich.settings import EnrichSettings, RediscoverSettings
from flows.enrich.summary import EnrichSummary
from flows.enrich.update import Enrichment
from flows.progress import SILENT, Display
from flows.settings import OutFolder
from models import Feature, Oracle, Panel
from reports.enrichment import read_table
from reports.run import RunError
from sources import Example, name_of
from store import Store


@dataclass
class _Counted:
    """How many examples would be asked about the same features, and a random sample of them."""

    features: list[Feature]
    count: int = 0
    examples: list[Example] = field(default_factory=list)

    @property
    def labels(self) -> int:
        return self.count * len(self.features)

    def add(self, example: Example, rng: np.random.Generator) -> None:
        self.count += 1
        place = len(self.examples) if len(self.examples) < SAMPLE else int(rng.integers(self.count))
        if place < SAMPLE:
            self.examples[place : place + 1] = [example]


class _CountingSubmit:
    """In place of whoever labels batches: counts them, and labels nothing."""

    def __init__(self) -> None:
        self.counted: dict[tuple[str, ...], _Counted] = {}
        self._rng = np.random.default_rng(0)

    def __call__(self, _labeller: Labeller, batch: Batch) -> _NothingLabelled:
        counted = self.counted.setdefault(tuple(feature.name for feature in batch.features), _Counted(batch.features))
        for example in batch.examples:
            counted.add(example, self._rng)
        return _NothingLabelled(batch)


@dataclass(frozen=True)
class _NothingLabelled:
    batch: Batch

    def result(self) -> BatchLabels:
        return BatchLabels(self.batch)


def forecast_enrichment(settings: EnrichSettings, display: Display = SILENT) -> RunForecast:
    """Of the labels that the table lacks: the data set is read through, and nothing is asked or written."""
    folder, features = check(settings)
    oracle, store = open_oracle(settings, "", display)
    out = table_folder(settings.out, writable=False) if settings.out else OutFolder(folder)
    table = read_table(folder)
    # Whether another oracle than before is asked is left to the run: it may have to be probed to know it.
    same = settings.model_copy(update={"votes": table.table_schema.votes}) if table.table_schema.columns else settings
    table.define(next_table_schema(table.table_schema, features, table.table_schema.oracle, same))
    submit = _CountingSubmit()
    labeller = Labeller(settings, "", "", Resources(display))
    work = Enrichment(table, features, labeller, submit, backfill=settings.backfill, in_flight=1)
    with display.waiting(f"reading {settings.dataset} and working out the price"):
        if (failure := work.run(settings.dataset, settings.columns).failure) is not None:
            raise failure
        pools = list(submit.counted.values())
        pricing = _Pricing(settings, folder, oracle, store, pools, display)
        price, assumed = pricing.price(settings.agree)
        first = pricing.labelled_first(settings.agree)
    known = is_known(oracle)
    scope = settings.scope(out.place, oracle.identity.to_json(), table.table_schema.version) if known else ""
    spent, _ = store.runs.spent(scope) if known else (0, 0)
    return RunForecast(
        dataset=name_of(settings.dataset),
        oracle=settings.oracle.partition("?")[0],
        examples=sum(pool.count for pool in pools),
        price=price,
        calls=settings.votes * sum(pool.labels for pool in pools) + sum(pool.labels for pool in first),
        spent=spent,
        assumed=assumed,
    )


@dataclass
class _Pricing:
    """What the labels of some pools cost: all of them asked, or some predicted."""

    settings: EnrichSettings
    folder: Path
    oracle: Oracle
    store: Store
    pools: list[_Counted]
    display: Display

    def price(self, agree: float | None) -> tuple[PriceRange, str]:
        """And what it assumes, in words, where labels are predicted."""
        settings, total, words = self.settings, PriceRange(), []
        for pool in self.pools:
            shares = self._shares(pool, agree) if agree is not None else None
            total += self._of(pool, settings.votes, self.oracle, shares)
            words += [shares.words(agree)] if shares and agree is not None else []
        if settings.cheap is not None and (pools := self.labelled_first(agree)):
            first, _ = open_oracle(settings.model_copy(update={"oracle": settings.cheap}), "", self.display)
            total += sum((self._of(pool, 1, first, None) for pool in pools), PriceRange())
            words.append(f"{settings.cheap.partition('?')[0]} labels everything first")
        return total, "; ".join(words)

    def labelled_first(self, agree: float | None) -> list[_Counted]:
        """The pools that a cheaper oracle labels: those of which anything may be predicted."""
        if agree is None or self.settings.cheap is None:
            return []
        return [pool for pool in self.pools if self._shares(pool, agree).saves]

    def _shares(self, pool: _Counted, agree: float) -> AskedShares:
        settings = self.settings.model_copy(update={"agree": agree})
        promise = settings.promise_at(agree, settings.delta)
        left = _left_before(self.folder, settings, pool.features)
        if left is None:
            return AskedShares.expected(pool.count, len(pool.features), promise)
        identity = self.oracle.identity.to_json() if is_known(self.oracle) else {}
        kept = Predictor(settings, self.folder, self.folder, identity).keeps(pool.features)
        return AskedShares.as_before(pool.count, promise, left, kept=kept)

    def _of(self, pool: _Counted, votes: int, oracle: Oracle, shares: AskedShares | None) -> PriceRange:
        if not is_paid(oracle, pool.examples):
            return PriceRange()

        def rehearse(rehearsal: RehearsedOracle) -> int:
            Panel(rehearsal, pool.examples, votes).label(pool.features)
            return 0

        def predict(rehearsal: RehearsedOracle, asked: AskedShares) -> None:
            cells = asked.cells(pool.examples, len(pool.features))
            label_cells(rehearsal, pool.examples, pool.features, votes, cells)

        def weight(_: Example) -> float:
            return pool.count / len(pool.examples)

        measured, unanswered = Measuring(pool.examples), unanswered_by(oracle, self.store)
        full = price_range(rehearse, oracle, measured, weight=weight, unanswered=unanswered)
        if shares is None:
            return full
        return predicted_range(full, predict, shares, oracle, measured, weight=weight, unanswered=unanswered)


PREDICTING_TERMS = ("agree", "certify", "delta", "embedder", "cheap", "uncertified")


def _left_before(folder: Path, settings: EnrichSettings, features: list[Feature]) -> tuple[float, ...] | None:
    """Of each feature, which share the last run of the table asked of what it did not learn from; None where it
    predicted nothing, or other features, or on other terms."""
    try:
        earlier = EnrichSummary.read(folder)
    except RunError:
        return None
    given = settings.model_dump(mode="json")
    if any(earlier.settings.get(name) != given[name] for name in PREDICTING_TERMS):
        return None
    of_last = {
        entry["feature"]: entry["certificate"] for entry in earlier.certificates if entry["version"] == earlier.version
    }
    if not any(of_last.values()) or not all(feature.name in of_last for feature in features):
        return None
    chosen, without = [of_last[feature.name] for feature in features], 0.0 if settings.leaves else 1.0
    return tuple(
        1 - certificate["covered"] / certificate["population"] if certificate else without for certificate in chosen
    )


def forecast_rediscovery(settings: RediscoverSettings, display: Display = SILENT) -> RunForecast:
    oracle, _ = open_oracle(settings, "", display)
    with display.waiting(f"reading {settings.dataset} and working out the price"):
        table = read_table(table_folder(settings.table, writable=False).path)
        examples, _ = sample_of(settings, table, oracle)
        sample = draw(examples, SAMPLE)
        form, weight = Comparison(Kind.TWO_OF_THREE, (0, 1, 2)), len(examples) / len(sample)

        def rehearse(rehearsal: RehearsedOracle) -> int:
            panel, questions = Panel(rehearsal, sample, settings.votes), RandomQuestions(form, len(sample))
            loop = Loop(questions, sample, limits_of(settings, oracle), panel.compare, panel.label)
            return len(loop.run().findings)

        paid = is_paid(oracle, sample)
        measured = Measuring(examples)
        price = price_range(rehearse, oracle, measured, weight=lambda _: weight) if paid else PriceRange()
    return RunForecast(
        dataset=name_of(settings.dataset),
        oracle=settings.oracle.partition("?")[0],
        examples=len(examples),
        price=price,
        calls=settings.queries * (1 + len(examples) * settings.votes),
    )
