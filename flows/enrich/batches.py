"""Batches of labels, and who labels them: a description that any process of a cluster can act on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

import numpy as np

from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.events import SILENT, Events
from twothirds.flows.oracles import build_oracle
from twothirds.flows.settings import Environment, open_store
from twothirds.models import (
    CachedOracle,
    ExampleChanged,
    LabelBatch,
    Money,
    Oracle,
    OracleError,
    OracleUnavailable,
    RunLedger,
    ServerAway,
    Unlike,
    Votes,
    collect_votes,
)
from twothirds.sources import (
    Dataset,
    DatasetError,
    Example,
    Quarantined,
    find_truth,
    iter_examples,
    name_of,
    read_whole_truth,
    vanished,
)
from twothirds.store import Store, StoreError

LOOKED_AT_AHEAD = 64  # examples at a time


@dataclass
class LabelledBatch:
    """What came of a batch: votes on its features for all of its examples, none on those that were skipped."""

    votes: Votes
    by: str  # who was asked
    skipped: list[Quarantined] = field(default_factory=list)
    unlike: Unlike = field(default_factory=Unlike)


class BatchLost(OracleUnavailable):
    """The oracle is unavailable. `found` is what came of the batch until then, `away` whether its server is down; as
    attributes, not arguments, they are pickled with the error."""

    found: LabelledBatch
    away: bool


class BatchFuture(Protocol):
    def result(self) -> LabelledBatch: ...


class Resources:
    """The oracle and the store with which one process labels, opened by the first batch that needs them.

    The process that enriches has one for as long as its run. Every other process of a cluster has one until it ends
    (`_OF_THIS_WORKER`), so that it loads a model once, however many batches of however many runs it labels."""

    def __init__(self, events: Events = SILENT) -> None:
        self._events = events
        self._opening = threading.RLock()  # threads that come together must not load a model each
        self._opened: dict[str, tuple[Oracle, Store]] = {}
        self._ledgers: dict[str, RunLedger] = {}  # by run
        self._recorded: dict[tuple[str, str], CachedOracle] = {}  # by run and oracle
        self._asked = threading.Event()  # nothing is done ahead any more

    def oracle_and_store(self, settings: EnrichSettings) -> tuple[Oracle, Store]:
        """Opened at the first call."""
        key = settings.model_dump_json(include={"dataset", "oracle", "seed", "store", "budget", "per"})
        with self._opening:
            if key not in self._opened:
                self._opened[key] = open_oracle(settings, self._events)
            return self._opened[key]

    def book_in(self, ledger: RunLedger) -> None:
        """The books of a run that this process has begun; other processes open their own."""
        self._ledgers[ledger.run_id] = ledger

    def recorded(self, settings: EnrichSettings, run_id: str, scope: str, retry_unusable: float | None) -> CachedOracle:
        self._asked.set()
        with self._opening:
            key = run_id, settings.oracle
            if key not in self._recorded:
                oracle, store = self.oracle_and_store(settings)
                if run_id not in self._ledgers:
                    self.book_in(RunLedger(store, run_id, scope, settings.budget_micro, retry_unusable))
                self._recorded[key] = CachedOracle(oracle, self._ledgers[run_id])
            return self._recorded[key]

    def answered(self, run_id: str) -> tuple[int, Money]:
        """How many answers this process has had for a run, and what they cost."""
        ledger = self._ledgers.get(run_id)
        return (ledger.paid_calls + ledger.cached_calls, ledger.cost) if ledger else (0, 0)

    def load_ahead(self, settings: EnrichSettings) -> None:
        """Load the model, if there is one, and let it look at the first examples until any is asked about. What is
        wrong with it or them is reported when they are used."""
        with suppress(Exception):
            oracle = self.oracle_and_store(settings)[0]
            if not oracle.traits.opens_pictures:
                return
            found = iter_examples(settings.dataset, settings.columns, known=lambda _: True)
            examples = (example for example in found if isinstance(example, Example))
            while not self._asked.is_set() and (batch := list(islice(examples, LOOKED_AT_AHEAD))):
                with suppress(OracleError):
                    oracle.prepare(batch)

    def close(self) -> None:
        """What is asked for after that is opened again."""
        self._asked.set()
        with self._opening:
            for _, store in self._opened.values():
                store.close()
            self._opened.clear()
            self._ledgers.clear()
            self._recorded.clear()


_OF_THIS_WORKER = Resources()  # used by labellers that came from another process, and by nothing else


class Labeller:
    """Labels batches for one run. It travels to other processes as its settings; secrets are read where it arrives.

    Refused and unreadable answers from before the time `retry_unusable` are asked again."""

    def __init__(
        self,
        settings: EnrichSettings,
        run_id: str,
        scope: str,
        resources: Resources,
        retry_unusable: float | None = None,
    ) -> None:
        self.settings = settings
        self.run_id = run_id
        self.scope = scope
        self.retry_unusable = retry_unusable
        self._resources = resources

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.settings, self.run_id, self.scope, self.retry_unusable)

    def answered(self) -> tuple[int, Money]:
        """How many answers this process has had for the run, and what they cost."""
        return self._resources.answered(self.run_id)

    def recorded(self) -> CachedOracle:
        return self._resources.recorded(self.settings, self.run_id, self.scope, self.retry_unusable)

    def __call__(self, batch: LabelBatch) -> LabelledBatch:
        recorded = self.recorded()
        found = self._label(recorded, batch)
        gone, stopped = {left.id for left in found.skipped}, found.votes.stopped
        with suppress(OracleUnavailable):  # asking it has said why
            found.unlike = recorded.prepare([example for example in batch.examples if example.id not in gone])
        if isinstance(stopped, OracleUnavailable):  # the task tries again, and what was answered is kept
            lost = BatchLost(str(stopped))
            lost.found, lost.away, lost.may_pass = found, isinstance(stopped, ServerAway), stopped.may_pass
            raise lost from stopped
        return found

    def _label(self, recorded: CachedOracle, batch: LabelBatch) -> LabelledBatch:
        """Without the examples whose picture has changed or is gone by now: those are left to the next night."""
        votes = Votes.empty(batch.features, len(batch.examples), batch.votes)
        found = LabelledBatch(votes, str(recorded.identity))
        places = list(range(len(batch.examples)))
        while True:
            examples = [batch.examples[place] for place in places]
            part = collect_votes(recorded, LabelBatch(examples, batch.features, batch.votes, wanted=False))
            waiting = np.flatnonzero(part.missing.any(axis=0)).tolist()
            gone = isinstance(part.stopped, ExampleChanged) and vanished([examples[row] for row in waiting])
            if not gone:  # or it is there again
                votes.add(part, places)
                return found
            found.skipped += gone
            names = {left.id for left in gone}
            places = [place for place in places if batch.examples[place].id not in names]


Submit = Callable[[Labeller, LabelBatch], BatchFuture]
MAX_ATTEMPTS = 3  # of a batch whose worker was lost


def result_of(future: BatchFuture, submit_again: Callable[[], BatchFuture]) -> LabelledBatch:
    """Of a batch; one whose worker was lost is asked again, and what was answered is in the store."""
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return future.result()
        except (OracleError, StoreError, DatasetError):
            raise
        except Exception:  # whatever ended a worker
            future = submit_again()
    return future.result()


def _arrived(settings: EnrichSettings, run_id: str, scope: str, retry_unusable: float | None) -> Labeller:
    return Labeller(settings, run_id, scope, _OF_THIS_WORKER, retry_unusable)


def open_oracle(settings: EnrichSettings, events: Events = SILENT) -> tuple[Oracle, Store]:
    """The oracle of a data set that grows, and the store."""
    store = open_store(settings.store, events)
    described = _described(settings.dataset, settings.oracle)
    oracle = build_oracle(
        settings.briefed(settings.oracle),
        described,
        settings.seed,
        Environment.read(),
        store,
        growing=True,
    )
    return oracle, store


def _described(spec: str, oracle: str) -> Dataset:
    """The data set as far as an oracle needs it: its truth if it is a simulated crowd, and no example."""
    location = find_truth(spec) if oracle.startswith("simulated") else None
    if location is None:
        return Dataset(name_of(spec), spec, (), (), None, "")
    ids, truth = read_whole_truth(location)
    return Dataset(name_of(spec), spec, tuple(Example(name, "") for name in ids), (), truth, "")
