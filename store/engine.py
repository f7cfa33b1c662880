"""Engines for SQLite and PostgreSQL, short transactions that are retried, and whatever differs between the two.

The settings that durability needs are set and asserted on every connection. An SQLite file is examined before anything
is written to it: a damaged or foreign file is left unchanged. A transaction is retried after a conflict or a dropped
connection, also when only the acknowledgement of its COMMIT was lost: every write must therefore be idempotent."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, Table, create_engine, event, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from twothirds.store.errors import (
    DamagedStore,
    StoreError,
    StoreUnavailable,
    explained,
    first_line,
    masked,
)
from twothirds.store.schema import SCHEMA, metadata, version

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R", bound="Repository")
Clock = Callable[[], float]

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
        sa.URL.create("sqlite", database=str(path)),
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
        parsed = sa.make_url(url).set(drivername="postgresql+psycopg")
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
    if not is_sqlite(engine) or not engine.url.database:
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
    if not is_sqlite(engine) or not engine.url.database or process != os.getpid():
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


def create_tables(connection: Connection, name: str) -> None:
    """Create the tables in an empty database, in the caller's transaction; refuse one that is not ours."""
    lock_name(connection, version.name)
    if not has_tables(connection, name):
        metadata.create_all(connection, checkfirst=False)
        connection.execute(sa.insert(version), {"version": SCHEMA})


def has_tables(connection: Connection, name: str) -> bool:
    """Whether the database is a store, or else empty. Raises StoreError for one of another program or schema."""
    tables = set(sa.inspect(connection).get_table_names())
    if version.name in tables:
        found = connection.execute(select(version.c.version)).scalars().all()
        if found != [SCHEMA]:
            schema = found[0] if found else "unknown"
            remedy = "use the program that made it, or give another --store"
            raise StoreError(f"store {name} has schema {schema}, this program has {SCHEMA}: {remedy}")
        return True
    foreign = tables if is_sqlite(connection) else tables & metadata.tables.keys()
    if foreign:
        raise StoreError(
            f"store {name} is the database of another program (table {min(foreign)}): "
            "give a database of its own with --store"
        )
    return False


CHUNK = 500  # values in one IN (…): well below the limits of both databases
KEYS: sa.BindParameter[Any] = sa.bindparam("keys", expanding=True)  # such an IN (…) in a statement that is built once
_LOCK_NAME = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
_POSTGRESQL_SIZES = """SELECT relname, pg_total_relation_size(pg_class.oid) FROM pg_class
    JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = current_schema() AND relkind = 'r'"""
FREE = "indexes and free space"


def is_sqlite(bind: Engine | Connection) -> bool:
    return bind.dialect.name == "sqlite"


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert the rows that violate no unique constraint; returns how many."""
    dialect_insert = sqlite.insert if is_sqlite(connection) else postgresql.insert
    return connection.execute(dialect_insert(table).on_conflict_do_nothing(), list(rows)).rowcount if rows else 0


def insert_or_update(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    key: Sequence[str],
    changed: Sequence[str],
    where: sa.ColumnElement[bool],
) -> None:
    """Insert the rows; of those whose key exists, update what is `changed` where that is allowed."""
    new = (sqlite.insert if is_sqlite(connection) else postgresql.insert)(table)
    values = {name: new.excluded[name] for name in changed}
    connection.execute(new.on_conflict_do_update(index_elements=list(key), set_=values, where=where), list(rows))


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def lock_name(connection: Connection, name: str) -> None:
    """Nobody else has a lock of this name until the transaction ends. SQLite has one writer at a time."""
    if not is_sqlite(connection):
        connection.execute(_LOCK_NAME, {"name": name})


def analyze(connection: Connection, table: Table) -> None:
    """Have the planner look at a table that has grown: PostgreSQL plans for an empty one until then."""
    if not is_sqlite(connection):
        connection.execute(sa.text(f"ANALYZE {table.name}"))


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """A transaction that reads one state of the store, however long it takes."""
    options: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with engine.connect().execution_options(**({} if is_sqlite(engine) else options)) as reading, reading.begin():
        yield reading


def advance_ids(connection: Connection, table: Table) -> None:
    """Give new rows ids above those that were copied into the table; SQLite does so by itself."""
    if not is_sqlite(connection) and "id" in table.columns:
        highest = f"SELECT max(id) FROM {table.name}"  # noqa: S608 (a table of ours)
        at = connection.execute(sa.text(highest)).scalar()
        if at is not None:
            named = {"name": table.name, "at": at}
            connection.execute(sa.text("SELECT setval(pg_get_serial_sequence(:name, 'id'), :at)"), named)


def file_problems(connection: Connection, most: int) -> list[str]:
    """What is wrong with the file of an SQLite store; a server looks after its own files."""
    if not is_sqlite(connection):
        return []
    lines = connection.exec_driver_sql(f"PRAGMA integrity_check({most})").scalars().all()
    dangling = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    return [f"file: {line}" for line in lines if line != "ok"] + [
        f"table {row[0]} refers to a row of {row[2]} that is not there" for row in dangling[:most]
    ]


def table_sizes(connection: Connection) -> dict[str, int]:
    """Bytes by table: of PostgreSQL with indexes and what is stored apart; of SQLite what the cells hold, numbers as
    their digits, and as FREE the rest of the file."""
    if not is_sqlite(connection):
        return {str(name): int(size) for name, size in connection.exec_driver_sql(_POSTGRESQL_SIZES)}
    sizes = dict[str, int]()
    for table in metadata.tables.values():
        cells = (sa.func.coalesce(sa.func.length(sa.cast(column, sa.LargeBinary)), 0) for column in table.c)
        total = sa.func.coalesce(sa.func.sum(sum(cells, start=sa.cast(0, sa.BigInteger))), 0)
        sizes[table.name] = int(connection.execute(select(total).select_from(table)).scalar_one())
    pages, size = (connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size"))
    return sizes | {FREE: max(pages * size - sum(sizes.values()), 0)}


def vacuum(engine: Engine) -> bool:
    """Make an SQLite file as small as what it holds; False where runs that are writing prevent it. PostgreSQL does so
    by itself."""
    if not is_sqlite(engine):
        return True
    connection = engine.raw_connection()
    try:
        connection.cursor().execute("VACUUM")
        connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except engine.dialect.loaded_dbapi.Error as error:
        if "locked" not in str(error) and "busy" not in str(error):
            raise
        return False
    finally:
        connection.close()
    return True


_CONFLICTS = {"40001", "40P01", "55P03"}  # serialization failure, deadlock, lock not available
_SERVER_DOWN = {"53300", "57P01", "57P02", "57P03"}  # too many connections, shutting down, crashed, starting up
_SUSPENDED = {"25P03", "25P04", "57P05"}  # idle in a transaction for too long, transaction too long, session idle
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
_SILENT_SECONDS = 2.0  # a longer wait is reported
_REPEAT_SECONDS = 60.0


class WaitNotifier:
    """Says what is waited for, once a minute for each subject, however many threads wait for it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._noticed_at: dict[str, float] = {}

    def __call__(self, subject: str, message: str) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._noticed_at.get(subject, float("-inf")) < _REPEAT_SECONDS:
                return
            self._noticed_at[subject] = now
        self._say(message)


class Transactions:
    """Reads and writes of one engine, usable from many threads."""

    def __init__(self, engine: Engine, name: str, *, patience: float, notice: WaitNotifier) -> None:
        self.engine = engine
        self.name = name
        self._notice = notice
        self._patience = patience
        self._writers = engine.execution_options(writes=True)
        # PostgreSQL shows each statement what is committed by then, within a transaction or without one.
        self._readers = engine if is_sqlite(engine) else engine.execution_options(isolation_level="AUTOCOMMIT")
        # SQLite takes one writer at a time: its own threads wait here, in turn, and not by polling the file.
        self._writing = threading.Lock() if is_sqlite(engine) else nullcontext()

    def read(self, work: Callable[[Connection], T]) -> T:
        return self._retry(self._readers, work, is_transient)

    def write(self, work: Callable[[Connection], T]) -> T:
        with self._writing:
            return self._retry(self._writers, work, is_transient)

    def first(self, work: Callable[[Connection], T]) -> T:
        """The write with which a store is opened: retried after a conflict, but not when the server is down."""
        return self._retry(self._writers, work, is_conflict)

    def _retry(
        self, engine: Engine, work: Callable[[Connection], T], is_retryable: Callable[[SQLAlchemyError], bool]
    ) -> T:
        began = time.monotonic()
        deadline, pause, was_cut = began + self._patience, _FIRST_PAUSE, False
        while True:
            try:
                with engine.begin() as connection:
                    result = work(connection)
                    file: OpenedFile | None = connection.info.get("file")
                if file is not None and engine is self._writers:
                    file.check()
                return result
            except SQLAlchemyError as error:
                is_cut = isinstance(error, DBAPIError) and error.connection_invalidated
                if is_cut and not was_cut:  # perhaps this process was suspended: patience begins again
                    was_cut, deadline = True, time.monotonic() + self._patience
                if not is_retryable(error) or time.monotonic() + pause > deadline:
                    raise explained(self.name, error) from error
                if time.monotonic() - began > _SILENT_SECONDS:
                    left = f"at most {deadline - time.monotonic():.0f} s more"
                    self._notice("store", f"waiting for store {self.name} ({first_line(error)}), {left}")
            except UnicodeDecodeError as error:
                raise explained(self.name, error) from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


class Repository:
    """Base of the classes that read and write some tables. Callers leave out the `connection` of methods under @reads
    and @writes; each call is one short transaction and may come from any thread."""

    def __init__(self, transactions: Transactions, clock: Clock) -> None:
        self._transactions = transactions
        self._clock = clock


def reads(method: Callable[Concatenate[R, Connection, P], T]) -> Callable[Concatenate[R, P], T]:
    """Run the method in a read transaction."""

    @wraps(method)
    def read(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._transactions.read(lambda connection: method(self, connection, *args, **kwargs))

    return read


def writes(method: Callable[Concatenate[R, Connection, P], T]) -> Callable[Concatenate[R, P], T]:
    """Run the method in a write transaction. It may be retried: it must be idempotent and take no iterators."""

    @wraps(method)
    def write(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._transactions.write(lambda connection: method(self, connection, *args, **kwargs))

    return write


def is_conflict(error: SQLAlchemyError) -> bool:
    """Whether another process was in the way, so that a retry may succeed."""
    if not isinstance(error, DBAPIError):
        return False
    return getattr(error.orig, "sqlstate", None) in _CONFLICTS or "is locked" in str(error.orig)


def is_transient(error: SQLAlchemyError) -> bool:
    """Whether it was a conflict, or a connection that was dropped or could not be made."""
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated or is_conflict(error):
        return True
    if not hasattr(error.orig, "sqlstate"):
        return False
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state is None:  # no server answered
        return type(error.orig).__name__ in {"OperationalError", "ConnectionTimeout"}
    return state in _SERVER_DOWN | _SUSPENDED or state.startswith("08")


def clock_of(engine: Engine) -> Clock:
    """The time by which leases and pauses are counted: the database's, so that machines whose clocks differ agree.
    SQLite is used by one machine, whose clock it is."""
    return time.time if is_sqlite(engine) else ServerClock(engine)


class ServerClock:
    """The server's clock as read with each new connection; what has passed since is counted here, whatever happens to
    the clock of this machine meanwhile."""

    def __init__(self, engine: Engine) -> None:
        self._read, self._at = time.time(), _elapsed()
        event.listen(engine, "connect", self._measure)

    def _measure(self, connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
            self._read, self._at = float(cursor.fetchone()[0]), _elapsed()
        connection.commit()

    def __call__(self) -> float:
        return self._read + _elapsed() - self._at


def _elapsed() -> float:
    """Seconds that never jump; on Linux they go on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
