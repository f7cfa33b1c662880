"""The Prefect API that runs are pointed at, one kept by `python -m flows server`, or one of their own.

Servers of our own answer on this machine only, their own pages, and who knows their password: see guarded_server."""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import SecretStr

from flows.prefect_api.history import HURRIED_SECONDS

START_SECONDS = 120.0
STOP_SECONDS = 8.0
BUSY_SECONDS = 30.0  # a server that is there but busy may take so long
RETRIES, REQUEST_SECONDS = 3, 10.0  # a server on this machine counts as lost after 14 s if dead, 54 s if it hangs
_PROGRAM = Path(__file__).with_name("guarded_server.py")
NOTE, PASSWORD = "server.json", "server.auth"  # where a server is kept, and what it asks for


class ServerError(Exception):
    """The Prefect API cannot be reached; the message is one line with the remedy."""


class Api(NamedTuple):
    url: str
    own: bool  # it ends with the run


class LocalServer(NamedTuple):
    """A server of ours, and the auth string without which it answers nobody."""

    url: str
    password: SecretStr


@contextmanager
def prefect_api(state: Path, environment: dict[str, str]) -> Iterator[Api]:
    """Yield a Prefect API that answers, for as long as the caller needs it."""
    os.environ.update(environment)
    from prefect.settings import get_current_settings

    _quieten_console()
    pointed_at = get_current_settings().api.url
    if pointed_at and not answers(pointed_at, BUSY_SECONDS):
        raise ServerError(
            f"the Prefect API at {pointed_at} does not answer: start it (`prefect server start`), "
            "or unset PREFECT_API_URL to let the run bring its own"
        )
    kept = kept_server(state, pointed_at)
    if kept is None and pointed_at:
        _assert_admitted(pointed_at)
        yield Api(pointed_at, own=False)
        return
    if kept:
        with pointing_at(kept):
            yield Api(kept.url, own=False)
        return
    with own_server(state) as own, pointing_at(own):
        yield Api(own.url, own=True)


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


def answers(url: str, timeout: float = 2.0) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=timeout) as reply:  # noqa: S310 (the user's own API)
            return bool(reply.status == 200)
    except (OSError, ValueError, urllib.error.URLError):
        return False


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


def kept_server(state: Path, pointed_at: str | None = None) -> LocalServer | None:
    """The server that `python -m flows server` keeps running, if it answers, and is the one that is pointed at."""
    try:
        url = str(json.loads((state / NOTE).read_text())["url"])
        password = (state / PASSWORD).read_text().strip()
    except (OSError, ValueError, KeyError):
        return None
    wanted = pointed_at in (None, url) and answers(url, BUSY_SECONDS)
    return LocalServer(url, SecretStr(password)) if wanted else None


@contextmanager
def own_server(state: Path, port: int = 0, password: SecretStr | None = None) -> Iterator[LocalServer]:
    """A real Prefect server as a child process: its history stays in Prefect's database, it ends with this process."""
    state.mkdir(parents=True, exist_ok=True)
    log = state / "server.log"
    secret = password or _new_password()
    with _bound(port) as own, log.open("w") as sink:
        url = f"http://127.0.0.1:{own.getsockname()[1]}/api"
        process = subprocess.Popen(
            [sys.executable, "-P", str(_PROGRAM), str(os.getpid()), str(own.fileno())],
            env=os.environ | _server_environment(url, secret.get_secret_value()),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            pass_fds=[own.fileno()],
            start_new_session=True,  # Ctrl-C is for the run, which then stops its server
        )
    try:
        _wait_until_it_answers(process, url, log)
        yield LocalServer(url, secret)
    except KeyboardInterrupt:
        _stop(process, HURRIED_SECONDS)
        raise
    finally:
        _stop(process, STOP_SECONDS if answers(url) else HURRIED_SECONDS)


def _new_password() -> SecretStr:
    """What the user has set for servers, else a random one."""
    from prefect.settings import get_current_settings

    return get_current_settings().server.api.auth_string or SecretStr(f"twothirds:{secrets.token_urlsafe(24)}")


def _server_environment(url: str, password: str) -> dict[str, str]:
    """Own origins are those of this machine, and those that PREFECT_SERVER_CORS_ALLOWED_ORIGINS names one by one."""
    from prefect.settings import get_current_settings

    port = url.removesuffix("/api").rpartition(":")[2]
    allowed = get_current_settings().server.api.cors_allowed_origins
    origins = [f"http://127.0.0.1:{port}", f"http://localhost:{port}", *([] if allowed == "*" else [allowed])]
    return {
        "PREFECT_API_URL": url,
        "PREFECT_API_AUTH_STRING": password,
        "PREFECT_SERVER_API_AUTH_STRING": password,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(origins),
        "PREFECT__SERVER_FINAL": "1",
    }


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
def keep_server(state: Path, environment: dict[str, str], port: int) -> Iterator[LocalServer]:
    """A server that other runs find by a note in the state folder. Its password stays the same when it is started
    again, so that workers and browsers need no new one."""
    os.environ.update(environment)
    state.mkdir(parents=True, exist_ok=True)
    note, file = state / NOTE, state / PASSWORD
    with own_server(state, port, _kept_password(file)) as server:
        note.write_text(json.dumps({"url": server.url}))
        try:
            yield server
        finally:
            note.unlink(missing_ok=True)


def _kept_password(file: Path) -> SecretStr:
    """The password in the file, which only its owner can read; a new one is written first if there is none."""
    from prefect.settings import get_current_settings

    chosen = get_current_settings().server.api.auth_string
    kept = file.read_text().strip() if file.exists() else ""
    password = chosen or (SecretStr(kept) if kept else _new_password())
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as opened:
        os.fchmod(opened.fileno(), 0o600)
        opened.truncate()
        opened.write(f"{password.get_secret_value()}\n")
    return password
