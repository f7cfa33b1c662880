"""Runs flows against the Prefect API they are pointed at, one kept by `python -m flows server`, or one of their own.

A server of a run's own is stopped only after the history of the run has reached its database."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from prefect import Flow, tags
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import State
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from pydantic import BaseModel

from flows.progress import SILENT, Display
from flows.settings import prefect_environment, state_folder
from models import AnswersPending

WAITING = "Waiting"  # the name of the state of a run that ends because answers are pending: it is to be run again
PATIENCE_SECONDS = 20.0  # a busy machine may take so long; returns at once where history is complete
HURRIED_SECONDS = 1.0  # after Ctrl-C


def send_history(patience: float = PATIENCE_SECONDS) -> None:
    """Hand over the events and log lines that Prefect's client still holds back."""
    EventsWorker.drain_all(timeout=patience, at_exit=False)
    APILogWorker.drain_all(timeout=patience, at_exit=False)


def wait_for_history(flow_run_id: UUID, last_task: str) -> None:
    """Wait until the server knows that the run's last task has ended, and with it all the others."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    this_run = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id]))
    with get_client(sync_client=True) as client:
        while time.monotonic() < deadline:
            runs = client.read_task_runs(flow_run_filter=this_run)
            ended = all(run.state is not None and run.state.is_final() for run in runs)
            if ended and any(run.name.startswith(last_task) for run in runs):
                return
            time.sleep(0.1)


START_SECONDS = 120.0
STOP_SECONDS = 8.0
BUSY_SECONDS = 30.0  # a server that is there but busy may take so long
_SERVE = [
    "--factory",
    "prefect.server.api.server:create_app",
    "--log-level",
    "error",
    "--timeout-graceful-shutdown",
    "2",
]


class ServerError(Exception):
    """The Prefect API cannot be reached; the message is one line with the remedy."""


class Api(NamedTuple):
    url: str
    own: bool  # it ends with the run


@contextmanager
def prefect_api(state: Path, environment: dict[str, str]) -> Iterator[Api]:
    """Yield a Prefect API that answers, for as long as the caller needs it."""
    os.environ.update(environment)
    from prefect.settings import get_current_settings

    _quieten_console()
    pointed_at = get_current_settings().api.url
    if pointed_at:
        if not answers(pointed_at, BUSY_SECONDS):
            raise ServerError(
                f"the Prefect API at {pointed_at} does not answer: start it (`prefect server start`), "
                "or unset PREFECT_API_URL to let the run bring its own"
            )
        yield Api(pointed_at, own=False)
        return
    kept = kept_server(state)
    if kept:
        with _pointing_at(kept):
            yield Api(kept, own=False)
        return
    with own_server(state) as url, _pointing_at(url):
        yield Api(url, own=True)


def _quieten_console() -> None:
    """Log lines go to the API, where they can be read; the terminal is for results and progress."""
    if "PREFECT_LOGGING_LEVEL" in os.environ:  # the user wants to see them
        return
    from prefect.logging.handlers import PrefectConsoleHandler

    loggers = [logging.getLogger(), *map(logging.getLogger, list(logging.root.manager.loggerDict))]
    for handler in (handler for logger in loggers for handler in logger.handlers):
        if isinstance(handler, PrefectConsoleHandler):
            handler.setLevel(logging.CRITICAL)


@contextmanager
def _pointing_at(url: str) -> Iterator[None]:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: url}):
        yield


def answers(url: str, timeout: float = 2.0) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=timeout) as reply:  # noqa: S310 (the user's own API)
            return bool(reply.status == 200)
    except (OSError, ValueError, urllib.error.URLError):
        return False


def kept_server(state: Path) -> str | None:
    """The URL of a server that `python -m flows server` keeps running, if it answers."""
    try:
        url = str(json.loads((state / "server.json").read_text())["url"])
    except (OSError, ValueError, KeyError):
        return None
    return url if answers(url, BUSY_SECONDS) else None


@contextmanager
def own_server(state: Path, port: int = 0) -> Iterator[str]:
    """A real Prefect server as a child process: its history stays in Prefect's database, it ends with this process."""
    state.mkdir(parents=True, exist_ok=True)
    log = state / "server.log"
    with _bound(port) as own, log.open("w") as sink:
        url = f"http://127.0.0.1:{own.getsockname()[1]}/api"
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", *_SERVE, "--fd", str(own.fileno())],
            env=os.environ | {"PREFECT_API_URL": url, "PREFECT__SERVER_FINAL": "1"},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            pass_fds=[own.fileno()],
            start_new_session=True,  # Ctrl-C is for the run, which then stops its server
            preexec_fn=_end_with_parent,
        )
    try:
        _wait_until_it_answers(process, url, log)
        yield url
    except KeyboardInterrupt:
        _stop(process, HURRIED_SECONDS)
        raise
    finally:
        _stop(process, STOP_SECONDS)


def _wait_until_it_answers(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerError(f"the local Prefect server ended at once: see {log}")
        if answers(url):
            return
        time.sleep(0.05)
    raise ServerError(f"the local Prefect server did not answer within {START_SECONDS:.0f} s: see {log}")


def _stop(process: subprocess.Popen[bytes], patience: float) -> None:
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_with_parent() -> None:
    """Linux only: the kernel ends the server when this process dies, even by SIGKILL."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _bound(port: int) -> socket.socket:
    """A socket with that port, or with any for 0: no other program can take it before the server listens."""
    own = socket.socket()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does so only for sockets that it has made
    try:
        own.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        own.close()
        why = getattr(error, "strerror", None) or error
        raise ServerError(f"no server can listen at port {port} ({why}): give another --port") from None
    return own


@contextmanager
def keep_server(state: Path, environment: dict[str, str], port: int) -> Iterator[str]:
    """A server that other runs find by a note in the state folder."""
    os.environ.update(environment)
    with own_server(state, port) as url:
        note = state / "server.json"
        note.write_text(json.dumps({"url": url}))
        try:
            yield url
        finally:
            note.unlink(missing_ok=True)


def run_with_api(
    start: Callable[[], State[Any]], last_task: str, *labels: str, display: Display = SILENT
) -> State[Any]:
    """Start a flow (with `return_state=True`); a server of its own is kept until the run's history has reached it."""
    with ExitStack() as stack:
        with display.waiting("starting Prefect"):
            api = stack.enter_context(prefect_api(state_folder(), prefect_environment()))
        stack.enter_context(tags("twothirds", *labels))
        try:
            state = start()
        except KeyboardInterrupt:
            send_history(HURRIED_SECONDS)  # what is not sent by now, Prefect would try to send to a server that is gone
            raise
        send_history()
        if api.own and state.is_completed() and state.state_details.flow_run_id:
            wait_for_history(state.state_details.flow_run_id, last_task)
    return state


class PreparedFlow(Flow[..., Any]):
    """A flow that takes settings alone, and does `work` with what was prepared from them. Tasks take it along to the
    workers of a cluster: it travels as the flow that it stands for, since what was prepared cannot travel."""

    def __init__(self, template: Flow[..., Any], work: Callable[[], Any]) -> None:
        def run(settings: Any) -> Any:  # noqa: ARG001  # Prefect shows it, and names the run by it
            return work()

        name, run_name, about = template.name, template.flow_run_name, template.description
        super().__init__(run, name=name, flow_run_name=run_name, description=about, persist_result=False)
        self._template = template

    def __reduce__(self) -> tuple[Any, ...]:
        return _unchanged, (self._template,)


def _unchanged(flow: Flow[..., Any]) -> Flow[..., Any]:
    return flow


def start_prepared(template: Flow[..., Any], settings: BaseModel, work: Callable[[], Any]) -> State[Any]:
    """A run of the flow that does `work`."""
    flow: Any = PreparedFlow(template, work)
    state: State[Any] = flow(settings, return_state=True)
    return state


def run_as_flow(
    template: Flow[..., Any],
    settings: BaseModel,
    work: Callable[[], Any],
    last_task: str,
    *labels: str,
    display: Display = SILENT,
) -> Any:
    """Do `work` as a run of a flow, and return its result. Raises AnswersPending where the run waits for people."""
    start = partial(start_prepared, template, settings, work)
    state = run_with_api(start, last_task, *labels, display=display)
    if state.name == WAITING:
        raise AnswersPending(state.message or "")
    return state.result()


def artifact_key(kind: str, dataset: str) -> str:
    """The key of an artifact about a data set: small letters, digits and dashes, as Prefect asks for."""
    return f"{kind}-{re.sub(r'[^a-z0-9]+', '-', dataset.lower())}"
