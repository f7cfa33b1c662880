"""Prefect's database as the first start of its server makes it, in ten seconds: here once for all tests."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

DATABASE = "prefect.db"
SHARED = "TWOTHIRDS_TESTS"  # the folder that all workers of a test session share


def prefect_home(folder: Path) -> Path:
    """The folder, with a database of its own in it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(_made_once(Path(os.environ[SHARED])), folder / DATABASE)
    return folder


def _made_once(shared: Path) -> Path:
    made = shared / DATABASE
    with (shared / f"{DATABASE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            home = shared / "prefect"
            upgrade = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
            environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
            subprocess.run(upgrade, env=environment | {"PREFECT_HOME": str(home)}, check=True, capture_output=True)
            shutil.move(home / DATABASE, made)
    return made
