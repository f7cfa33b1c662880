"""Calls Prefect's tasks and functions for as long as its API answers: the only place that knows that it may be lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import httpx
from prefect import Task
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.settings import PREFECT_API_URL

from twothirds.flows.events import SILENT, Events

_log = logging.getLogger(__name__)
PATIENCE_SECONDS = 20.0  # a busy machine may take so long

Result = TypeVar("Result")


class TaskExecutor:
    """A run is worth more than its history: when Prefect's API fails, one line says so, the tasks that follow
    run as plain functions, and nothing more is sent."""

    def __init__(self, events: Events = SILENT) -> None:
        """`events` are of whoever started the run."""
        self._events = events
        self.lost = False

    def call(self, task: Task[..., Result], *args: Any, **named: Any) -> Result:
        """The task, or its plain function once Prefect is lost."""
        result: Result = self._attempt(lambda: task(*args, **named), lambda: task.fn(*args, **named))
        return result

    def tell(self, send: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """What a function of Prefect's returns; None if it could not be sent."""
        return self._attempt(lambda: send(*args, **named), lambda: None)

    def result_of(self, future: Any, otherwise: Callable[[], Result]) -> Result:
        """Of a task that was submitted before Prefect was lost, if it was."""
        result: Result = self._attempt(future.result, otherwise, submitted=True)
        return result

    def _attempt(
        self, with_prefect: Callable[[], Result], without: Callable[[], Result], *, submitted: bool = False
    ) -> Result:
        if submitted or not self.lost:
            try:
                return with_prefect()
            except Exception as error:
                if not is_failure_of_prefect(error):
                    raise
                self.lose(error)
        return without()

    def lose(self, error: BaseException) -> None:
        """Go on without Prefect, and say so once."""
        if self.lost:
            return
        self.lost = True
        where, why = PREFECT_API_URL.value(), " ".join(str(error.__cause__ or error).split())[:100]
        line = f"the Prefect server at {where} no longer answers ({why or type(error).__name__}): "
        line += "the run goes on without it, and its history ends here"
        self._events.say(line)
        _log.warning(line)  # for a worker, where nobody hears events
        stop_sending()


def is_failure_of_prefect(error: BaseException) -> bool:
    """Whether a request to Prefect's API has failed; those of models and data sets are made by other clients."""
    if isinstance(error, httpx.HTTPStatusError | httpx.TransportError):
        try:
            return error.request.url.netloc == httpx.URL(PREFECT_API_URL.value() or "").netloc
        except RuntimeError:  # it came from another process, which keeps the request
            return True
    return error.__cause__ is not None and is_failure_of_prefect(error.__cause__)


def stop_sending() -> None:
    """End Prefect's services that would try for minutes to send events and log lines to a server that is lost."""
    services: dict[int, Any] = EventsWorker._instances  # type: ignore[misc]  # of all kinds; there is no public way
    for service in list(services.values()):
        loop, task = service._loop, service._task
        if isinstance(service, EventsWorker | APILogWorker) and loop is not None and task is not None:
            loop.call_soon_threadsafe(task.cancel)


def send_history(patience: float = PATIENCE_SECONDS) -> None:
    """Hand over the events and log lines that Prefect's client still holds back."""
    EventsWorker.drain_all(timeout=patience, at_exit=False)
    APILogWorker.drain_all(timeout=patience, at_exit=False)
