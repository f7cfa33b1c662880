"""Everything a comparison needs, checked before a server is started or a cent is spent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Kind, same_name
from twothirds.discovery.strategies import NARROWEST
from twothirds.flows.compare.settings import LARGEST_SAMPLE, NOT_DECIDING, CompareSettings
from twothirds.flows.discover.known import read_features
from twothirds.flows.discover.preparation import RUNS, Prepared
from twothirds.flows.discover.profiles import Profile
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.events import SILENT, Events
from twothirds.flows.oracle_specs import OracleSpec, deciding
from twothirds.flows.oracles import build_oracle, recorded_votes, remarks_on
from twothirds.flows.settings import Environment, OutFolder, open_store
from twothirds.models import Compare, Feature, Members, Oracle, digest_of
from twothirds.reports.compare import COMPARISON_JSON, read_settings
from twothirds.reports.run import RunError, check_writable
from twothirds.sources import Dataset, Example, load_dataset
from twothirds.store import EVER, Job, Store

MOST_VOTES = 99  # of a discovery
PEOPLE = ("human", "recorded", "simulated")  # the kinds that stand for people by default, first match


@dataclass(frozen=True)
class ComparedOracle:
    """One oracle of a comparison."""

    index: int
    name: str
    oracle: Oracle
    votes: int
    people: bool


@dataclass(frozen=True)
class PreparedComparison:
    settings: CompareSettings
    dataset: Dataset
    built: list[Oracle]
    store: Store
    out: Path | None
    features: tuple[Feature, ...] | None  # None: the first oracle discovers them
    events: Events = SILENT
    upload: OutFolder | None = None

    def with_budget(self, budget: Decimal | None) -> PreparedComparison:
        return replace(self, settings=self.settings.with_budget(budget))

    def check_oracles(self) -> None:
        """Raises OracleError where an oracle can tell at once that it will not answer."""
        with self.events.waiting("looking at the examples"):
            for oracle in self.built:
                oracle.prepare(self.examples)

    @cached_property
    def oracles(self) -> list[ComparedOracle]:
        settings, people = self.settings, people_of(self.settings)
        names = told_apart([str(oracle.identity) for oracle in self.built], settings.oracles)
        return [
            ComparedOracle(index, name, oracle, settings.votes_of(index), index == people)
            for index, (name, oracle) in enumerate(zip(names, self.built, strict=True))
        ]

    @cached_property
    def folder(self) -> Path:
        if self.out is not None:
            return self.out
        digest = digest_of(
            [self.dataset.digest, *([oracle.identity.to_json(), self.settings.votes] for oracle in self.built)]
        )
        return RUNS / f"compare-{self.dataset.name}-{digest[:8]}{self.settings.suffix}"

    def check_folder(self) -> None:
        """Raises RunError where writing the folder would destroy another comparison."""
        check_writable(self.folder)
        earlier = {} if self.settings.replace else read_settings(self.folder)
        settings = self.settings.model_dump(mode="json", exclude=NOT_DECIDING)
        other = next((name for name, value in settings.items() if name in earlier and earlier[name] != value), None)
        if other is not None:
            difference = f"{other.replace('_', '-')} {earlier[other]}"
            raise RunError(
                f"{self.folder} holds another comparison ({difference}): give another folder with --out, or "
                "overwrite it with --replace"
            )

    @cached_property
    def origin(self) -> str:
        """Where the features come from."""
        if (source := self.settings.features) is not None:
            return f"from {Path(source).name}" if os.path.exists(source) else "given by hand"
        voted = next((votes for votes in map(recorded_votes, self.built) if votes and votes.features), None)
        return f"those of {voted.identity}" if voted else f"discovered by {self.built[0].identity}"

    @property
    def job(self) -> Job:
        """Whose budget counts for all runs of the comparison together, also when it is run again."""
        return job_of(self.settings, self.dataset)

    @cached_property
    def rows(self) -> list[int]:
        """The sample, the same for every oracle and every discovery."""
        return self.discovery_by(0).rows

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        return tuple(self.dataset.examples[row] for row in self.rows)

    @cached_property
    def people_rows(self) -> list[int]:
        """Places in the sample that people label."""
        wanted = self.settings.people_sample
        n = len(self.examples)
        if wanted is None or wanted >= n:
            return list(range(n))
        chosen = np.random.default_rng([self.settings.seed, n, 2]).choice(n, wanted, replace=False)
        return sorted(chosen.tolist())

    @cached_property
    def questions(self) -> list[Compare]:
        """What every oracle is asked to compare: what people have compared already, else triples at random."""
        tables = [votes.comparisons for votes in map(recorded_votes, self.built) if votes and len(votes.comparisons)]
        if not tables:
            return [
                Compare(Kind.TWO_OF_THREE, tuple(self.examples[row] for row in triple)) for triple in self._triples()
            ]
        questions, wanted = tables[0].questions(self.examples), self.settings.comparisons
        rng = np.random.default_rng([self.settings.seed, len(questions), 3])
        chosen = rng.choice(len(questions), min(wanted, len(questions)), replace=False)
        return [questions[place] for place in sorted(chosen.tolist())]

    def _triples(self) -> list[tuple[int, ...]]:
        """Different triples of the sample, drawn at random."""
        n, wanted = len(self.examples), self.settings.comparisons
        wanted = min(wanted, n * (n - 1) * (n - 2) // 6)
        rng = np.random.default_rng([self.settings.seed, n, 3])
        found: dict[tuple[int, ...], None] = {}
        while len(found) < wanted:
            found[tuple(sorted(rng.choice(n, 3, replace=False).tolist()))] = None
        return list(found)

    def discovery(self, asked: ComparedOracle) -> Prepared:
        """A discovery by one oracle on the sample, as `discover` would run it."""
        return self.discovery_by(asked.index, self.folder / f"discovery-{asked.index + 1}")

    def discovery_by(self, index: int, folder: Path | None = None) -> Prepared:
        """The same before it is known which folder it gets."""
        settings = DiscoverSettings(
            dataset=self.settings.dataset,
            id_column=self.settings.id_column,
            text_column=self.settings.text_column,
            image_column=self.settings.image_column,
            oracle=self.settings.oracles[index],
            queries=self.settings.queries,
            votes=min(self.settings.votes_of(index), MOST_VOTES),
            budget=self.settings.budget,
            seed=self.settings.seed,
            elicit_on=min(len(self.dataset.examples), self.settings.sample or LARGEST_SAMPLE),
            store=self.settings.store,
            retry_unusable=self.settings.retry_unusable,
            replace=True,  # the folder of the comparison was looked at
        )
        oracle = self.built[index]
        profile = Profile(  # the same for all oracles: people are among them
            queries=self.settings.queries, widest=NARROWEST, labels_after=None if oracle.traits.shares_rows else 1
        )
        return Prepared(
            settings,
            self.dataset,
            Members.alone(oracle),
            self.store,
            folder,
            self.events,
            job=self.job,
            profile=profile,
        )

    def scope(self, asked: ComparedOracle) -> str:
        chosen = self.settings.model_dump(mode="json", include={"seed", "sample", "people_sample", "comparisons"})
        return digest_of(["compare", self.dataset.digest, asked.oracle.identity.to_json(), asked.votes, chosen])

    def truth(self, features: tuple[Feature, ...]) -> NDArray[np.int8] | None:
        """Of these features over the sample; unknown of those that the truth does not name."""
        truth = self.dataset.truth
        if truth is None:
            return None
        found = np.full((len(features), len(self.rows)), UNKNOWN, np.int8)
        for index, feature in enumerate(features):
            column = _column(feature.name, truth.columns)
            if column is not None:
                found[index] = truth.matrix[self.rows, column]
        return found if (found != UNKNOWN).any() else None


def prepare_comparison(settings: CompareSettings, events: Events = SILENT) -> PreparedComparison:
    """Raises errors of the input before a server is started. Sends nothing."""
    with events.waiting(f"reading {settings.dataset}"):
        dataset = load_dataset(settings.dataset, settings.columns)
    for line in (*dataset.lines(), *remarks_on(settings.oracles, dataset)):
        events.say(line)
    if len(dataset.examples) < 3:
        raise UsageError(f"{settings.dataset} has {len(dataset.examples)} examples: a comparison takes 3 or more")
    store = open_store(settings.store, events)
    environment = Environment.read()
    built = [build_oracle(text, dataset, settings.seed, environment, store) for text in settings.oracles]
    features = _features(settings, built)
    out = OutFolder.of(settings.out, COMPARISON_JSON) if settings.out else None
    check_writable(out.path if out else RUNS)
    prepared = PreparedComparison(
        settings=settings,
        dataset=dataset,
        built=built,
        store=store,
        out=out.path if out else None,
        features=features,
        events=events,
        upload=out,
    )
    if out is not None:
        prepared.check_folder()
    return prepared


def job_of(settings: CompareSettings, dataset: Dataset) -> Job:
    chosen = settings.model_dump(mode="json", include={"seed", "sample", "people_sample", "comparisons", "votes"})
    return Job(digest_of(["compare", dataset.digest, [*map(deciding, settings.oracles)], chosen]), EVER)


def told_apart(short: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The short names; of oracles that share one, each with the parameters by which it differs from the others."""
    specs = [OracleSpec.parse(text) for text in texts]
    names = []
    for name, spec in zip(short, specs, strict=True):
        others = [other for its, other in zip(short, specs, strict=True) if its == name and other is not spec]
        differ = [
            parameter for parameter in spec.parameters if any(parameter not in other.parameters for other in others)
        ]
        names.append(str(replace(spec, parameters=tuple(differ))) if others else name)
    return names


def people_of(settings: CompareSettings) -> int | None:
    """Which of the oracles stands for people."""
    if settings.people is not None:
        return settings.oracles.index(settings.people)
    kinds = [OracleSpec.parse(text).kind for text in settings.oracles]
    return next((kinds.index(kind) for kind in PEOPLE if kind in kinds), None)


def _features(settings: CompareSettings, built: list[Oracle]) -> tuple[Feature, ...] | None:
    if settings.features is not None:
        return tuple(read_features(settings.features))
    return next((votes.features for votes in map(recorded_votes, built) if votes and votes.features), None)


def _column(name: str, columns: tuple[str, ...]) -> int | None:
    if name in columns:
        return columns.index(name)
    return next((index for index, column in enumerate(columns) if same_name(name, column)), None)
