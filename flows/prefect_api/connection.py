"""The Prefect API that a run uses: the one it is pointed at, one kept by `python -m flows server`, the one in the
background, or one of its own."""

from __future__ import annotations

import logging
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from flows.prefect_api.background import BackgroundServer, start_in_background
from flows.prefect_api.environment import prefect_environment
from flows.prefect_api.servers import BUSY_SECONDS, LocalServer, ServerError, answers, kept_server, own_server
from flows.progress import SILENT, Display

STARTING = "starting Prefect"
RETRIES, REQUEST_SECONDS = 3, 10.0  # a server on this machine counts as lost after 14 s if dead, 54 s if it hangs


class Api(NamedTuple):
    url: str
    own: bool  # it ends with the run


@contextmanager
def starting_prefect() -> Iterator[None]:
    """Start the server in the background, if a run will need it, while the caller prepares the run. If that fails,
    nothing is left running."""
    background = start_in_background()
    try:
        yield
    except BaseException:
        if background:
            background.abandon()
        raise
    if background:
        background.hand_over()


@contextmanager
def prefect_api(state: Path, idle: float, display: Display = SILENT) -> Iterator[Api]:
    """Yield a Prefect API that answers, for as long as the caller needs it."""
    os.environ.update(prefect_environment())
    from prefect.settings import get_current_settings

    _quieten_console()
    pointed_at = get_current_settings().api.url
    if pointed_at and not answers(pointed_at, BUSY_SECONDS):
        raise ServerError(
            f"the Prefect API at {pointed_at} does not answer: start it (`prefect server start`), "
            "or unset PREFECT_API_URL to let the run bring its own"
        )
    running = kept_server(state, pointed_at)
    if running is None and pointed_at:
        _assert_admitted(pointed_at)
        yield Api(pointed_at, own=False)
        return
    with _local_server(running, state, idle, display) as local, pointing_at(local), _heartbeats(watched=bool(running)):
        yield Api(local.url, own=not (running or idle))


@contextmanager
def _local_server(running: LocalServer | None, state: Path, idle: float, display: Display) -> Iterator[LocalServer]:
    """The server that is kept, else the one in the background, else a new one that ends with this process."""
    with ExitStack() as stack:
        if running:
            server = running
        elif idle:
            background = stack.enter_context(BackgroundServer(state, idle))
            server = background.answering() or _awaited(background, display)
        else:
            with display.waiting(STARTING):
                server = stack.enter_context(own_server(state))
        yield server


def _awaited(background: BackgroundServer, display: Display) -> LocalServer:
    with display.waiting(STARTING):
        threading.Thread(target=_import_ahead, name="imports", daemon=True).start()
        return background.wait()


def _import_ahead() -> None:
    """While there is nothing to do but wait."""
    for name in ("prefect.flow_engine", "prefect.task_engine", "pandas"):
        import_module(name)


def _quieten_console() -> None:
    """Log lines go to the API, where they can be read; the terminal is for results and progress."""
    if "PREFECT_LOGGING_LEVEL" in os.environ:  # the user wants to see them
        return
    logging.raiseExceptions = False  # else lines that cannot be sent are reported on stderr
    logging.getLogger("prefect._internal.concurrency").disabled = True  # its level is set again when a flow starts
    from prefect.logging.handlers import PrefectConsoleHandler

    loggers = [logging.getLogger(), *map(logging.getLogger, list(logging.root.manager.loggerDict))]
    for handler in (handler for logger in loggers for handler in logger.handlers):
        if isinstance(handler, PrefectConsoleHandler):
            handler.setLevel(logging.CRITICAL)


@contextmanager
def pointing_at(server: LocalServer) -> Iterator[None]:
    """Have Prefect's client use that server, and not wait long for it; its own variables win."""
    from prefect.settings import (
        PREFECT_API_AUTH_STRING,
        PREFECT_API_REQUEST_TIMEOUT,
        PREFECT_API_URL,
        PREFECT_CLIENT_MAX_RETRIES,
        temporary_settings,
    )

    patience = {PREFECT_CLIENT_MAX_RETRIES: RETRIES, PREFECT_API_REQUEST_TIMEOUT: REQUEST_SECONDS}
    unset = {setting: value for setting, value in patience.items() if setting.name not in os.environ}
    own = {PREFECT_API_URL: server.url, PREFECT_API_AUTH_STRING: server.password.get_secret_value()}
    with temporary_settings(own | unset):
        yield


@contextmanager
def _heartbeats(*, watched: bool) -> Iterator[None]:
    """None to a server that nobody watches: each run would wait up to a second for the thread that sends them."""
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    with nullcontext() if watched else temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield


def _assert_admitted(url: str) -> None:
    """Raises ServerError if the API asks for a password and none is set."""
    from prefect.settings import get_current_settings

    settings = get_current_settings().api
    if settings.auth_string or settings.key:
        return
    try:
        urllib.request.urlopen(f"{url}/admin/version", timeout=BUSY_SECONDS).close()  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == 401:
            raise ServerError(f"the Prefect API at {url} asks for a password: set PREFECT_API_AUTH_STRING") from None
    except (OSError, ValueError):
        return
