"""The program of a Prefect server of ours. `python server_program.py SOCKET PARENT_PID` ends with its parent.
`python server_program.py SOCKET 0 ALIVE IDLE_SECONDS FOLDER` goes on in the background until it is idle: background.py
starts it, with the lock ALIVE taken. Prefect's own settings keep strangers out: a password, and the origins of pages.

Imports nothing of the project, so that it starts as fast as Prefect does."""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib.metadata
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Activity:
    """Since when nothing has been asked. Used with `with` while a request or a connection is open."""

    def __init__(self) -> None:
        self._open, self._ended = 0, time.monotonic()

    def __enter__(self) -> None:
        self._open += 1

    def __exit__(self, *_: object) -> None:
        self._open -= 1
        self.note()

    def note(self) -> None:
        self._ended = time.monotonic()

    def idle_seconds(self) -> float:
        return 0.0 if self._open else time.monotonic() - self._ended


def noting(app: App, activity: Activity) -> App:
    """The application, which notes when it is asked something."""

    async def noted(scope: Message, receive: Receive, send: Send) -> None:
        with nullcontext() if scope["type"] == "lifespan" else activity:
            await app(scope, receive, send)

    return noted


def prepared_database() -> Path:
    """A new database of Prefect, which the set-up makes (new_database.py); there may be none."""
    return Path(sys.prefix) / "share" / "twothirds" / f"prefect-{importlib.metadata.version('prefect')}.db"


def bring_database(url: str, prepared: Path) -> None:
    """Copy the prepared database to where Prefect would make one, which takes it six seconds. What is there stays."""
    scheme, _, path = url.partition(":///")
    file, part = Path(path), Path(f"{path}.{os.getpid()}.part")
    if scheme != "sqlite+aiosqlite" or not file.is_absolute() or file.exists():
        return
    with suppress(OSError):  # Prefect makes one, or says what is wrong
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(prepared, part)
            os.link(part, file)  # unless another server has been faster
        finally:
            part.unlink(missing_ok=True)


def create_app(activity: Activity) -> App:
    from prefect.server.api.server import create_app as create_prefect
    from prefect.settings import get_current_settings

    database = get_current_settings().server.database
    if database.connection_url:
        bring_database(database.connection_url.get_secret_value(), prepared_database())
    app = create_prefect()
    gc.freeze()
    gc.enable()
    return noting(app, activity)


def end_with_parent(parent: int) -> None:
    """Linux only: the kernel ends this process when its parent dies, even by SIGKILL."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
        if os.getppid() != parent:  # it has died before it could be asked for
            sys.exit(1)


def detach(note: Path) -> None:
    """Go on as nobody's child. The process that was started writes down where it is, for its owner alone, and ends."""
    if pid := os.fork():
        address = {"pid": pid, "url": os.environ["PREFECT_API_URL"], "password": os.environ["PREFECT_API_AUTH_STRING"]}
        part = note.with_suffix(".part")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(address, file)
        part.rename(note)
        os._exit(0)


class EndWhenIdle(threading.Thread):
    """Ends the server when no run shares the lock `use` and nothing was asked for so long, or when its note is gone."""

    LAST_SECONDS = 10.0  # for an orderly end

    def __init__(self, server: uvicorn.Server, activity: Activity, idle: float, folder: Path, alive: int) -> None:
        super().__init__(name="idle", daemon=True)
        self._server, self._activity, self._idle, self._alive = server, activity, idle, alive
        self._note, self._use = folder / "note.json", os.open(folder / "use", os.O_RDWR)

    def run(self) -> None:
        while not self._ends():
            time.sleep(min(1.0, self._idle / 4))
        self._server.should_exit = True
        time.sleep(self.LAST_SECONDS)
        os._exit(0)

    def _ends(self) -> bool:
        """Whether it is to end; if so, the next run starts another one from now on."""
        try:
            fcntl.flock(self._use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._activity.note()
            return False
        found = self._note.exists()  # else no run can find it
        ends = not found or self._activity.idle_seconds() >= self._idle
        if ends:
            self._note.unlink(missing_ok=True)
            fcntl.flock(self._alive, fcntl.LOCK_UN)
        fcntl.flock(self._use, fcntl.LOCK_UN)
        return ends


def main() -> None:
    gc.disable()  # while modules are imported, whose objects stay: it starts a quarter faster
    own, parent, *background = sys.argv[1:]
    if background:
        detach(Path(background[2]) / "note.json")
    else:
        end_with_parent(int(parent))
    import uvicorn

    activity = Activity()
    config = uvicorn.Config(
        lambda: create_app(activity), factory=True, fd=int(own), log_level="error", timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    if background:
        alive, idle, folder = background
        EndWhenIdle(server, activity, float(idle), Path(folder), int(alive)).start()
    server.run()
    if not server.started:
        sys.exit(1)


if __name__ == "__main__":
    main()
