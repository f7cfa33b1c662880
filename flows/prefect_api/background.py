"""The Prefect server in the background: runs of this account share it, and it ends when none has used it for a while.

A folder for each version of it holds two locks and a note. The server holds `alive` for as long as it lives: who gets
that lock knows that there is none, and hands the lock to the server that it starts. Runs share `use`: the server ends
only while it has that lock for itself. The kernel frees both locks of a process that dies, however it dies; what a note
says counts only while `alive` is held. Nothing here imports Prefect, which takes longer than to find the server."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import os
import secrets
import signal
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import SecretStr

from twothirds.flows.errors import ServerError
from twothirds.flows.prefect_api.environment import prefect_environment, server_idle_seconds, state_folder
from twothirds.flows.prefect_api.servers import (
    PROGRAM,
    START_SECONDS,
    STOP_SECONDS,
    LocalServer,
    Terms,
    answers,
    bound,
    kept_server,
    launch,
    terms_of_settings,
)

FOLDER, ALIVE, USE, NOTE, LOG = "servers", "alive", "use", "note.json", "server.log"
STARTER = "starter"  # the process that has started a server, until its run is prepared
MAX_STARTS = 2  # by one run: the server that it finds may be about to end
OF_CLIENTS = ("PREFECT_LOGGING_", "PREFECT_CLIENT_", "PREFECT_CLI_")  # variables that servers do not read
HERE = ("prefect.toml", ".env", "pyproject.toml")  # where Prefect looks for settings, beside its profiles


class Note(NamedTuple):
    """Where a server answers; its process."""

    server: LocalServer
    pid: int


class BackgroundServer:
    """A share in the background server: it goes on at least until this is closed."""

    def __init__(self, state: Path, idle: float) -> None:
        self._folder, self._idle = state / FOLDER / _version(), idle
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._use = _open(self._folder / USE)
        fcntl.flock(self._use, fcntl.LOCK_SH)

    def __enter__(self) -> BackgroundServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._use)

    def abandon(self) -> None:
        """Close it, and end the server if this process has started it for a run that it could not prepare."""
        self.close()
        starter = self._folder / STARTER
        if starter.exists() and starter.read_text() == str(os.getpid()):
            _end(self._folder, patience=0)

    def hand_over(self) -> None:
        """Close it once the run is prepared that will use the server."""
        (self._folder / STARTER).unlink(missing_ok=True)
        self.close()

    def start(self, terms: Terms) -> bool:
        """Start the server if there is none, without waiting for it; whether there was none."""
        alive = _open(self._folder / ALIVE)
        try:
            if not _locked(alive):
                return False
            (self._folder / NOTE).unlink(missing_ok=True)
            with bound(0) as own:
                words = ["0", str(alive), str(self._idle), str(self._folder)]
                (self._folder / STARTER).write_text(str(os.getpid()))
                launch(own, terms, self._folder / LOG, words, keep=[alive]).wait()  # it goes on as nobody's child
        finally:
            os.close(alive)  # the server has it
        return True

    def answering(self) -> LocalServer | None:
        """The server, if it answers by now."""
        note = _read(self._folder)
        return note.server if note and answers(note.server.url) else None

    def wait(self) -> LocalServer:
        """The server when it answers; it is started if need be."""
        deadline, starts = time.monotonic() + START_SECONDS, 0
        while time.monotonic() < deadline:
            if server := self.answering():
                return server
            if self.start(terms_of_settings()):
                starts += 1
            if starts > MAX_STARTS:
                raise ServerError(f"the local Prefect server ended at once: see {self._folder / LOG}")
            time.sleep(0.05)
        raise ServerError(
            f"the local Prefect server did not answer within {START_SECONDS:.0f} s: see {self._folder / LOG}"
        )


def start_in_background() -> BackgroundServer | None:
    """The server that a run will use, started if there is none; None where it takes Prefect to know which that is, or
    where it is another one."""
    os.environ.update(prefect_environment())
    idle, terms, state = server_idle_seconds(), terms_of_environment(), state_folder()
    if terms is None or kept_server(state):
        return None
    background = BackgroundServer(state, idle)
    background.start(terms)
    return background


def stop_background_servers(state: Path) -> tuple[list[str], list[str]]:
    """The addresses of those that were stopped, and of those that a run uses."""
    stopped: list[str] = []
    used: list[str] = []
    for folder in sorted((state / FOLDER).glob("*")):
        note = _read(folder)
        if note is not None and not _is_free(folder / ALIVE):
            (stopped if _end(folder, STOP_SECONDS) else used).append(note.server.url)
    return stopped, used


def _end(folder: Path, patience: float) -> bool:
    """End the server unless a run uses it; whether none does."""
    use = _open(folder / USE)
    try:
        if not _locked(use):
            return False
        note = _read(folder)
        (folder / NOTE).unlink(missing_ok=True)
        if note is None or _is_free(folder / ALIVE):
            return True
        with suppress(ProcessLookupError):
            os.kill(note.pid, signal.SIGTERM)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline and not _is_free(folder / ALIVE):
                time.sleep(0.05)
            if patience and not _is_free(folder / ALIVE):
                os.kill(note.pid, signal.SIGKILL)
        return True
    finally:
        os.close(use)


def terms_of_environment() -> Terms | None:
    """The terms, where variables alone set them; None where a file may, or where runs are pointed at another API."""
    named = {name.upper(): value for name, value in os.environ.items()}
    allowed = named.get("PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS") or named.get("PREFECT_SERVER_CORS_ALLOWED_ORIGINS")
    if "PREFECT_API_URL" in named or "PREFECT_PROFILES_PATH" in named or any(map(_settles_terms, _files())):
        return None
    password = named.get("PREFECT_SERVER_API_AUTH_STRING") or f"twothirds:{secrets.token_urlsafe(24)}"
    return Terms(SecretStr(password), "" if allowed in (None, "*") else allowed)


def _settles_terms(file: Path) -> bool:
    """Whether a file with Prefect's settings may name an API, a password or origins."""
    content = file.read_text(encoding="utf-8", errors="replace")
    if file.name == "profiles.toml":
        try:
            profiles: dict[str, Any] = tomllib.loads(content)
            content = str(profiles["profiles"][os.environ.get("PREFECT_PROFILE") or profiles["active"]])
        except (ValueError, KeyError, TypeError):
            return True
    return any(word in content.lower() for word in ("url", "auth_string", "cors", "profiles_path"))


def _files() -> list[Path]:
    """The files from which Prefect may read settings."""
    profiles = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect") / "profiles.toml"
    there = [file for file in (profiles, *map(Path, HERE)) if file.is_file()]
    return [file for file in there if file.name != "pyproject.toml" or b"tool.prefect" in file.read_bytes()]


def _version() -> str:
    """What decides how a server behaves: its program, Prefect, this Python, and Prefect's settings."""
    named = sorted(item for item in os.environ.items() if item[0].upper().startswith("PREFECT_"))
    contents = [PROGRAM.read_bytes(), importlib.metadata.version("prefect").encode(), os.fsencode(sys.prefix)]
    contents += [f"{name}={value}".encode(errors="replace") for name, value in named if not name.startswith(OF_CLIENTS)]
    contents += [file.read_bytes() for file in _files()]
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:16]


def _read(folder: Path) -> Note | None:
    try:
        note = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        return Note(LocalServer(str(note["url"]), SecretStr(note["password"])), int(note["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _open(file: Path) -> int:
    return os.open(file, os.O_RDWR | os.O_CREAT, 0o600)


def _locked(opened: int) -> bool:
    """Take the lock for this process alone; whether that was possible."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_free(file: Path) -> bool:
    opened = _open(file)
    try:
        return _locked(opened)
    finally:
        os.close(opened)
