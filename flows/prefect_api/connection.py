"""The Prefect API that a run uses: the one it is pointed at, one kept by `twothirds server`, or the one in the
background."""

from __future__ import annotations

import logging
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from twothirds.flows.errors import ServerError
from twothirds.flows.events import SILENT, Events
from twothirds.flows.prefect_api.background import BackgroundServer, start_in_background
from twothirds.flows.prefect_api.environment import prefect_environment, server_idle_seconds, state_folder
from twothirds.flows.prefect_api.servers import BUSY_SECONDS, LocalServer, answers, kept_server

STARTING = "starting Prefect"
RETRIES, REQUEST_SECONDS = 3, 10.0  # a server on this machine counts as lost after 14 s if dead, 54 s if it hangs


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
def prefect_api(events: Events = SILENT) -> Iterator[None]:
    """Have a Prefect API that answers, for as long as the caller needs it."""
    os.environ.update(prefect_environment())
    from prefect.settings import get_current_settings

    _quieten_console()
    pointed_at = get_current_settings().api.url
    if pointed_at and not answers(pointed_at, BUSY_SECONDS):
        raise ServerError(
            f"the Prefect API at {pointed_at} does not answer: start it (`prefect server start`), "
            "or unset PREFECT_API_URL to let the run bring its own"
        )
    if kept := kept_server(state_folder(), pointed_at):
        with pointing_at(kept):
            yield
    elif pointed_at:
        _assert_admitted(pointed_at)
        yield
    else:
        with BackgroundServer(state_folder(), server_idle_seconds()) as background:
            server = background.answering() or _awaited(background, events)
            with pointing_at(server), _without_heartbeats():
                yield


def _awaited(background: BackgroundServer, events: Events) -> LocalServer:
    with events.waiting(STARTING):
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
def _without_heartbeats() -> Iterator[None]:
    """To a server that nobody watches: each run would wait up to a second for the thread that sends them."""
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
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
