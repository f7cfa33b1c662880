"""The entry of a run in the store: begun before its first question, ended however the run ends.

What a run reports while it works, to nobody or in a notebook. The terminal's display is flows.cli.progress."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from importlib import import_module
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from twothirds.models import LATENCIES, AnswersPending, Money, Oracle, OracleError, RunLedger, TellsTraffic, in_usd
from twothirds.sources import printable

if TYPE_CHECKING:
    from twothirds.store import ActiveRun, Job, RunState, Store, Totals


@contextmanager
def recorded_run(
    store: Store,
    run_id: str,
    scope: str,
    *,
    flow: str,
    name: str,
    dataset: str,
    oracle: Oracle,
    settings: BaseModel,
    job: Job | None = None,
    display: Display | None = None,
    expected: Callable[[], int] = lambda: 0,
) -> Iterator[ActiveRun]:
    """Begin a run in the store, and watch it. What waits for people ends with the status "waiting". `expected` tells
    how many answers it takes, about."""
    chosen, who = settings.model_dump(mode="json"), str(oracle.identity)
    described: dict[str, Any] = {"name": name, "flow": flow, "dataset": dataset, "oracle": who, "settings": chosen}
    with store.runs.begin(run_id, scope, **described, job=job) as run:
        run.pending = AnswersPending
        with watched(partial(store.costs.totals, run_id), oracle, display or SILENT, expected):
            try:
                yield run
            finally:
                run.figures |= _figures_of(oracle)


def _figures_of(oracle: Oracle) -> dict[str, Any]:
    """What an oracle has counted of its requests, for store.metrics."""
    if not isinstance(oracle, TellsTraffic) or not (oracle.traffic.answered or oracle.traffic.failed):
        return {}
    traffic = oracle.traffic
    bounds = [bound if isfinite(bound) else None for bound in LATENCIES]
    seconds = {"bounds": bounds, "counts": traffic.latencies, "sum": round(traffic.seconds, 3)}
    return {"retries_total": traffic.failed, "request_seconds": seconds}


BEAT_SECONDS = 60.0


@contextmanager
def watched(
    totals: Callable[[], Totals], oracle: Oracle, display: Display, expected: Callable[[], int] = lambda: 0
) -> Iterator[None]:
    """Every minute, from a thread of its own: say what is waited for if no answer came, or how many came and when the
    last one will, which is only logged where the display has shown something since."""
    over, context = threading.Event(), copy_context()  # by which log lines find Prefect's server

    def look() -> None:
        from twothirds.store import StoreError

        answers, still, began, shown = 0, 0, time.monotonic(), display.shown
        while not over.wait(BEAT_SECONDS):
            with suppress(StoreError, OracleError):  # the run itself says what is wrong with it
                now = totals()
                before, answers = answers, now.paid_calls + now.cached_calls
                still = still + 1 if answers == before else 0
                is_quiet, shown = display.shown == shown, display.shown
                if still and not over.is_set():
                    display.say(_waits_for(oracle, still))
                    continue
                speed = _speed(now, time.monotonic() - began, expected)
                tell = display.say if is_quiet and not over.is_set() else display.log
                tell(f"{answers:,} answers so far{speed}, {in_usd(now.paid)}")

    thread = threading.Thread(target=context.run, args=(look,), name="watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(BEAT_SECONDS)  # it may be reading the store, which is closed next


def _speed(now: Totals, seconds: float, expected: Callable[[], int]) -> str:
    """How many answers come in a minute, and when the last one will."""
    from twothirds.studio.web import duration

    rate, left = now.paid_calls / seconds, expected() - now.paid_calls - now.cached_calls
    end = f", about {duration(left / rate)} left" if rate and left > 0 else ""
    return f", {60 * rate:,.0f} a minute{end}" if rate else ""


def _waits_for(oracle: Oracle, still: int) -> str:
    traffic = f": {oracle.traffic}" if isinstance(oracle, TellsTraffic) else ""
    minutes = still * BEAT_SECONDS / 60
    try:
        who = str(oracle.identity)
    except OracleError:  # it is not connected yet
        who = repr(oracle)
    return f"no answer for {minutes:.0f} min, waiting for {who}{traffic}"


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


def run_ledger(store: Store, run_id: str, scope: str, budget: Money | None, *, retry: bool) -> RunLedger:
    """The books of a run that has begun; with `retry` what is unusable is asked again."""
    again = retry_time(store, run_id, [scope], on_request=True) if retry else None
    return RunLedger(store, run_id, scope, budget=budget, retry_unusable=again)


class Display:
    """Silent: for callers from Python and for deployments."""

    shown = 0  # how often it has shown something

    def say(self, message: str) -> None:
        pass

    @contextmanager
    def waiting(self, message: str) -> Iterator[None]:  # noqa: ARG002
        yield

    @contextmanager
    def counting(self, total: int | None, unit: str) -> Iterator[None]:  # noqa: ARG002
        """`total` is None where it is not known."""
        yield

    def update(self, done: int, detail: str) -> None:
        pass

    def confirm(self, lines: Sequence[str]) -> bool:  # noqa: ARG002
        """Ask a person whether to go on; where nobody can be asked, the answer is no."""
        return False

    def note(self, detail: str) -> None:
        """Say what is being waited for while nothing is counted."""

    def log(self, *lines: str) -> None:
        """For the log of the run alone, where it has one."""


SILENT = Display()


class NotebookDisplay(Display):
    """One line below the cell that says how far the run is, and what it has to say above it. What was counted stays."""

    REFRESH_SECONDS = 0.5

    def __init__(self) -> None:
        self._line: Any = None
        self._total, self._unit, self._last = "", "", 0.0
        self._counted = ""  # the newest count, whether it was shown or came too soon after another

    def say(self, message: str) -> None:
        self.shown += 1
        print(printable(message))

    @contextmanager
    def waiting(self, message: str) -> Iterator[None]:
        self._show(f"{message} …")
        yield
        self._show(f"{message}: done")

    @contextmanager
    def counting(self, total: int | None, unit: str) -> Iterator[None]:
        self._total, self._unit, self._last = "" if total is None else f"/{total}", unit, 0.0
        try:
            yield
        finally:
            if self._counted:
                self._show(self._counted)
                self._line, self._counted = None, ""

    def update(self, done: int, detail: str) -> None:
        self._counted = f"{done}{self._total} {self._unit}: {detail}"
        self.note(self._counted)

    def note(self, detail: str) -> None:
        if time.monotonic() - self._last >= self.REFRESH_SECONDS:
            self._last = time.monotonic()
            self._show(detail)

    def _show(self, text: str) -> None:
        self.shown += 1
        ipython: Any = import_module("IPython.display")  # only a notebook has it
        line = ipython.Pretty(printable(text))
        if self._line is None:
            self._line = ipython.display(line, display_id=True)
        else:
            self._line.update(line)


def display_for_python() -> Display:
    """Of a caller from Python: a notebook shows progress, a script nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return NotebookDisplay() if hasattr(shell, "kernel") else SILENT
