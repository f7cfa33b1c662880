"""Prefect's database as the first start of its server makes it, in several seconds: here once for all tests."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from twothirds.flows.prefect_api.new_database import make_database
from twothirds.flows.prefect_api.server_program import prepared_database

DATABASE = "prefect.db"
SHARED = "TWOTHIRDS_TESTS"  # the folder that all workers of a test session share


def prefect_home(folder: Path) -> Path:
    """The folder, with a database of its own in it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(_made_once(Path(os.environ[SHARED])), folder / DATABASE)
    return folder


def _made_once(shared: Path) -> Path:
    """The one that the set-up has made, if it has."""
    if prepared_database().exists():
        return prepared_database()
    made = shared / DATABASE
    with (shared / f"{DATABASE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make_database(made)
    return made
