"""All rows of one store into another, of SQLite or PostgreSQL, as they are.

A copy of a store in one SQLite file, taken while runs write to it, and a store made from such a copy.

The copy is as of one moment. Nothing is ever overwritten: a file gets its name only when it is complete and sound."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, TableClause, column, func, insert, select, table, text

from store.connection import OWN, connect, examine, sqlite_file, sqlite_library, store_name
from store.errors import StoreError, explained
from store.ledger.expiry import end_all_claims
from store.schema import answers, metadata, review_people, runs, version
from store.store import Store

ROWS = 1000


def is_empty(engine: Engine) -> bool:
    with engine.connect() as connection:
        return not any(connection.execute(select(one).limit(1)).first() for one in (runs, answers, review_people))


def copy_rows(source: Engine, target: Engine, tell: Callable[[int, int], None]) -> None:
    """Copy what the source holds at one moment, in one transaction; the tables of the target are there and empty."""
    reading = source.connect()
    if source.dialect.name == "postgresql":
        reading = reading.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with reading, reading.begin(), target.execution_options(writes=True).begin() as writing:
        tables = [one for one in metadata.sorted_tables if one is not version]
        plain = {one.name: table(one.name, *(column(part.name) for part in one.columns)) for one in tables}
        total = sum(_count(reading, each) for each in plain.values())
        done = 0
        for one in tables:
            raw = plain[one.name]
            rows = reading.execution_options(yield_per=ROWS).execute(select(raw)).mappings()
            for part in rows.partitions(ROWS):
                writing.execute(insert(raw), [dict(row) for row in part])
                done += len(part)
                tell(done, total)
            if target.dialect.name == "postgresql" and "id" in one.columns:
                _go_on_after(writing, one.name)


def _count(connection: Connection, of: TableClause) -> int:
    return connection.execute(select(func.count()).select_from(of)).scalar_one()


def _go_on_after(connection: Connection, name: str) -> None:
    """New rows get numbers above those that were copied."""
    connection.execute(
        text(f"SELECT setval(pg_get_serial_sequence(:name, 'id'), max(id)) FROM {name} HAVING max(id) IS NOT NULL"),  # noqa: S608 (a table of ours)
        {"name": name},
    )


PAGES = 512  # copied between two looks at how far it is
Tell = Callable[[int, int], None]  # done, of


def backup(store: Store, path: Path, tell: Tell) -> None:
    """Write the store to a new file at `path`."""
    with _new_file(path) as part:
        if store.engine.dialect.name == "sqlite":
            _copy_file(store, part, tell)
        else:
            with Store.open(str(part)) as copy:
                copy_rows(store.engine, copy.engine, tell)
        _settle(part)


def restore(path: Path, url: str, tell: Tell) -> None:
    """Make the store at `url` from the backup: a new file, or the tables of a database that has none yet.

    Claims that were open when the copy was taken are ended: what had been sent stays booked as unknown."""
    if not path.is_file():
        raise StoreError(f"backup {path} is not there: give the file that `store backup` wrote")
    examine(connect(str(path)), str(path))
    target = sqlite_file(url)
    if target is not None:
        with _new_file(target) as part:
            _take_over(path, part, tell)
        return
    with Store.open(url) as store, tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "store.sqlite"
        _take_over(path, part, tell)
        if not is_empty(store.engine):
            raise StoreError(f"store {store_name(url)} holds runs already: give an empty database with --store")
        with Store.open(str(part)) as copy:
            copy_rows(copy.engine, store.engine, tell)


def _take_over(path: Path, part: Path, tell: Tell) -> None:
    """The backup as a store of this version, with nothing under way."""
    library = sqlite_library()
    with closing(library.connect(f"file:{_quoted(path)}?mode=ro", uri=True)) as source:
        _copy_pages(source, part, tell)
    with Store.open(str(part)) as copy:
        with copy.engine.execution_options(writes=True).begin() as connection:
            end_all_claims(connection, time.time())
        if wrong := copy.check.problems():
            raise StoreError(f"backup {path} is not sound ({wrong[0]}): nothing was restored; take another backup")
    _settle(part)


def _copy_file(store: Store, part: Path, tell: Tell) -> None:
    connection = store.engine.raw_connection()
    try:
        source: Any = connection.driver_connection
        source.execute("BEGIN")  # held until the copy is done, so that it is of one moment and never starts over
        source.execute("SELECT count(*) FROM twothirds_schema").fetchone()
        _copy_pages(source, part, tell)
        source.execute("ROLLBACK")
    except store.engine.dialect.loaded_dbapi.Error as error:
        raise explained(store.name, error) from error
    finally:
        connection.close()


def _copy_pages(source: Any, part: Path, tell: Tell) -> None:
    with closing(sqlite_library().connect(str(part))) as target:
        source.backup(target, pages=PAGES, progress=lambda _status, left, total: tell(total - left, total))


def _settle(part: Path) -> None:
    """One file without a journal beside it, and all of it on the disk."""
    with closing(sqlite_library().connect(str(part), isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if said != "ok":
        raise StoreError(f"the copy {part} is not sound ({said}): check the disk and run again")
    part.chmod(OWN)
    _sync(part)


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; the file gets its own name at the end, unless something has that name."""
    if path.exists():
        raise StoreError(f"{path} is there already, and nothing is overwritten: move it away or give another name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    except OSError as error:
        raise StoreError(f"cannot write {path} ({error.strerror}): give a folder that can be written") from None
    try:
        yield folder / path.name
        os.link(folder / path.name, path)
        _sync(path.parent)
    except FileExistsError:
        raise StoreError(f"{path} appeared meanwhile, and nothing is overwritten: give another name") from None
    except OSError as error:
        raise StoreError(f"cannot write {path} ({error.strerror}): give a file on another disk") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    return quote(str(path.absolute()))
