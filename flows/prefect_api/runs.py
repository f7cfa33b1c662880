"""Runs of flows: the same function from the command line, from Python and from a deployment, and to its end without
Prefect where that is lost in mid-run."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar, get_type_hints
from uuid import uuid4

from prefect import get_client, tags
from prefect.client.schemas.objects import State, StateType
from prefect.context import FlowRunContext, TagsContext
from prefect.events import emit_event
from prefect.exceptions import Abort
from prefect.runtime import flow_run as current_run
from prefect.settings import get_current_settings

from twothirds.flows.endings import DONE, FAILED, Ending, clean, ending_of, line_of
from twothirds.flows.events import SILENT, Events
from twothirds.flows.prefect_api.connection import prefect_api
from twothirds.flows.prefect_api.executor import TaskExecutor, is_failure_of_prefect, send_history, stop_sending
from twothirds.flows.prefect_api.metrics_file import write_metrics
from twothirds.flows.prefect_api.servers import HURRIED_SECONDS, answers
from twothirds.flows.settings import RunSettings
from twothirds.flows.subscribers.prefect import PrefectLog
from twothirds.reports.run import UnusableAnswers
from twothirds.sources import name_of
from twothirds.tasks import without_tracebacks

Function = TypeVar("Function", bound=Callable[..., Any])
REFUSED_SHARE = 0.05  # of the answers, from which an event tells it


class Caller:
    """Who starts a run in this process: what was prepared for it, who watches, and what came of it, which is known even
    if Prefect is lost. It goes with the settings; a deployment has none."""

    def __init__(self, events: Events = SILENT, prepared: Any = None) -> None:
        self.events, self.prepared = events, prepared
        self.executor = TaskExecutor(events)
        self.results: list[Any] = []
        self.error: Exception | None = None

    def __reduce__(self) -> tuple[type[Caller], tuple[()]]:
        """Tasks take the settings along to the workers of a cluster, who have no terminal."""
        return Caller, ()


class FlowRun:
    """What the function of a flow needs of its run: where it tells what it does, and what ends it."""

    def __init__(self, settings: RunSettings, caller: Caller) -> None:
        """In the thread that runs the flow."""
        self.prepared, self.executor = caller.prepared, caller.executor
        self.dataset = name_of(settings.dataset)
        self.run_id = str(current_run.id or uuid4())
        self._caller, self._log = caller, PrefectLog()
        self.events = caller.events.to(self._write_log)
        self._ended: tuple[Ending, str] | None = None
        self._returned: Any = {}

    def _write_log(self, event: Any) -> None:
        if not self.executor.lost:
            self._log(event)

    def emit(self, event: str, message: str, **more: Any) -> None:
        """An event about the data set, on which automations may act."""
        resource = {"prefect.resource.id": f"twothirds.dataset.{self.dataset}", "prefect.resource.name": self.dataset}
        payload = {"message": clean(message), "run": self.run_id, **more}
        self.executor.tell(emit_event, event, resource=resource, payload=payload)

    def tell_refusals(self, found: UnusableAnswers | None) -> None:
        """An event where too many answers could not be used, though not so many that the run fails."""
        answers = found.comparisons + found.labels if found else 0
        if found and found.total >= REFUSED_SHARE * answers > 0:
            share = round(found.total / answers, 4)
            self.emit("twothirds.answers.refused", found.lines()[0], share=share)

    def done(self, result: Any, returned: dict[str, Any]) -> None:
        """`result` is for the caller, `returned` for Prefect."""
        self._caller.results.append(result)
        self._returned = returned

    def end(self, ending: Ending, message: str = "") -> None:
        """Note how the run ends, tell it in the log and as an event; once, for what is noted first counts."""
        if self._ended is None:
            self._ended = ending, clean(message)
            self.events.log(f"ends as {ending.name}{f': {self._ended[1]}' if message else ''}")
            self.emit(ending.event, self._ended[1], state=ending.name, status=ending.status)

    def fail(self, error: Exception) -> None:
        """Raises what Prefect is to show as a defect, or to try again."""
        self._caller.error = error
        if is_failure_of_prefect(error):
            self.leave_if_lost()
            raise error
        tries_left, ending = _tries_left(), ending_of(error)
        if ending.again and tries_left:
            self.events.log(f"{ending.name}, to be tried again: {line_of(error)}")
            raise error
        self.end(ending, line_of(error))
        self.leave_if_lost()
        if ending is FAILED:
            raise error
        if ending.type == "FAILED" and tries_left:
            self.executor.tell(_try_no_more)
        self._returned = error

    def leave_if_lost(self) -> None:
        """Prefect would retry for minutes to report the end of the run to its server."""
        if not self.executor.lost or FlowRunContext.get() is None:
            return
        url = get_current_settings().api.url or ""
        if not answers(url, HURRIED_SECONDS):
            raise Abort("the Prefect server is lost")

    @property
    def state(self) -> dict[str, Any] | State[Any]:
        """What the function of the flow returns: its result, or the state in which it has ended."""
        ending, message = self._ended or (DONE, "")
        if ending is DONE:
            return dict(self._returned)
        return State(type=StateType[ending.type], name=ending.name, message=message, data=self._returned)

    @property
    def status(self) -> int:
        """As a command would end with; that of a failure until the run has ended."""
        return self._ended[0].status if self._ended else FAILED.status


@contextmanager
def flow_run(settings: RunSettings) -> Iterator[FlowRun]:
    """The run of the flow whose function this is entered in; what ends it is in `state` then. A run of a deployment
    writes the figures of the latest runs to the file of TWOTHIRDS_METRICS."""
    without_tracebacks()
    caller: Caller | None = settings.caller
    run = FlowRun(settings, caller or Caller())
    status = FAILED.status
    try:
        try:
            with TagsContext(current_tags=set()):  # of a task with tags the server is asked whether it may run
                yield run
        except Exception as error:
            status = ending_of(error).status
            run.fail(error)
        else:
            run.end(DONE)
            run.leave_if_lost()
        status = run.status
    finally:
        if caller is None and (file := os.environ.get("TWOTHIRDS_METRICS")):
            write_metrics(Path(file), settings, current_run.flow_name or "", status)


def run_flow(flow: Any, settings: RunSettings, caller: Caller, *labels: str) -> Any:
    """Run a flow here, and return its result. `labels` are tags of the run, beside the data set."""

    def run() -> Any:
        return _run_here(flow, settings.called_by(caller), caller, name_of(settings.dataset), *labels)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1) as pool:  # a flow would run in the notebook's own loop, which is busy with this call
        return pool.submit(copy_context().run, run).result()


def _run_here(flow: Any, settings: RunSettings, caller: Caller, *labels: str) -> Any:
    executor = caller.executor
    try:
        with prefect_api(caller.events), tags("twothirds", *labels):
            state = _with_history(lambda: flow(settings, return_state=True), executor)
    except (Abort, Exception):
        if not executor.lost:
            raise
        state = None
    if caller.error is not None and not is_failure_of_prefect(caller.error):
        raise caller.error
    if not caller.results:
        if state is not None:
            return state.result()
        flow.fn(settings)  # Prefect was lost before it was begun: now without
    return caller.results[0]


def _with_history(start: Callable[[], State[Any]], executor: TaskExecutor) -> State[Any]:
    try:
        state = start()
        send_history()
    except KeyboardInterrupt:
        send_history(HURRIED_SECONDS)  # what is not sent by now, Prefect would try to send to a server that is gone
        raise
    except (Abort, Exception) as error:
        if is_failure_of_prefect(error):
            executor.lose(error)
        if executor.lost:
            stop_sending()
            send_history(HURRIED_SECONDS)
        raise
    return state


def travels(function: Function) -> Function:
    """A flow that is served goes to another process by value, and leaves behind what its annotations only name."""
    function.__annotations__ = get_type_hints(function)
    return function


def run_name() -> str:
    """Of the flow run that begins. One of a deployment carries the day for which it was scheduled (UTC)."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None or context.parameters is None:
        raise RuntimeError("only a flow run that has begun can be named")
    name = str(context.parameters["settings"].run_name)
    day = context.flow_run.expected_start_time
    return f"{name}-{day:%Y-%m-%d}" if context.flow_run.deployment_id and day else name


def _tries_left() -> bool:
    """Whether Prefect would try a flow run again that fails now."""
    context = FlowRunContext.get()
    run, flow = (context.flow_run, context.flow) if context else (None, None)
    return run is not None and flow is not None and run.run_count <= (flow.retries or 0)


def _try_no_more() -> None:
    """What was given wrongly is not better in five minutes."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        with get_client(sync_client=True) as client:
            policy = context.flow_run.empirical_policy.model_copy(update={"retries": 0})
            client.update_flow_run(context.flow_run.id, empirical_policy=policy)


def artifact_key(kind: str, dataset: str) -> str:
    """The key of an artifact about a data set: small letters, digits and dashes, as Prefect asks for."""
    return f"{kind}-{re.sub(r'[^a-z0-9]+', '-', dataset.lower())}"
