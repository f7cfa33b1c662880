"""Pictures that a table names by their paths, labelled in threads and on local clusters of two processes."""

from __future__ import annotations

import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.data import PAID_CROWD, traits, write_small_pictures, write_traits
from benchmarks.machine import tell
from benchmarks.results import Cell, Table

FEATURES = 2
WORKERS = 2


def on_clusters(sizes: Sequence[int], runners: Sequence[str]) -> Table:
    rows = []
    for pictures in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_world(folder, pictures)
            tables = []
            for runner in runners:
                tell(f"cluster, {pictures:,} pictures, {runner}")
                row, table = measure(folder, pictures, runner)
                rows.append(row)
                tables.append(table)
            if not all(table.equals(tables[0]) for table in tables):
                raise SystemExit(f"the tables of {pictures:,} pictures differ")
    columns = ["pictures", "runner", "s", "processor s", "pictures/s", "peak MB of a process"]
    return Table("Pictures in threads and on clusters", columns, rows, ["The tables of all runners are equal."])


def write_world(folder: Path, pictures: int) -> None:
    """Pictures, a table that names them, and a truth for the simulated crowd."""
    names = write_small_pictures(folder, pictures)
    ids = [f"p{number:07}" for number in range(pictures)]
    with (folder / "pictures.csv").open("w", newline="") as file:
        paths = [folder / name for name in names]
        csv.writer(file).writerows([("id", "image"), *zip(ids, paths, strict=True)])
    write_traits(folder, ids, FEATURES)


def measure(folder: Path, pictures: int, runner: str) -> tuple[list[Cell], pd.DataFrame]:
    own = folder / runner
    own.mkdir()
    kept = {name: str(own / name) for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "PREFECT_HOME")}
    options = ["--features", "; ".join(traits(FEATURES)), "--oracle", PAID_CROWD, "--out", str(own / "out"), "--yes"]
    options += ["--runner", runner, "--workers", str(WORKERS)]
    command = [sys.executable, "-m", "flows", "enrich", str(folder / "pictures.csv"), *options]
    environment = os.environ | kept | {"TWOTHIRDS_SERVER_MINUTES": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row = [
        pictures,
        runner,
        round(seconds, 1),
        round(used, 1),
        round(pictures / seconds),
        round(after.ru_maxrss / 1024),
    ]
    table = pd.read_parquet(own / "out" / "labels.parquet").set_index("id").sort_index()
    assert len(table) == pictures
    return row, table
