"""What an enrichment or a rediscovery will cost, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from discovery import Comparison, Kind
from flows.discover import (
    SAMPLE,
    Limits,
    Loop,
    Measuring,
    PriceRange,
    RandomQuestions,
    RehearsedOracle,
    RunForecast,
    draw,
    is_known,
    is_paid,
    price_range,
    unanswered_by,
)
from flows.enrich.batches import Batch, BatchLabels, Labeller, Resources, open_oracle
from flows.enrich.flow import check, next_meaning, table_folder
from flows.enrich.rediscover import sample_of
from flows.enrich.settings import EnrichSettings, RediscoverSettings
from flows.enrich.update import Enrichment
from flows.progress import SILENT, Display
from flows.settings import OutFolder
from models import Feature, Oracle, Panel
from reports import read_table
from sources import Example, name_of
from store import Store


@dataclass
class _Counted:
    """How many examples would be asked about the same features, and a random sample of them."""

    features: list[Feature]
    count: int = 0
    examples: list[Example] = field(default_factory=list)

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
    # Whether another oracle than before is asked is told by the run: it may have to be probed to know it.
    same = settings.model_copy(update={"votes": table.meaning.votes}) if table.meaning.columns else settings
    table.define(next_meaning(table.meaning, features, table.meaning.oracle, same))
    submit = _CountingSubmit()
    labeller = Labeller(settings, "", "", Resources(display))
    work = Enrichment(table, features, labeller, submit, backfill=settings.backfill, in_flight=1)
    with display.waiting(f"reading {settings.dataset} and working out the price"):
        if (failure := work.run(settings.dataset, settings.columns).failure) is not None:
            raise failure
        parts = submit.counted.values()
        price = sum((_price_of(part, settings.votes, oracle, store) for part in parts), PriceRange())
    known = is_known(oracle)
    scope = settings.scope(out.place, oracle.identity.to_json(), table.meaning.version) if known else ""
    spent, _ = store.runs.spent(scope) if known else (0, 0)
    return RunForecast(
        dataset=name_of(settings.dataset),
        oracle=settings.oracle.partition("?")[0],
        examples=sum(part.count for part in parts),
        price=price,
        calls=settings.votes * sum(part.count * len(part.features) for part in parts),
        spent=spent,
    )


def _price_of(part: _Counted, votes: int, oracle: Oracle, store: Store) -> PriceRange:
    if not is_paid(oracle, part.examples):
        return PriceRange()

    def rehearse(rehearsal: RehearsedOracle) -> int:
        Panel(rehearsal, part.examples, votes).label(part.features)
        return 0

    weight = part.count / len(part.examples)
    terms = {"weight": lambda _: weight, "unanswered": unanswered_by(oracle, store)}
    return price_range(rehearse, oracle, Measuring(part.examples), **terms)


def forecast_rediscovery(settings: RediscoverSettings, display: Display = SILENT) -> RunForecast:
    oracle, _ = open_oracle(settings, "", display)
    with display.waiting(f"reading {settings.dataset} and working out the price"):
        examples, _ = sample_of(settings, read_table(table_folder(settings.table, writable=False).path))
        sample = draw(examples, SAMPLE)
        form, weight = Comparison(Kind.TWO_OF_THREE, (0, 1, 2)), len(examples) / len(sample)

        def rehearse(rehearsal: RehearsedOracle) -> int:
            panel, questions = Panel(rehearsal, sample, settings.votes), RandomQuestions(form, len(sample))
            loop = Loop(questions, sample, Limits(settings.queries), panel.compare, panel.label)
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
