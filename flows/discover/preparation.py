"""Everything a discovery needs, checked before a server is started or a cent is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from twothirds.discovery import Comparison, Strategy, StrategyError
from twothirds.discovery.strategies import Listed, Targeted
from twothirds.flows.discover.known import KnownFeatureInput, digest_of_known, known_labels, read_known
from twothirds.flows.discover.profiles import CROWD, Profile, usual_profile
from twothirds.flows.discover.settings import DECIDING, DiscoverSettings
from twothirds.flows.discover.target import DiscoveryTarget, read_target
from twothirds.flows.errors import UsageError
from twothirds.flows.events import SILENT, Events
from twothirds.flows.oracle_specs import by_provider_batch, check_exemplars
from twothirds.flows.oracles import build_oracle, recorded_votes, remarks_on
from twothirds.flows.settings import Environment, OutFolder, open_store
from twothirds.models import Compare, Feature, KnownLabelsOf, Members, Oracle, Review, Unlike
from twothirds.reports.run import RUN_JSON, STEER, RunError, RunSummary, check_writable
from twothirds.sources import Dataset, Example, load_dataset
from twothirds.store import Job, Store

RUNS = Path("runs")
MAX_KNOWN_CHARS = 60  # of what is given by hand, in a line of progress


@dataclass(frozen=True)
class Prepared:
    settings: DiscoverSettings
    dataset: Dataset
    members: Members
    store: Store
    out: Path | None = None
    events: Events = SILENT
    target: DiscoveryTarget | None = None
    upload: OutFolder | None = None
    cheap: Oracle | None = None  # labels first what is not compared
    chosen_rows: Sequence[int] | None = None  # of the examples that are compared, in place of a random subset
    known: tuple[KnownFeatureInput, ...] = ()  # the features to start with
    job: Job | None = None  # whose budget counts: of a comparison, in place of its own
    profile: Profile = CROWD

    @property
    def kind(self) -> str:
        """The kind of oracle."""
        return self.members.identity.kind

    def with_budget(self, budget: Decimal | None) -> Prepared:
        return replace(self, settings=self.settings.with_budget(budget))

    @cached_property
    def scope(self) -> str:
        return self.settings.scope(self.dataset, self.members.identity, digest_of_known(self.known))

    @cached_property
    def folder(self) -> Path:
        """The run folder, by default named after the scope."""
        usual = usual_profile(self.settings.strategy, self.members.comparisons.traits, self.compared)
        scope = f"{self.scope[:8]}{self.settings.limits(usual.queries)}"
        return self.out or RUNS / f"{self.dataset.name}-{self.kind}-{scope}"

    def check_folder(self) -> None:
        """Raises RunError where writing the folder would destroy another run, or a longer one of the same settings."""
        check_writable(self.folder)
        if not self.settings.replace and (other := self._another_run()):
            raise RunError(
                f"{self.folder} holds another run ({other}): give another folder with --out, or overwrite it with "
                "--replace"
            )

    def set_commands_aside(self) -> None:
        """What people wanted of another run does not steer the one that replaces it."""
        commands = self.folder / STEER
        if commands.exists() and self._another_run():
            commands.replace(commands.with_name(f"{STEER}.before"))

    def _another_run(self) -> str:
        """How the run that the folder holds differs from this one, in words; empty if it does not, or holds none."""
        if not (self.folder / RUN_JSON).is_file():
            return ""
        try:
            return self._difference(RunSummary.read(self.folder))
        except RunError:  # damaged: only another run can mend it
            return ""

    def _difference(self, earlier: RunSummary) -> str:
        """What distinguishes the earlier run, in words; empty if this one repeats or continues it."""
        chosen, before = self.settings.model_dump(mode="json"), earlier.settings
        if before.get("dataset") != chosen["dataset"] and earlier.dataset.digest != self.dataset.digest:
            return f"of {before.get('dataset')}"
        who = ("oracle", "labeller", "people", "escalate", "spot_check", "provider_batch")
        if earlier.oracle.to_json() != self.members.identity.to_json() and any(before.get(n) != chosen[n] for n in who):
            kind, model = earlier.oracle.kind, earlier.oracle.model
            return f"by {kind}{':' if model else ''}{model}, {before.get('oracle')}"
        for name in (*DECIDING, "known"):
            if (had := before.get(name)) != chosen[name]:
                return f"without {name.replace('_', '-')}" if had is None else f"with {name.replace('_', '-')} {had}"
        if earlier.queries > self.profile.queries:
            return f"with {earlier.queries} queries, and this one asks {self.profile.queries}"
        for name in ("target_g", "nones"):
            if chosen[name] not in (None, before.get(name)):
                return f"without --{name.replace('_', '-')} {chosen[name]}"
        return "with the rest labelled" if before.get("label_rest") and not self.settings.label_rest else ""

    def check_oracle(self) -> Unlike:
        """Raises OracleError where somebody can tell at once that they will not answer."""
        with self.events.waiting("looking at the examples"):
            return self.members.prepare(self.compared)

    @cached_property
    def rows(self) -> list[int]:
        """The examples that are compared: all, or a random subset of a large set."""
        if self.chosen_rows is not None:
            return list(self.chosen_rows)
        n, wanted = len(self.dataset.examples), self.settings.elicit_on
        if wanted is None or wanted >= n:
            return list(range(n))
        chosen = np.random.default_rng([self.settings.seed, n]).choice(n, wanted, replace=False)
        return sorted(chosen.tolist())

    @cached_property
    def compared(self) -> tuple[Example, ...]:
        return tuple(self.dataset.examples[row] for row in self.rows)

    @cached_property
    def remaining(self) -> tuple[Example, ...]:
        """The examples that are not compared."""
        compared = set(self.rows)
        return tuple(example for row, example in enumerate(self.dataset.examples) if row not in compared)

    @property
    def known_features(self) -> list[Feature]:
        return [known.feature for known in self.known]

    @property
    def known_labels(self) -> KnownLabelsOf:
        return known_labels([known for known in self.known if known.source], self.dataset.examples)

    @property
    def labelled(self) -> int:
        """How many examples are labelled in the end."""
        settings = self.settings
        return len(self.dataset.examples if settings.label_rest or settings.agree is not None else self.compared)

    def make_strategy(self) -> Strategy:
        """Raises StrategyError where that is impossible."""
        if (recorded := self._recorded_comparisons()) is not None:
            if self.settings.strategy != "auto" or self.target is not None:
                raise StrategyError("recorded comparisons cannot be chosen: leave out --strategy and a target")
            return Listed(recorded, beyond=bool(self.settings.beyond))
        strategy = self.settings.make_strategy(len(self.rows), self.profile)
        if self.target is None or self.settings.unguided:
            return strategy
        return Targeted(strategy, self.target.outputs(self.rows), np.random.default_rng([self.settings.seed, 1]))

    def _recorded_comparisons(self) -> list[Comparison] | None:
        """What can be asked of whoever compares, where that is in a table."""
        votes = recorded_votes(self.members.comparisons)
        if votes is None or not len(votes.comparisons):
            return None
        return as_rows(votes.comparisons.questions(self.compared), self.compared)


def as_rows(questions: Sequence[Compare], examples: Sequence[Example]) -> list[Comparison]:
    """Questions about examples as a strategy knows them: by place."""
    row = {example.id: place for place, example in enumerate(examples)}

    def places(side: Sequence[Example]) -> tuple[int, ...]:
        return tuple(row[example.id] for example in side)

    return [Comparison(question.kind, places(question.examples), places(question.without)) for question in questions]


def prepare(settings: DiscoverSettings, events: Events = SILENT, *, afresh: bool = True) -> Prepared:
    """Raises errors of the input before a server is started. Sends nothing. Not `afresh`: labels of a run are asked
    again, which needs nothing that was known when it began."""
    with events.waiting(f"reading {settings.dataset}"):
        dataset = load_dataset(settings.dataset, settings.columns)
    asked = [settings.oracle, settings.labeller or "", settings.cheap or ""]
    for line in (*dataset.lines(), *remarks_on(asked, dataset)):
        events.say(line)
    store = open_store(settings.store, events)
    members = members_of(settings, dataset, store)
    settings = settings.resolved(len(dataset.examples), members.labels.traits)
    out = OutFolder.of(settings.out, RUN_JSON) if settings.out else None
    check_writable(out.path if out else RUNS)
    target = read_target(settings, dataset)
    prepared = Prepared(
        settings=settings,
        dataset=dataset,
        members=members,
        store=store,
        out=out.path if out else None,
        events=events,
        target=target,
        upload=out,
        cheap=_build(settings.cheap, settings, dataset, store) if settings.cheap is not None else None,
        known=_known(settings, dataset, target, events) if afresh else (),
        profile=settings.profile(members, dataset.examples),
    )
    prepared.check_folder()
    strategy = prepared.make_strategy()
    if isinstance(strategy, Listed):
        events.say(f"{len(strategy):,} recorded comparisons are about these examples: they are asked in their order")
    return prepared


def _known(
    settings: DiscoverSettings, dataset: Dataset, target: DiscoveryTarget | None, events: Events
) -> tuple[KnownFeatureInput, ...]:
    """The features to start with. Raises UsageError or RunError."""
    if settings.known is None:
        return ()
    with events.waiting(f"reading {settings.known[:MAX_KNOWN_CHARS]}"):
        features, remarks = read_known(settings.known, dataset)
    for line in remarks:
        events.say(line)
    column = f"column {target.column}" if target else ""
    for known in features:
        if column and known.source.partition(", ")[0] == column:
            raise UsageError(f"--known {known.feature.name!r} is the target itself: leave it out")
    return tuple(known.with_exemplars(dataset.examples, settings.exemplars) for known in features)


def _build(text: str, settings: DiscoverSettings, dataset: Dataset, store: Store) -> Oracle:
    return build_oracle(settings.briefed(text), dataset, settings.seed, Environment.read(), store)


def members_of(settings: DiscoverSettings, dataset: Dataset, store: Store) -> Members:
    """All who take part in a discovery."""
    build = partial(_build, settings=settings, dataset=dataset, store=store)
    labeller = settings.labeller or settings.oracle
    check_exemplars(settings.exemplars, labeller)
    if settings.provider_batch:
        labeller = by_provider_batch(labeller)
    labels = build(labeller)
    comparisons = labels if settings.labeller is None else build(settings.oracle)
    people = build(settings.people) if settings.asks_people else None
    return Members(comparisons, labels, people, Review(settings.escalate, settings.spot_check))
