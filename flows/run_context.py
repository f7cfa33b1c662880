"""Where a run begins: its entry in the store, its books, who answers through them, its events, and its folder.

Every command that asks something starts here; what a run is about is a RunEntry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from twothirds.flows.events import SILENT, Events, RunEnded, Waiting
from twothirds.flows.subscribers.heartbeat import Heartbeat
from twothirds.flows.subscribers.live_log import LiveLog
from twothirds.models import (
    LATENCIES,
    MICRO,
    AnswersPending,
    Crowd,
    KnownLabelsOf,
    Members,
    Money,
    RunLedger,
    Traffic,
    build_crowd,
)
from twothirds.reports.run import locked

if TYPE_CHECKING:
    from twothirds.store import ActiveRun, Job, RunState, Store


@dataclass(frozen=True)
class RunEntry:
    """What the store is told of a run before its first question, and who answers."""

    flow: str
    name: str  # of the folder that it writes
    scope: str  # what runs share whose answers and budget are the same
    dataset: str
    members: Members
    settings: BaseModel
    budget: Money | None = None
    retry_unusable: bool = False
    job: Job | None = None
    known: KnownLabelsOf | None = None  # labels that nobody is asked for
    folder: Path | None = None  # locked while the run lasts, and its events are written there; None: by the caller


@dataclass(frozen=True)
class RunContext:
    """A run that has begun. The crowd looks answers up, and books what it asks."""

    store: Store
    record: ActiveRun
    ledger: RunLedger
    crowd: Crowd
    events: Events
    reached: int = 0  # questions that earlier executions have asked

    @property
    def run_id(self) -> str:
        return self.record.run_id

    def end(self, reason: str, message: str = "") -> None:
        """Say how it ended, once its results are written."""
        self.record.status, self.record.message = reason, message


@contextmanager
def run_context(
    store: Store, run_id: str, entry: RunEntry, events: Events = SILENT, expected: Callable[[], int] = lambda: 0
) -> Iterator[RunContext]:
    """Begin a run, and end it however it ends. `expected` tells how many answers it takes, about."""
    with (
        locked(entry.folder, "discovery") if entry.folder else nullcontext(),
        _begun(store, run_id, entry) as record,
        LiveLog(entry.folder, entry.scope) as live,
    ):
        again = retry_time(store, run_id, [entry.scope], on_request=True) if entry.retry_unusable else None
        ledger = record.spending = RunLedger(store, run_id, entry.scope, entry.budget, again)
        crowd = build_crowd(entry.members, ledger, entry.known)
        with Heartbeat(events, partial(store.costs.totals, run_id), crowd, expected) as heartbeat:
            own = events.to(heartbeat, live)
            own.usd = lambda: record.spending.cost / MICRO if record.spending else None
            try:
                yield RunContext(store, record, ledger, crowd, own, live.reached)
            except AnswersPending as pending:
                own.emit(Waiting.on(pending))
                raise
            except BaseException as error:
                own.emit(RunEnded("interrupted", " ".join(str(error).split())))
                raise
            finally:
                record.figures |= _figures_of(ledger.traffic)
            own.emit(RunEnded(record.status.removeprefix("stopped: "), record.message))


def _begun(store: Store, run_id: str, entry: RunEntry) -> ActiveRun:
    record = store.runs.begin(
        run_id,
        entry.scope,
        name=entry.name,
        flow=entry.flow,
        dataset=entry.dataset,
        oracle=str(entry.members.identity),
        settings=entry.settings.model_dump(mode="json"),
        job=entry.job,
    )
    record.pending = AnswersPending
    return record


def _figures_of(traffic: Traffic) -> dict[str, Any]:
    """What was counted of requests, for store.metrics."""
    if not (traffic.answered or traffic.failed):
        return {}
    bounds = [bound if isfinite(bound) else None for bound in LATENCIES]
    seconds = {"bounds": bounds, "counts": traffic.latencies, "sum": round(traffic.seconds, 3)}
    return {"retries_total": traffic.failed, "request_seconds": seconds}


UNUSABLE = "unusable"  # the status of an enrichment of which most answers were
_UNFINISHED = {"running", "failed", "waiting"} | {
    status for reason in ("oracle-unavailable", "budget") for status in (reason, f"stopped: {reason}")
}


def retry_time(store: Store, run_id: str, scopes: Sequence[str], *, on_request: bool) -> float:
    """Unusable answers from before this time are asked again: when the run began, or the first of the unfinished runs
    that it resumes, so that nothing is paid again which those have found unusable. A run on request resumes only runs
    on request."""
    began = inf
    for run in resumed_runs(store, run_id, scopes):
        if run.run_id != run_id and on_request and not run.settings.get("retry_unusable"):
            break
        began = min(began, run.started_at)
    return began


def resumed_runs(store: Store, run_id: str, scopes: Sequence[str]) -> Iterator[RunState]:
    """This run, and the unfinished ones that it resumes, the latest first."""
    latest = store.runs.latest(scopes)
    at = [run.run_id for run in latest].index(run_id)
    yield latest[at]
    for run in latest[at + 1 :]:
        # Prefect tries a flow run that failed again at once, in which case nothing is paid for a second time either.
        if not (run.status in _UNFINISHED or _tried_again(run.status, run.run_id, run_id)):
            break
        yield run


def was_unusable(store: Store, run_id: str, scopes: Sequence[str]) -> bool:
    """Whether an earlier attempt of the same flow run has found most answers unusable."""
    return any(_tried_again(run.status, run.run_id, run_id) for run in store.runs.latest(scopes))


def _tried_again(status: str, earlier: str, run_id: str) -> bool:
    return status == UNUSABLE and _flow_run(earlier) == _flow_run(run_id)


def _flow_run(run_id: str) -> str:
    """The flow run of an enrichment, whose attempts at a table bear its version."""
    return run_id.rpartition("-")[0]
