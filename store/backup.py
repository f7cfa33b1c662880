"""Backup of a store into one SQLite file while runs write to it, and restore into SQLite or PostgreSQL.

A backup is a snapshot. Nothing is ever overwritten: a file gets its name only once it is complete and checked."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Engine, column, func, insert, select, table

from twothirds.store.engine import (
    FILE_MODE,
    advance_ids,
    connect,
    is_sqlite,
    snapshot,
    sqlite_file,
    sqlite_library,
    store_name,
    verify_file,
)
from twothirds.store.errors import StoreError, explained
from twothirds.store.requests import end_open_requests
from twothirds.store.schema import metadata, requests, review_people, runs, version
from twothirds.store.store import Store

ROWS = 1000


def is_empty(engine: Engine) -> bool:
    with engine.connect() as connection:
        return not any(
            connection.execute(select(copied).limit(1)).first() for copied in (runs, requests, review_people)
        )


def copy_rows(source: Engine, target: Engine, tell: Callable[[int, int], None]) -> None:
    """Copy a snapshot of all rows in one transaction; the tables of the target exist and are empty."""
    with snapshot(source) as reading, target.execution_options(writes=True).begin() as writing:
        tables = [copied for copied in metadata.sorted_tables if copied is not version]
        plain = {copied.name: table(copied.name, *(column(part.name) for part in copied.columns)) for copied in tables}
        counts = (select(func.count()).select_from(of_table) for of_table in plain.values())
        total = sum(reading.execute(count).scalar_one() for count in counts)
        done = 0
        for copied in tables:
            raw = plain[copied.name]
            rows = reading.execution_options(yield_per=ROWS).execute(select(raw)).mappings()
            for part in rows.partitions(ROWS):
                writing.execute(insert(raw), [dict(row) for row in part])
                done += len(part)
                tell(done, total)
            advance_ids(writing, copied)


PAGES = 512  # copied between two reports of progress
Tell = Callable[[int, int], None]  # pages or rows done, of how many


def back_up(store: Store, path: Path, tell: Tell) -> None:
    """Write the store to a new file at `path`."""
    with _new_file(path) as part:
        if is_sqlite(store.engine):
            _copy_file(store, part, tell)
        else:
            with Store.open(str(part)) as copy:
                copy_rows(store.engine, copy.engine, tell)
        _finish(part)


def restore(path: Path, url: str, tell: Tell) -> None:
    """Make the store at `url` from the backup: a new file, or the tables of a database that has none yet.

    Requests that were open when the copy was taken are ended: what had been sent stays booked, in doubt."""
    if not path.is_file():
        raise StoreError(f"backup {path} does not exist: give the file that `store backup` wrote")
    verify_file(connect(str(path)), str(path))
    target = sqlite_file(url)
    if target is not None:
        with _new_file(target) as part:
            _open_backup(path, part, tell)
        return
    with Store.open(url) as store, tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "store.sqlite"
        _open_backup(path, part, tell)
        if not is_empty(store.engine):
            raise StoreError(f"store {store_name(url)} holds runs already: give an empty database with --store")
        with Store.open(str(part)) as copy:
            copy_rows(copy.engine, store.engine, tell)


def _open_backup(path: Path, part: Path, tell: Tell) -> None:
    """Copy the backup to a store of this version in which no request is open."""
    library = sqlite_library()
    address = quote(os.fsencode(path.absolute()))
    with closing(library.connect(f"file:{address}?mode=ro", uri=True)) as source:
        _copy_pages(source, part, tell)
    with Store.open(str(part)) as copy:
        with copy.engine.execution_options(writes=True).begin() as connection:
            end_open_requests(connection, time.time())
        if wrong := copy.check.problems():
            raise StoreError(f"backup {path} is damaged ({wrong[0]}): nothing was restored; restore another backup")
    _finish(part)


def _copy_file(store: Store, part: Path, tell: Tell) -> None:
    connection = store.engine.raw_connection()
    try:
        source: Any = connection.driver_connection
        source.execute("BEGIN")  # held until the copy is done: a snapshot that never restarts
        source.execute("SELECT count(*) FROM twothirds_schema").fetchone()
        _copy_pages(source, part, tell)
        source.execute("ROLLBACK")
    except sqlite_library().Error as error:
        raise explained(store.name, error) from error
    finally:
        connection.close()


def _copy_pages(source: Any, part: Path, tell: Tell) -> None:
    with closing(sqlite_library().connect(str(part))) as target:
        source.backup(target, pages=PAGES, progress=lambda _status, left, total: tell(total - left, total))


def _finish(part: Path) -> None:
    """Make it one file without a journal, check it and sync it to disk."""
    with closing(sqlite_library().connect(str(part), isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        result = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if result != "ok":
        raise StoreError(f"the copy {part} is damaged ({result}): check the disk and run again")
    part.chmod(FILE_MODE)
    _sync(part)


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which becomes `path` at the end, unless `path` exists by then."""
    if path.exists():
        raise StoreError(f"{path} exists already and is not overwritten: move it away or give another name")
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
        raise StoreError(f"{path} was created meanwhile and is not overwritten: give another name") from None
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
