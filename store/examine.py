"""A look at an SQLite file before anything is written to it: what is damaged or not ours is left as it is."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from store.connect import BUSY_MILLISECONDS
from store.errors import StoreError, explained
from store.migrations import present_version

# Either could answer or change whatever is asked, and the checksums would be right all the same.
_ADDED = "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view') ORDER BY name LIMIT 1"
READ_IN_FULL = 64 * 2**20  # bytes: about 0.3 s; a larger file is read in full by the integrity check only


def examine(engine: Engine, name: str) -> None:
    """Raise StoreError for a file that is no sound store of this or an earlier schema; servers are not examined."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        return
    path = Path(engine.url.database)
    if not path.exists():
        return
    looking = create_engine(engine.url, module=engine.dialect.dbapi, poolclass=NullPool, hide_parameters=True)
    try:
        with looking.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
            if path.stat().st_size <= READ_IN_FULL:
                said = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
                if said != "ok":
                    raise explained(name, StoreError(f"malformed: {said.splitlines()[-1]}"))
            present_version(connection, name)
            if strange := connection.exec_driver_sql(_ADDED).first():
                remedy = "it was left as it is; restore a copy of it or give another --store"
                raise StoreError(f"store {name} has the {strange[0]} {strange[1]!r}, which no version makes: {remedy}")
    except (SQLAlchemyError, UnicodeDecodeError) as error:
        raise explained(name, error) from error
