"""Runs flows with a Prefect API, and to their end without one when it is lost in mid-run."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from prefect import Flow, get_client, tags
from prefect.client.schemas.objects import State, StateType
from prefect.context import FlowRunContext, TagsContext
from prefect.exceptions import Abort
from prefect.runtime import flow_run
from prefect.settings import get_current_settings
from pydantic import BaseModel

from twothirds.flows.endings import DONE, FAILED, Ending, ending_of, line_of
from twothirds.flows.events import SILENT, Events
from twothirds.flows.prefect_api.connection import prefect_api
from twothirds.flows.prefect_api.history import (
    History,
    is_failure_of_prefect,
    send_history,
    stop_sending,
)
from twothirds.flows.prefect_api.metrics_file import write_metrics
from twothirds.flows.prefect_api.servers import HURRIED_SECONDS, answers
from twothirds.flows.settings import RunSettings
from twothirds.sources import name_of
from twothirds.tasks import without_tracebacks


def run_with_api(
    start: Callable[[], State[Any]],
    *labels: str,
    events: Events = SILENT,
    history: History | None = None,
) -> State[Any]:
    """Start a flow (with `return_state=True`), and hand over its history."""
    with ExitStack() as stack:
        stack.enter_context(prefect_api(events))
        stack.enter_context(tags("twothirds", *labels))
        try:
            state = start()
            send_history()
        except KeyboardInterrupt:
            send_history(HURRIED_SECONDS)  # what is not sent by now, Prefect would try to send to a server that is gone
            raise
        except (Abort, Exception) as error:
            if is_failure_of_prefect(error):
                (history or History(events)).lose(error)
            if history is not None and history.lost:
                stop_sending()
                send_history(HURRIED_SECONDS)
            raise
    return state


def run_name() -> str:
    """Of the flow run that begins. One of a deployment carries the day for which it was scheduled (UTC)."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None or context.parameters is None:
        raise RuntimeError("only a flow run that has begun can be named")
    name = str(context.parameters["settings"].run_name)
    day = context.flow_run.expected_start_time
    return f"{name}-{day:%Y-%m-%d}" if context.flow_run.deployment_id and day else name


Result = TypeVar("Result")


class PreparedFlow(Flow[..., Any]):
    """A flow that takes settings alone, and does `work` with what was prepared from them. Tasks take it along to the
    workers of a cluster: it travels as the flow that it stands for, since what was prepared cannot travel."""

    def __init__(self, template: Flow[..., Any], work: Callable[[], Any]) -> None:
        def run(settings: Any) -> Any:  # noqa: ARG001  # Prefect shows it, and names the run by it
            with TagsContext(current_tags=set()):  # of a task with tags the server is asked whether it may run
                return work()

        name, run_name, description = template.name, template.flow_run_name, template.description
        super().__init__(run, name=name, flow_run_name=run_name, description=description, persist_result=False)
        self._template = template

    def serialize_parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """What Prefect shows; its own way imports FastAPI, which takes longer than to find the server."""
        return {name: value.model_dump(mode="json") for name, value in parameters.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return _unchanged, (self._template,)


def _unchanged(flow: Flow[..., Any]) -> Flow[..., Any]:
    return flow


class _Attempt:
    """The work of a flow run, whose outcome is known even if Prefect is lost."""

    def __init__(self, work: Callable[[History], Any], history: History, dataset: str) -> None:
        self._work, self._history, self._dataset = work, history, dataset
        self._results: list[Any] = []
        self._error: Exception | None = None

    def __call__(self) -> Any:
        """Within the flow run: its result, or the state that says how it has ended. A defect is raised, and what may
        get better while the flow is to be tried again."""
        without_tracebacks()
        try:
            self._results.append(self._work(self._history))
        except Exception as error:
            self._error = error
            if is_failure_of_prefect(error):
                self._leave_if_lost()
                raise
            tries_left, ending = _tries_left(), ending_of(error)
            if ending.again and tries_left:
                self._history.log(f"{ending.name}, to be tried again: {line_of(error)}")
                raise
            self._history.end(ending, line_of(error), self._dataset)
            self._leave_if_lost()
            if ending is FAILED:
                raise
            if ending.type == "FAILED" and tries_left:
                self._history.tell(_try_no_more)
            return _state(ending, self._history.message, error)
        ending = self._history.end(DONE, "", self._dataset)
        self._leave_if_lost()
        return self._results[0] if ending is DONE else _state(ending, self._history.message, self._results[0])

    def _leave_if_lost(self) -> None:
        """Prefect would retry for minutes to report the end of the run to its server."""
        url = get_current_settings().api.url or ""
        if self._history.lost and not answers(url, HURRIED_SECONDS):
            raise Abort("the Prefect server is lost")

    def outcome(self) -> Any:
        """What the work has returned or raised; if the flow run was lost before it, it is done now without Prefect."""
        if self._error is not None and not is_failure_of_prefect(self._error):
            raise self._error
        return self._results[0] if self._results else self._work(self._history)

    @property
    def is_over(self) -> bool:
        return bool(self._results) or self._error is not None


def _state(ending: Ending, message: str, data: Any) -> State[Any]:
    return State(type=StateType[ending.type], name=ending.name, message=message, data=data)


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


def run_in_flow(work: Callable[[History], Result], settings: RunSettings) -> Result | State[Any]:
    """For the function of a flow that a deployment starts: the result of `work`, or the state it has ended in. The
    figures of the latest runs are written to the file of TWOTHIRDS_METRICS."""
    history = History()
    attempt = _Attempt(work, history, name_of(settings.dataset))
    status = FAILED.status
    try:
        result: Result | State[Any] = attempt()
        status = history.status
    except Exception as error:  # to be tried again, or a defect
        status = ending_of(error).status
        raise
    finally:
        if file := os.environ.get("TWOTHIRDS_METRICS"):
            write_metrics(Path(file), settings, flow_run.flow_name or "", status)
    return result


def run_as_flow(
    template: Flow[..., Any],
    settings: BaseModel,
    work: Callable[[History], Any],
    *labels: str,
    events: Events = SILENT,
) -> Any:
    """Do `work` as a run of a flow, and return its result. `labels` are tags of the run, the first the data set."""
    run = partial(_run_here, template, settings, work, *labels, events=events)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1) as pool:  # a flow would run in the notebook's own loop, which is busy with this call
        return pool.submit(copy_context().run, run).result()


def _run_here(
    template: Flow[..., Any],
    settings: BaseModel,
    work: Callable[[History], Any],
    *labels: str,
    events: Events,
) -> Any:
    history = History(events)
    attempt = _Attempt(work, history, labels[0])
    flow: Any = PreparedFlow(template, attempt)
    start = partial(flow, settings, return_state=True)
    try:
        state = run_with_api(start, *labels, events=events, history=history)
    except (Abort, Exception):
        if not history.lost:
            raise
        return attempt.outcome()
    return attempt.outcome() if attempt.is_over else state.result()


def artifact_key(kind: str, dataset: str) -> str:
    """The key of an artifact about a data set: small letters, digits and dashes, as Prefect asks for."""
    return f"{kind}-{re.sub(r'[^a-z0-9]+', '-', dataset.lower())}"
