"""Everything a discovery needs, checked before a server is started or a cent is spent."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discovery import Kind, Strategy
from discovery.strategies import Targeted
from flows.discover.settings import AIMED, DECIDING, DiscoverSettings
from flows.discover.target import DiscoveryTarget, read_target
from flows.oracle_specs import OracleSpec, by_provider_batch
from flows.oracles import build_oracle, remarks_on
from flows.progress import SILENT, Display
from flows.settings import Environment, micro_of, open_store
from models import (
    MICRO,
    Compare,
    Connects,
    Feature,
    Label,
    Money,
    Oracle,
    ProbesServer,
    Question,
    check_ahead,
    connect,
    in_usd,
)
from models.people import MixedCrowd
from reports.run import RUN_JSON, RunError, RunSummary, check_writable
from sources import Dataset, Example, load_dataset
from store import Store

RUNS = Path("runs")
A_NAME = "a feature with a name of several words"  # stands for one that a question may list as known


@dataclass(frozen=True)
class RunForecast:
    """What a discovery takes at most, and where the oracle can predict it, what it is likely to take."""

    dataset: str
    oracle: str
    examples: int
    calls: int
    usd: float
    kept: int  # answers of an earlier attempt
    calls_left: int
    usd_left: float
    requests: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd_about: float | None = None
    usd_about_left: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Prepared:
    settings: DiscoverSettings
    dataset: Dataset
    oracle: Oracle
    store: Store
    out: Path | None = None
    display: Display = SILENT
    target: DiscoveryTarget | None = None

    @property
    def kind(self) -> str:
        """The kind of oracle, without connecting it."""
        return "mixed" if isinstance(self.oracle, MixedCrowd) else OracleSpec.parse(self.settings.oracle).kind

    @cached_property
    def scope(self) -> str:
        """Depends on the oracle's identity: connect it first."""
        return self.settings.scope(self.dataset, self.oracle)

    @cached_property
    def folder(self) -> Path:
        """The run folder, by default named after the scope: connect the oracle first."""
        scope = f"{self.scope[:8]}{self.settings.limits}"
        return self.out or RUNS / f"{self.dataset.name}-{self.oracle.identity.kind}-{scope}"

    def check_folder(self) -> None:
        """Raises RunError where writing the folder would destroy another run, or a longer one of the same settings."""
        check_writable(self.folder)
        if self.settings.replace or not (self.folder / RUN_JSON).is_file():
            return
        try:
            kept = RunSummary.read(self.folder)
        except RunError:  # damaged: only another run can mend it
            return
        if other := self._difference(kept):
            raise RunError(
                f"{self.folder} holds another run ({other}): give another folder with --out, or overwrite it with "
                "--replace"
            )

    def _difference(self, kept: RunSummary) -> str:
        """What distinguishes the run that is kept, in words; empty if this one repeats or continues it."""
        given, before = self.settings.model_dump(mode="json"), kept.settings
        if before.get("dataset") != given["dataset"] and kept.dataset.digest != self.dataset.digest:
            return f"of {before.get('dataset')}"
        who = ("oracle", "labeller", "people", "escalate", "spot_check", "provider_batch")
        if kept.oracle.to_json() != self.oracle.identity.to_json() and any(before.get(n) != given[n] for n in who):
            return f"by {kept.oracle.kind}{':' if kept.oracle.model else ''}{kept.oracle.model}, {before.get('oracle')}"
        for name in (*DECIDING, *AIMED):
            if before.get(name, given[name] if name in DECIDING else None) != given[name]:
                return f"with {name.replace('_', '-')} {before[name]}"
        if kept.queries > self.settings.queries:
            return f"with {kept.queries} queries, and this one asks {self.settings.queries}"
        for name in ("target_g", "nones"):
            if given[name] not in (None, before.get(name)):
                return f"without --{name.replace('_', '-')} {given[name]}"
        return "with the rest labelled" if before.get("label_rest") and not self.settings.label_rest else ""

    def check_oracle(self) -> None:
        """Raises OracleError where the oracle can tell at once that it will not answer."""
        check_ahead(self.oracle, self.compared)

    @cached_property
    def rows(self) -> list[int]:
        """The examples that are compared: all, or a random subset of a large set."""
        n, wanted = len(self.dataset.examples), self.settings.elicit_on
        if wanted is None or wanted >= n:
            return list(range(n))
        chosen = np.random.default_rng([self.settings.seed, n]).choice(n, wanted, replace=False)
        return sorted(chosen.tolist())

    @cached_property
    def compared(self) -> tuple[Example, ...]:
        return tuple(self.dataset.examples[row] for row in self.rows)

    @cached_property
    def rest(self) -> tuple[Example, ...]:
        """The examples that are not compared."""
        compared = set(self.rows)
        return tuple(example for row, example in enumerate(self.dataset.examples) if row not in compared)

    def make_strategy(self) -> Strategy:
        """Raises StrategyError where that is impossible."""
        strategy = self.settings.make_strategy(len(self.rows))
        if self.target is None or self.settings.unguided:
            return strategy
        return Targeted(strategy, self.target.outputs(self.rows), np.random.default_rng([self.settings.seed, 1]))

    def estimate(self) -> RunForecast:
        """What is kept and at most to come: every comparison finds a feature and every label takes all its votes."""
        settings, (compare, labels) = self.settings, self._one_query()
        per_feature = sum(self.oracle.estimate(labels)) * settings.votes
        cost = settings.queries * (self.oracle.estimate([compare])[0] + per_feature)
        return self._forecast(str(self.oracle.identity), len(labels), cost, self.store.answers.count(self.scope))

    def forecast(self) -> RunForecast:
        """As `estimate`, with requests and tokens where an oracle can predict them; nothing is sent to its server."""
        if not isinstance(self.oracle, ProbesServer):
            connect(self.oracle)
            return self.estimate()
        settings, (compare, labels) = self.settings, self._one_query()
        comparing, labelling = self.oracle.forecast([compare]), self.oracle.forecast(labels)

        def of_all(name: str) -> int:
            each: int = getattr(comparing, name) + settings.votes * getattr(labelling, name)
            return settings.queries * each

        kept = 0
        if self.oracle.is_probed():
            connect(self.oracle)  # sends nothing
            kept = self.store.answers.count(self.scope)
        at_most = self._forecast(settings.oracle.partition("?")[0], len(labels), of_all("most"), kept)
        return replace(
            at_most,
            requests=of_all("requests"),
            input_tokens=of_all("input_tokens"),
            output_tokens=of_all("output_tokens"),
            usd_about=of_all("cost") / MICRO,
            usd_about_left=of_all("cost") * at_most.calls_left / at_most.calls / MICRO,
        )

    def what_is_kept(self) -> str:
        """One line: what the store holds already, and at most what is still to ask."""
        estimate = self.estimate()
        left = f"up to {estimate.calls_left:,} to ask, at most {in_usd(micro_of(estimate.usd_left), 2, at_most=True)}"
        if estimate.kept:
            return f"kept {estimate.kept:,} answers, {left}"
        return f"{estimate.examples} examples, {estimate.oracle}: {left}"

    def _forecast(self, oracle: str, labels: int, cost: Money, kept: int) -> RunForecast:
        """`labels` is how many examples each feature is put to, `cost` the most that all calls may cost."""
        calls = self.settings.queries * (1 + labels * self.settings.votes)
        left = max(calls - kept, 0)
        return RunForecast(
            dataset=self.dataset.name,
            oracle=oracle,
            examples=len(self.compared),
            calls=calls,
            usd=cost / MICRO,
            kept=kept,
            calls_left=left,
            usd_left=-(-cost * left // calls) / MICRO,
        )

    def _one_query(self) -> tuple[Question, list[Question]]:
        """A comparison like the last one, and the labels of one feature, each asked for once."""
        settings = self.settings
        listed = settings.queries if settings.strategy == "auto" or settings.beyond else 0
        known = tuple(f"{A_NAME} {number}" for number in range(listed))
        examples = self.compared + (self.rest if settings.label_rest else ())
        labels: list[Question] = [Label(Feature("name", "definition"), example) for example in examples]
        return Compare(Kind.TWO_OF_THREE, tuple(self.compared[:3]), known=known), labels


def forecast(settings: DiscoverSettings, display: Display = SILENT) -> RunForecast:
    """What a discovery will take, before anything is spent and without a request to any server."""
    settings, dataset, store, oracle = _read(settings, display)
    return Prepared(settings, dataset, oracle, store).forecast()


def prepare(settings: DiscoverSettings, display: Display = SILENT, purpose: str = "") -> Prepared:
    """Raises errors of the input before a server is started. Sends nothing: the oracle is not connected yet."""
    settings, dataset, store, oracle = _read(settings, display, purpose)
    out = Path(settings.out) if settings.out else None
    check_writable(out or RUNS)
    prepared = Prepared(settings, dataset, oracle, store, out, display, read_target(settings, dataset))
    if not isinstance(oracle, Connects):  # else its identity is not known yet
        prepared.check_folder()
    prepared.make_strategy()
    return prepared


def _read(
    settings: DiscoverSettings, display: Display, purpose: str = ""
) -> tuple[DiscoverSettings, Dataset, Store, Oracle]:
    with display.waiting(f"reading {settings.dataset}"):
        dataset = load_dataset(settings.dataset, settings.columns)
    for line in (*dataset.lines(), *remarks_on([settings.oracle, settings.labeller or ""], dataset)):
        display.say(line)
    store = open_store(settings.store, display)
    settings = settings.resolved(len(dataset.examples))
    return settings, dataset, store, build_crowd(settings, dataset, store, purpose or settings.purpose(dataset))


def build_crowd(settings: DiscoverSettings, dataset: Dataset, store: Store, purpose: str = "") -> Oracle:
    """The oracle of a discovery, or all who take part where several do."""

    def build(text: str) -> Oracle:
        about = (text, dataset, settings.seed, Environment.read(), store)
        return build_oracle(*about, budget=settings.budget_micro, purpose=purpose)

    ask_people = settings.escalate is not None or settings.spot_check is not None
    labeller = settings.labeller or settings.oracle
    if settings.provider_batch:
        labeller = by_provider_batch(labeller)
    elicits = build(settings.oracle if settings.labeller is not None else labeller)
    if settings.labeller is None and not ask_people:
        return elicits
    from models.people import MixedCrowd, Mixture

    labels = build(labeller) if settings.labeller is not None else elicits
    people = build(settings.people) if ask_people else None
    return MixedCrowd(elicits, labels, people, Mixture(settings.escalate, settings.spot_check))
