"""What a run sends to Prefect, for as long as Prefect answers, and no longer: tasks, events, and its log, in which an
operator reads what the one who started it sees."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

import httpx
from prefect import Task
from prefect.events import emit_event
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.runtime import flow_run
from prefect.settings import PREFECT_API_URL

from twothirds.flows.endings import Ending, clean
from twothirds.flows.events import SILENT, Events
from twothirds.flows.subscribers.heartbeat import Heartbeat
from twothirds.flows.subscribers.prefect import PrefectLog
from twothirds.models import Oracle, connect
from twothirds.reports.run import UnusableAnswers

_log = logging.getLogger(__name__)
REFUSED_SHARE = 0.05  # of the answers, from which an event tells it
PATIENCE_SECONDS = 20.0  # a busy machine may take so long

Given = ParamSpec("Given")
Result = TypeVar("Result")


class History:
    """A run is worth more than its history: when Prefect's API fails, one line says so, the tasks that follow
    run as plain functions, and nothing more is sent."""

    def __init__(self, events: Events = SILENT) -> None:
        self._started_by = events
        self.lost = False
        self._ended: tuple[Ending, str] | None = None

    @cached_property
    def events(self) -> Events:
        """Shows to whoever started the run what it says, and writes it to the log of the flow run. First used by the
        thread that runs the flow."""
        log = PrefectLog()
        return self._started_by.to(lambda event: None if self.lost else log(event))

    def log(self, *lines: str) -> None:
        self.events.log(*lines)

    @cached_property
    def run_id(self) -> str:
        """Of the flow run; of its own where there is none."""
        return str(flow_run.id or uuid4())

    def task(self, task: Task[Given, Result]) -> Callable[Given, Result]:
        """The task, or its plain function once Prefect is lost."""

        def run(*args: Given.args, **named: Given.kwargs) -> Result:
            return self.attempt(partial(task, *args, **named), partial(task.fn, *args, **named))

        return run

    def tell(self, send: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """What `send` returns; None if it could not be sent."""
        return self.attempt(partial(send, *args, **named), lambda: None)

    def attempt(
        self, with_prefect: Callable[[], Result], without: Callable[[], Result], *, always: bool = False
    ) -> Result:
        """The first, or the second once Prefect is lost; `always` for what was begun before that."""
        if always or not self.lost:
            try:
                return with_prefect()
            except Exception as error:
                if not is_failure_of_prefect(error):
                    raise
                self.lose(error)
        return without()

    def connect(self, oracle: Oracle) -> None:
        """Find out in a task what the oracle's server can do, which a slow one may take minutes for."""
        from twothirds.store import Totals
        from twothirds.tasks import probed

        with Heartbeat(self.events, Totals, oracle):
            self.attempt(partial(probed, oracle), partial(connect, oracle))

    def end(self, ending: Ending, message: str, dataset: str) -> Ending:
        """Note how the run ends, tell it in the log and as an event; once, for what is noted first counts."""
        if self._ended is None:
            self._ended = ending, clean(message)
            self.log(f"ends as {ending.name}{f': {self.message}' if self.message else ''}")
            self.emit(ending.event, dataset, self.message, state=ending.name, status=ending.status)
        return self._ended[0]

    def emit(self, event: str, dataset: str, message: str, **more: Any) -> None:
        """An event about a data set, on which automations may act."""
        resource = {"prefect.resource.id": f"twothirds.dataset.{dataset}", "prefect.resource.name": dataset}
        payload = {"message": clean(message), "run": self.run_id, **more}
        self.tell(emit_event, event, resource=resource, payload=payload)

    def tell_refusals(self, dataset: str, found: UnusableAnswers | None) -> None:
        """An event where too many answers could not be used, though not so many that the run fails."""
        answers = found.comparisons + found.labels if found else 0
        if found and found.total >= REFUSED_SHARE * answers > 0:
            share = round(found.total / answers, 4)
            self.emit("twothirds.answers.refused", dataset, found.lines()[0], share=share)

    @property
    def status(self) -> int:
        """As a command would end with; that of a failure until the run has ended."""
        return self._ended[0].status if self._ended else 1

    @property
    def message(self) -> str:
        return self._ended[1] if self._ended else ""

    def lose(self, error: BaseException) -> None:
        """Go on without Prefect, and say so once."""
        if self.lost:
            return
        self.lost = True
        where, why = PREFECT_API_URL.value(), " ".join(str(error.__cause__ or error).split())[:100]
        line = f"the Prefect server at {where} no longer answers ({why or type(error).__name__}): "
        line += "the run goes on without it, and its history ends here"
        self._started_by.say(line)
        _log.warning(line)  # for a worker, which has no events
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
