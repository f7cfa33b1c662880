"""Batches of labels, and who labels them: a description that any process of a cluster can act on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Labels
from twothirds.flows.enrich.settings import EnrichSettings, RediscoverSettings
from twothirds.flows.oracles import build_oracle
from twothirds.flows.progress import SILENT, Display
from twothirds.flows.settings import Environment, open_store
from twothirds.models import (
    Answer,
    Ballot,
    CachedOracle,
    Computed,
    ComputesLabels,
    ExampleChanged,
    Feature,
    Labelled,
    LoadsModel,
    Money,
    Oracle,
    OracleError,
    OracleUnavailable,
    Panel,
    RunLedger,
    ServerAway,
    Unlike,
    Verdict,
    computed_ballots,
    connect,
    mean_chances,
    stored_ballots,
    take_over_probe,
    unlike,
)
from twothirds.reports.run import LABEL, UnusableCounts
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


class Batch:
    """Examples, and the features that each of them is asked about. A plain object: Prefect looks into anything else."""

    def __init__(self, examples: Sequence[Example], features: Sequence[Feature]) -> None:
        self.examples = list(examples)
        self.features = list(features)


class BatchLabels:
    """What came of a batch: labels as examples × features, of which examples any is decided, and who was left out."""

    def __init__(self, batch: Batch) -> None:
        self.labels: Labels = np.full((len(batch.examples), len(batch.features)), UNKNOWN, np.int8)
        self.known: NDArray[np.bool_] = np.zeros(len(batch.examples), np.bool_)
        self.chances: NDArray[np.float64] = np.full(self.labels.shape, np.nan)  # of yes, where answers tell one
        self.left_out: list[Quarantined] = []
        self.stopped: OracleError | None = None
        self.paid_calls = 0
        self.cached_calls = 0
        self.cost: Money = 0
        self.unusable = UnusableCounts()
        self.unlike = Unlike()

    def count(self, answer: Answer, by: str) -> None:
        self.unusable.count(by, LABEL, answer.verdict.value, answer.note)
        if answer.cached:
            self.cached_calls += 1
        else:
            self.paid_calls += 1
            self.cost += answer.cost

    def count_known(self, labels: int) -> None:
        """Answers from the store that are of use."""
        self.unusable.labels += labels
        self.cached_calls += labels

    def count_computed(self, computed: Computed, why_not: Sequence[str], by: str) -> None:
        for ballot, refused, note in zip(computed.ballots, computed.refused.tolist(), why_not, strict=True):
            yes, no, abstained = (int(counts.sum()) for counts in (ballot.yes, ballot.no, ballot.abstained))
            self.paid_calls += yes + no + abstained
            votes = {
                Verdict.YES: yes,
                Verdict.NO: no,
                Verdict.REFUSED: refused,
                Verdict.UNREADABLE: abstained - refused,
            }
            for verdict, answers in votes.items():
                self.unusable.count(by, LABEL, verdict.value, note, answers)


class BatchLost(OracleUnavailable):
    """The oracle is unavailable. `found` is what came of the batch until then, `away` whether its server is down; as
    attributes, not arguments, they are pickled with the error."""

    found: BatchLabels
    away: bool


class BatchFuture(Protocol):
    def result(self) -> BatchLabels: ...


class Resources:
    """The oracle and the store with which one process labels, opened by the first batch that needs them.

    The process that enriches has one for as long as its run. Every other process of a cluster has one until it ends
    (`_OF_THIS_WORKER`), so that it loads a model once, however many batches of however many runs it labels."""

    def __init__(self, display: Display = SILENT) -> None:
        self._display = display
        self._opening = threading.RLock()  # threads that come together must not load a model each
        self._opened: dict[str, tuple[Oracle, Store]] = {}
        self._recorded: dict[tuple[str, str], CachedOracle] = {}  # by run and oracle
        self._asked = threading.Event()  # nothing is done ahead any more

    def oracle_and_store(self, settings: EnrichSettings, purpose: str = "") -> tuple[Oracle, Store]:
        """Opened at the first call, which says by what purpose probes are counted."""
        key = settings.model_dump_json(include={"dataset", "oracle", "seed", "store", "budget", "per"})
        with self._opening:
            if key not in self._opened:
                self._opened[key] = open_oracle(settings, purpose, self._display)
            return self._opened[key]

    def recorded(self, settings: EnrichSettings, run_id: str, scope: str, retry_unusable: float | None) -> CachedOracle:
        self._asked.set()
        with self._opening:
            key = run_id, settings.oracle
            if key not in self._recorded:
                oracle, store = self.oracle_and_store(settings, scope)
                take_over_probe(oracle, store, run_id)  # a process that is not the flow's probes at the run's expense
                connect(oracle)
                ledger = RunLedger(store, run_id, scope, settings.budget_micro, retry_unusable)
                self._recorded[key] = CachedOracle(oracle, ledger)
            return self._recorded[key]

    def answered(self, run_id: str) -> tuple[int, Money]:
        """How many answers this process has had for a run, and what they cost."""
        ledgers = [recorded.ledger for (run, _), recorded in list(self._recorded.items()) if run == run_id]
        answers = sum(ledger.paid_calls + ledger.cached_calls for ledger in ledgers)
        return answers, sum(ledger.cost for ledger in ledgers)

    def load_ahead(self, settings: EnrichSettings) -> None:
        """Load the model, if there is one, and let it look at the first examples until any is asked about. What is
        wrong with it or them is reported when they are used."""
        with suppress(Exception):
            oracle = self.oracle_and_store(settings)[0]
            if not isinstance(oracle, LoadsModel):
                return
            oracle.load()
            found = iter_examples(settings.dataset, settings.columns, known=lambda _: True)
            examples = (example for example in found if isinstance(example, Example))
            while not self._asked.is_set() and (batch := list(islice(examples, LOOKED_AT_AHEAD))):
                with suppress(OracleError):
                    oracle.vectors(batch)

    def close(self) -> None:
        """What is asked for after that is opened again."""
        self._asked.set()
        with self._opening:
            for _, store in self._opened.values():
                store.close()
            self._opened.clear()
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

    def __call__(self, batch: Batch) -> BatchLabels:
        recorded = self.recorded()
        found = BatchLabels(batch)
        lock = threading.Lock()

        def count(answer: Answer) -> None:
            with lock:
                found.count(answer, str(recorded.identity))

        labelled = self._label(recorded, batch, count, found)
        gone = {left.id for left in found.left_out}
        found.unlike = unlike(recorded.oracle, [example for example in batch.examples if example.id not in gone])
        if isinstance(labelled.stopped, OracleUnavailable):  # the task tries again, and what was answered is kept
            lost = BatchLost(str(labelled.stopped))
            lost.found, lost.away = found, isinstance(labelled.stopped, ServerAway)
            lost.may_pass = labelled.stopped.may_pass
            raise lost from labelled.stopped
        found.stopped = labelled.stopped
        return found

    def _label(
        self, recorded: CachedOracle, batch: Batch, count: Callable[[Answer], None], found: BatchLabels
    ) -> Labelled:
        """Without the examples whose picture has changed or is gone by now: those are left to the next night."""
        votes, places = self.settings.votes, list(range(len(batch.examples)))
        while True:
            examples = [batch.examples[place] for place in places]
            labelled, chances = self._votes(recorded, Panel(recorded, examples, votes, count), batch.features, found)
            decided = np.stack([ballot.missing(votes) == 0 for ballot in labelled.ballots], axis=1)
            if not isinstance(labelled.stopped, ExampleChanged):
                break
            waiting = np.flatnonzero(~decided.all(axis=1)).tolist()
            gone = vanished([batch.examples[places[row]] for row in waiting])
            if not gone:  # it is there again
                break
            found.left_out += gone
            names = {left.id for left in gone}
            places = [place for place in places if batch.examples[place].id not in names]
        labels = np.stack([ballot.labels for ballot in labelled.ballots], axis=1)
        found.labels[places] = np.where(decided, labels, np.int8(UNKNOWN))  # the next night asks for missing votes
        found.known[places] = np.any(decided, axis=1)
        if chances is not None:
            found.chances[places] = chances
        return labelled

    def _votes(
        self, recorded: CachedOracle, panel: Panel, features: Sequence[Feature], found: BatchLabels
    ) -> tuple[Labelled, NDArray[np.float64] | None]:
        """And the probabilities, examples × features, where they are computed or needed."""
        oracle, examples, votes = recorded.oracle, panel.examples, panel.votes
        if isinstance(oracle, ComputesLabels):
            try:
                computed = computed_ballots(recorded, oracle, features, examples, votes)
            except OracleUnavailable as stopped:  # such as a picture that has changed
                return Labelled([Ballot.empty(feature, len(examples)) for feature in features], stopped), None
            found.count_computed(computed, [oracle.why_not(feature) for feature in features], str(recorded.identity))
            return Labelled(computed.ballots), computed.chances
        if self.settings.agree is None:
            begun = stored_ballots(recorded, features, examples, votes)
            found.count_known(sum(int(ballot.cast.sum()) for ballot in begun))
            return panel.complete(begun), None
        labelled = panel.label(features)
        return labelled, mean_chances(labelled.ballots, examples)


Submit = Callable[[Labeller, Batch], BatchFuture]
MAX_ATTEMPTS = 3  # of a batch whose worker was lost


def result_of(future: BatchFuture, submit_again: Callable[[], BatchFuture]) -> BatchLabels:
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


def open_oracle(
    settings: EnrichSettings | RediscoverSettings, purpose: str, display: Display = SILENT
) -> tuple[Oracle, Store]:
    """The oracle of a data set that grows, and the store. Probes are counted by `purpose`."""
    store = open_store(settings.store, display)
    described = _described(settings.dataset, settings.oracle)
    oracle = build_oracle(
        settings.briefed(settings.oracle),
        described,
        settings.seed,
        Environment.read(),
        store,
        budget=settings.budget_micro,
        purpose=purpose,
        job=settings.job if isinstance(settings, EnrichSettings) else None,
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
