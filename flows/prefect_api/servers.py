"""A Prefect server of ours that ends with this process: kept by `twothirds server`.

They answer on this machine only, who knows their password, and pages of the origins that Prefect's settings name."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import SecretStr

from twothirds.flows.errors import ServerError

START_SECONDS = 120.0
STOP_SECONDS = 8.0
HURRIED_SECONDS = 1.0  # after Ctrl-C, or when the server is lost
BUSY_SECONDS = 30.0  # a server that is there but busy may take so long
PROGRAM = Path(__file__).with_name("server_program.py")
NOTE, PASSWORD = "server.json", "server.auth"  # where a server is kept, and what it asks for


class LocalServer(NamedTuple):
    """A server of ours, and the auth string without which it answers nobody."""

    url: str
    password: SecretStr


def answers(url: str, timeout: float = 2.0) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=timeout) as reply:  # noqa: S310 (the user's own API)
            return bool(reply.status == 200)
    except (OSError, ValueError, urllib.error.URLError):
        return False


def kept_server(state: Path, pointed_at: str | None = None) -> LocalServer | None:
    """The server that `twothirds server` keeps running, if it answers, and is the one that is pointed at."""
    try:
        url = str(json.loads((state / NOTE).read_text())["url"])
        password = (state / PASSWORD).read_text().strip()
    except (OSError, ValueError, KeyError):
        return None
    wanted = pointed_at in (None, url) and answers(url, BUSY_SECONDS)
    return LocalServer(url, SecretStr(password)) if wanted else None


def worker_environment(state: Path, clone: Path) -> dict[str, str]:
    """What a worker on this machine needs to know; variables that the user has set win. Raises ServerError where no
    server is kept and none is pointed at."""
    wanted, pointed_at = {"TWOTHIRDS_CLONE": str(clone)}, os.environ.get("PREFECT_API_URL")
    if server := kept_server(state, pointed_at):
        wanted |= {"PREFECT_API_URL": server.url, "PREFECT_API_AUTH_STRING": server.password.get_secret_value()}
    elif not pointed_at:
        raise ServerError(
            "no Prefect server is kept on this machine: start one in another terminal (`twothirds server`), or "
            "set PREFECT_API_URL and PREFECT_API_AUTH_STRING to those of another"
        )
    return {name: value for name, value in wanted.items() if name not in os.environ}


class Terms(NamedTuple):
    """What the user asks of servers of ours: the password, and origins beside their own, separated by commas."""

    password: SecretStr
    origins: str = ""


def terms_of_settings() -> Terms:
    """As Prefect reads its settings; a random password where none is set."""
    from prefect.settings import get_current_settings

    api = get_current_settings().server.api
    password = api.auth_string or SecretStr(f"twothirds:{secrets.token_urlsafe(24)}")
    return Terms(password, "" if api.cors_allowed_origins == "*" else api.cors_allowed_origins)


@contextmanager
def own_server(state: Path, port: int = 0, password: SecretStr | None = None) -> Iterator[LocalServer]:
    """A real Prefect server as a child process: its history stays in Prefect's database, it ends with this process."""
    state.mkdir(parents=True, exist_ok=True)
    log, terms = state / "server.log", terms_of_settings()
    terms = terms._replace(password=password or terms.password)
    with bound(port) as own:
        url = url_of(own)
        process = launch(own, terms, log, [str(os.getpid())])
    try:
        _wait_until_it_answers(process, url, log)
        yield LocalServer(url, terms.password)
    except KeyboardInterrupt:
        _stop(process, HURRIED_SECONDS)
        raise
    finally:
        _stop(process, STOP_SECONDS if answers(url) else HURRIED_SECONDS)


def launch(
    own: socket.socket, terms: Terms, log: Path, words: Sequence[str], *, keep: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start the server at a socket; `words` say when it ends, and it keeps open what `keep` lists."""
    with log.open("w") as sink:
        return subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM), str(own.fileno()), *words],
            env=os.environ | _server_environment(url_of(own), terms),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            pass_fds=[own.fileno(), *keep],
            start_new_session=True,  # Ctrl-C is for the run, which then stops its server
        )


def url_of(own: socket.socket) -> str:
    return f"http://127.0.0.1:{own.getsockname()[1]}/api"


def _server_environment(url: str, terms: Terms) -> dict[str, str]:
    """Own origins are those of this machine, and those that PREFECT_SERVER_CORS_ALLOWED_ORIGINS names one by one."""
    port, password = url.removesuffix("/api").rpartition(":")[2], terms.password.get_secret_value()
    origins = [f"http://127.0.0.1:{port}", f"http://localhost:{port}", *filter(None, [terms.origins])]
    return {
        "PREFECT_API_URL": url,
        "PREFECT_API_AUTH_STRING": password,
        "PREFECT_SERVER_API_AUTH_STRING": password,
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": ",".join(origins),
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


def bound(port: int) -> socket.socket:
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
def keep_server(state: Path, port: int) -> Iterator[LocalServer]:
    """A server that other runs find by a note in the state folder. Its password stays the same when it is started
    again, so that workers and browsers need no new one."""
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
    earlier = file.read_text().strip() if file.exists() else ""
    password = chosen or (SecretStr(earlier) if earlier else terms_of_settings().password)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as opened:
        os.fchmod(opened.fileno(), 0o600)
        opened.truncate()
        opened.write(f"{password.get_secret_value()}\n")
    return password
