"""Engines for SQLite and PostgreSQL; the settings that durability needs are set and asserted on every connection.

An SQLite file is examined before anything is written to it: a damaged or foreign file is left unchanged."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from twothirds.store.errors import DamagedStore, StoreError, StoreUnavailable, explained, masked
from twothirds.store.schema import has_tables

BUSY_MILLISECONDS = 30_000
CONNECT_SECONDS = 10
# A process that is suspended inside a transaction loses it, so that others need not wait for ever; it tries again.
LIMITS = {
    "lock_timeout": "5s",  # then the transaction is tried again
    "idle_in_transaction_session_timeout": "15s",
    "tcp_keepalives_idle": "30",  # seconds; a client whose machine is gone is noticed after about a minute
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
# A plan that was made while the tables were small reads them whole, and would be kept when they have grown.
_PLANS = {"plan_cache_mode": "force_custom_plan"}
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}  # a server that is gone
FILE_MODE = 0o600  # a store holds what people answered, and the secret that signs their invitations
_A_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+]+:")  # two letters at least: C:\\ is a drive
# 3 is EXTRA: FULL, and where a rollback journal is used the folder is synced too once the journal is gone from it.
# Without that a power cut can bring the journal back, and with it the state before the last commit.
_PRAGMAS = {"synchronous": 3, "foreign_keys": 1, "busy_timeout": BUSY_MILLISECONDS}
# Pages that are written again and again, as those of an index are, go to the file itself once per 32 MB of journal.
_PACE = {"cache_size": -8_192, "wal_autocheckpoint": 8_192}  # KiB; pages of 4 KiB


class OpenedFile(NamedTuple):
    """The file that a connection has opened, and its journal, as device and inode. It must stay in its place: commits
    to a deleted file are lost."""

    name: str  # of the store
    path: str
    file: tuple[int, int] | None
    journal: tuple[int, int] | None

    @classmethod
    def at(cls, name: str, path: str) -> OpenedFile:
        return cls(name, path, _identity(path), _identity(f"{path}-wal"))

    def check(self) -> None:
        """Raise StoreUnavailable if another file, or none, is now where this one was."""
        moved = self.file is None or _identity(self.path) != self.file
        if moved or (self.journal is not None and _identity(f"{self.path}-wal") != self.journal):
            raise StoreUnavailable(
                f"store {self.name} was deleted, moved or replaced while it was in use, and what was written since is "
                "not in it: put the file and its -wal back or restore a backup, then run again; nothing more is sent"
            )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def journal_mode(library_version: tuple[int, ...]) -> str:
    """WAL only where the library is free of the bug that corrupts it under several writers (SQLite 3.7.0 to 3.51.2)."""
    major_minor, patch = tuple(library_version[:2]), library_version[2] if len(library_version) > 2 else 0
    backports = {(3, 44): 6, (3, 50): 7, (3, 51): 3}
    fixed = patch >= backports[major_minor] if major_minor in backports else major_minor > (3, 51)
    return "wal" if fixed else "delete"


def sqlite_library() -> ModuleType:
    """The SQLite that a wheel brings, in which WAL is safe, else the one that Python was linked with."""
    try:
        from pysqlite3 import dbapi2
    except ImportError:
        return sqlite3
    return dbapi2  # type: ignore[no-any-return]


def store_name(url: str) -> str:
    """The name of the store in messages, without its password."""
    return masked(url)


def sqlite_file(url: str) -> Path | None:
    """The file that a store is kept in, if it is SQLite."""
    scheme, separator, rest = url.partition("://")
    if not separator and url.strip() and not _A_SCHEME.match(url):
        return _absolute(url)
    if scheme in {"sqlite", "sqlite3"} and rest.startswith("/"):
        return _absolute(rest[1:])
    return None


def _absolute(path: str) -> Path:
    return Path(os.path.expanduser(path)).absolute()  # pathlib's expanduser fails for an unknown user


def connect(url: str, *, library: ModuleType | None = None, keep_journal: bool = False) -> Engine:
    """An engine for a path, `sqlite:///path` or `postgresql://…`; nothing is opened yet, but its folder is made.

    With `keep_journal` an SQLite file keeps the journal that it has, which for a new one is the DELETE journal."""
    scheme, separator, rest = url.partition("://")
    if not url.strip():
        raise StoreError(
            "store '' is empty: give a path, sqlite:///path or postgresql://user@host/database with --store"
        )
    if not separator and not _A_SCHEME.match(url):
        return _sqlite(url, store_name(url), library or sqlite_library(), keep_journal)
    if scheme in {"sqlite", "sqlite3"} and rest.startswith("/"):
        return _sqlite(rest[1:], store_name(url), library or sqlite_library(), keep_journal)
    if scheme in {"postgresql", "postgres", "postgresql+psycopg"}:
        return _postgresql(url)
    raise StoreError(
        f"store {store_name(url)} is of an unknown kind: give a path, sqlite:///path or postgresql://user@host/database"
    )


def _sqlite(path_text: str, name: str, library: ModuleType, keep_journal: bool) -> Engine:
    if path_text in {"", ":memory:"}:
        raise StoreError(f"store {name} has no file: give a path such as store.sqlite with --store")
    path = _absolute(path_text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"store {name} cannot be opened ({error.strerror}: {path.parent}): give a path that can be written"
        ) from error
    if path.is_dir():
        raise StoreError(f"store {name} is a folder: give a file in it, such as {path.name}/store.sqlite")
    if path.exists() and not path.is_file():
        raise StoreError(f"store {name} is a device or a pipe, which keeps nothing: give a file such as store.sqlite")
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        module=library,
        pool_size=8,
        max_overflow=56,
        pool_use_lifo=True,  # keeps the page cache of a connection in use
        hide_parameters=True,
    )
    wanted = None if keep_journal else journal_mode(library.sqlite_version_info)
    opened: list[OpenedFile] = []  # by the first connection

    @event.listens_for(engine, "do_connect")
    def create(_dialect: Any, _record: Any, _arguments: Any, _named: Any) -> None:
        for first in opened:
            first._replace(journal=None).check()  # else SQLite would create a new file in its place
        with suppress(OSError):  # it is there, or SQLite says what is wrong; the files beside it get the same mode
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own
        _set_pragmas(connection, name, wanted)
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # opens the journal
        record.info["file"] = found = OpenedFile.at(name, str(path))
        if not opened:
            opened.append(found)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _set_pragmas(connection: Any, name: str, wanted_journal: str | None) -> None:
    for pragma, value in _PRAGMAS.items():
        connection.execute(f"PRAGMA {pragma}={value}")
        _assert_setting(name, pragma, connection.execute(f"PRAGMA {pragma}").fetchone()[0], value)
    for pragma, value in _PACE.items():
        connection.execute(f"PRAGMA {pragma}={value}").fetchall()
    if wanted_journal and connection.execute("PRAGMA journal_mode").fetchone()[0] != wanted_journal:
        became = connection.execute(f"PRAGMA journal_mode={wanted_journal}").fetchone()[0]
        _assert_setting(name, "journal_mode", became, wanted_journal)


def _postgresql(url: str) -> Engine:
    name = store_name(url)
    if url.partition("?")[0].count("@") > 1:
        raise StoreError(f"store {name} has more than one @: write those in the user and password as %40")
    try:
        parsed = make_url(url).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"store {name} is not a URL: give postgresql://user:password@host:port/database") from error
    engine = create_engine(
        parsed,
        isolation_level="READ COMMITTED",
        pool_size=16,  # a server takes 100 connections in all by default
        max_overflow=0,  # opening a connection costs more than most queries
        hide_parameters=True,
        connect_args={
            option: value
            for option, value in {"connect_timeout": CONNECT_SECONDS, **_KEEPALIVES}.items()
            if option not in parsed.query
        },
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            if cursor.fetchone()[0] != "remote_apply":  # stronger than `on`, so left alone
                cursor.execute("SET SESSION synchronous_commit = on")
                cursor.execute("SHOW synchronous_commit")
                _assert_setting(name, "synchronous_commit", cursor.fetchone()[0], "on")
            for setting, value in (LIMITS | _PLANS).items():
                cursor.execute("SELECT set_config(%s, %s, false)", (setting, value))
        connection.commit()

    return engine


def _assert_setting(name: str, setting: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise StoreError(
            f"store {name} keeps {setting} at {found}, but only {wanted} loses no answer: "
            "close other programs that use it and run again, or give another --store"
        )


# A trigger or view could alter what is read or written without breaking a checksum.
_ADDED = "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view') ORDER BY name LIMIT 1"
_WITH_WAL = b"\2\2"  # that mark: the versions with which a file is to be written and read
_LOOKS = 3  # at the mark, for another process may just be opening or leaving the store
READ_IN_FULL = 64 * 2**20  # bytes: about 0.3 s; a larger file is read in full by the integrity check only


def verify_file(engine: Engine, name: str) -> bool:
    """Raise StoreError for a file that is not an intact store of this schema; servers are not examined.

    Returns whether an SQLite file is marked as in use while its journal is missing, as in a copy of that file alone."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        return False
    path = Path(engine.url.database)
    if not path.exists():
        return False
    is_incomplete = _is_incomplete(path, name)  # before it is opened, which creates a journal
    probe = create_engine(engine.url, module=engine.dialect.dbapi, poolclass=NullPool, hide_parameters=True)
    try:
        with probe.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
            if path.stat().st_size <= READ_IN_FULL:
                result = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
                if result != "ok":
                    raise explained(name, StoreError(f"malformed: {result.splitlines()[-1]}"))
            is_store = has_tables(connection, name)
            if added := connection.exec_driver_sql(_ADDED).first():
                remedy = "it was left as it is; restore a copy of it or give another --store"
                raise StoreError(f"store {name} has the {added[0]} {added[1]!r}, which no version creates: {remedy}")
    except (SQLAlchemyError, UnicodeDecodeError) as error:
        raise explained(name, error) from error
    if is_incomplete and not is_store:
        raise DamagedStore(
            f"store {name} is a copy without its latest commits, which are in {path.name}-wal beside the original: "
            "copy that file too, or copy stores with `twothirds store backup`; it was left as it is"
        )
    return is_incomplete


def _is_incomplete(path: Path, name: str) -> bool:
    """Whether the file is marked as having a WAL journal and has none.

    It is read only if there is no journal: closing a file gives up all locks that this process holds on it."""
    for _ in range(_LOOKS):
        if Path(f"{path}-wal").exists() or not path.is_file():
            return False
        with suppress(OSError), path.open("rb") as file:
            versions = file.read(20)[18:]
            if max(versions, default=0) > max(_WITH_WAL):  # SQLite would only read such a file
                raise explained(name, StoreError(f"unsupported file format {versions.hex()}"))
            if versions != _WITH_WAL:
                return False
        time.sleep(0.1)
    return not Path(f"{path}-wal").exists()


def leave(engine: Engine, process: int) -> None:
    """Close the connections. The last process to leave an SQLite store leaves one complete file, without a journal.

    While others use the store, as much as possible is moved from the journal to the file. It never fails or waits
    long."""
    engine.dispose()
    if engine.dialect.name != "sqlite" or not engine.url.database or process != os.getpid():
        return
    library, path = engine.dialect.loaded_dbapi, Path(engine.url.database)
    for wait in (0.3, 0.0, 0.0):
        try:
            if not path.exists() or _is_settled(library, path, wait):
                return
        except library.Error as error:
            if "is locked" not in str(error):  # it is full, read-only or damaged: the next command says so
                return
        time.sleep(random.uniform(0, 0.05))  # processes that leave together try one after the other


def _is_settled(library: Any, path: Path, wait: float) -> bool:
    """Move the journal to the file, then give it up, which works only for the last connection."""
    address = f"file:{quote(os.fsencode(path))}?mode=rw"
    with closing(library.connect(address, uri=True, isolation_level=None, timeout=wait)) as last:
        last.execute(f"PRAGMA synchronous={_PRAGMAS['synchronous']}")
        last.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        last.execute("PRAGMA busy_timeout=0")
        return bool(last.execute("PRAGMA journal_mode=DELETE").fetchone()[0] == "delete")
