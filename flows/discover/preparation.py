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
from twothirds.flows.discover.known import KnownFeatureInput, KnownLabels, digest_of_known, read_known
from twothirds.flows.discover.profiles import CROWD, Profile, usual_profile
from twothirds.flows.discover.settings import DECIDING, DiscoverSettings
from twothirds.flows.discover.target import DiscoveryTarget, read_target
from twothirds.flows.errors import UsageError
from twothirds.flows.events import SILENT, Events
from twothirds.flows.oracle_specs import OracleSpec, by_provider_batch, check_exemplars
from twothirds.flows.oracles import build_oracle, remarks_on
from twothirds.flows.settings import Environment, OutFolder, open_store
from twothirds.models import Compare, Connects, Feature, Oracle, check_ahead, rows_save
from twothirds.models.people import MixedCrowd, RecordedVotes
from twothirds.reports.run import RUN_JSON, STEER, RunError, RunSummary, check_writable
from twothirds.sources import Dataset, Example, load_dataset
from twothirds.store import Job, Store

RUNS = Path("runs")
MAX_KNOWN_CHARS = 60  # of what is given by hand, in a line of progress


@dataclass(frozen=True)
class Prepared:
    settings: DiscoverSettings
    dataset: Dataset
    oracle: Oracle
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
        """The kind of oracle, without connecting it."""
        return "mixed" if isinstance(self.oracle, MixedCrowd) else OracleSpec.parse(self.settings.oracle).kind

    def with_budget(self, budget: Decimal | None) -> Prepared:
        return replace(self, settings=self.settings.with_budget(budget))

    @cached_property
    def scope(self) -> str:
        """Depends on the oracle's identity: connect it first."""
        return self.settings.scope(self.dataset, self.oracle, digest_of_known(self.known))

    @cached_property
    def folder(self) -> Path:
        """The run folder, by default named after the scope: connect the oracle first."""
        usual = usual_profile(self.settings.strategy, self.settings.oracle, self.oracle, self.compared)
        scope = f"{self.scope[:8]}{self.settings.limits(usual.queries)}"
        return self.out or RUNS / f"{self.dataset.name}-{self.oracle.identity.kind}-{scope}"

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
        if earlier.oracle.to_json() != self.oracle.identity.to_json() and any(before.get(n) != chosen[n] for n in who):
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

    def check_oracle(self) -> None:
        """Raises OracleError where the oracle can tell at once that it will not answer."""
        check_ahead(self.oracle, self.compared)

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

    def knowing(self, oracle: Oracle) -> Oracle:
        """The oracle, asked for no label that is known of the features given."""
        is_known = any(known.source for known in self.known)
        return KnownLabels(oracle, self.known, self.dataset.examples) if is_known else oracle

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
        """What can be asked of whoever elicits, where that is in a table."""
        asked = self.oracle.elicits if isinstance(self.oracle, MixedCrowd) else self.oracle
        if not isinstance(asked, RecordedVotes) or not len(asked.comparisons):
            return None
        return as_rows(asked.comparisons.questions(self.compared), self.compared)


def as_rows(questions: Sequence[Compare], examples: Sequence[Example]) -> list[Comparison]:
    """Questions about examples as a strategy knows them: by place."""
    row = {example.id: place for place, example in enumerate(examples)}

    def places(side: Sequence[Example]) -> tuple[int, ...]:
        return tuple(row[example.id] for example in side)

    return [Comparison(question.kind, places(question.examples), places(question.without)) for question in questions]


def prepare(settings: DiscoverSettings, events: Events = SILENT, purpose: str = "") -> Prepared:
    """Raises errors of the input before a server is started. Sends nothing: the oracle is not connected yet."""
    settings, dataset, store, oracle = _read(settings, events, purpose)
    out = OutFolder.of(settings.out, RUN_JSON) if settings.out else None
    check_writable(out.path if out else RUNS)
    target, probes = read_target(settings, dataset), purpose or settings.purpose(dataset)
    prepared = Prepared(
        settings=settings,
        dataset=dataset,
        oracle=oracle,
        store=store,
        out=out.path if out else None,
        events=events,
        target=target,
        upload=out,
        cheap=_build(settings.cheap, settings, dataset, store, probes) if settings.cheap is not None else None,
        # labels that are asked again for a change (they have a purpose) need nothing that was given
        known=() if purpose else _known(settings, dataset, target, events),
        profile=settings.profile(oracle, dataset.examples),
    )
    if not isinstance(oracle, Connects):  # else its identity is not known yet
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


def _read(
    settings: DiscoverSettings, events: Events, purpose: str = ""
) -> tuple[DiscoverSettings, Dataset, Store, Oracle]:
    with events.waiting(f"reading {settings.dataset}"):
        dataset = load_dataset(settings.dataset, settings.columns)
    asked = [settings.oracle, settings.labeller or "", settings.cheap or ""]
    for line in (*dataset.lines(), *remarks_on(asked, dataset)):
        events.say(line)
    store = open_store(settings.store, events)
    n = len(dataset.examples)
    oracle = build_crowd(settings, dataset, store, purpose or settings.resolved(n).purpose(dataset))
    return settings.resolved(n, rows_save=rows_save(oracle)), dataset, store, oracle


def _build(text: str, settings: DiscoverSettings, dataset: Dataset, store: Store, purpose: str) -> Oracle:
    return build_oracle(
        settings.briefed(text),
        dataset,
        settings.seed,
        Environment.read(),
        store,
        budget=settings.budget_micro,
        purpose=purpose,
        job=settings.job,
    )


def build_crowd(settings: DiscoverSettings, dataset: Dataset, store: Store, purpose: str = "") -> Oracle:
    """The oracle of a discovery, or all who take part where several do."""
    build = partial(_build, settings=settings, dataset=dataset, store=store, purpose=purpose)
    ask_people = settings.asks_people
    labeller = settings.labeller or settings.oracle
    check_exemplars(settings.exemplars, labeller)
    if settings.provider_batch:
        labeller = by_provider_batch(labeller)
    elicits = build(settings.oracle if settings.labeller is not None else labeller)
    if settings.labeller is None and not ask_people:
        return elicits
    from twothirds.models.people import MixedCrowd, Mixture

    labels = build(labeller) if settings.labeller is not None else elicits
    people = build(settings.people) if ask_people else None
    return MixedCrowd(elicits, labels, people, Mixture(settings.escalate, settings.spot_check))
