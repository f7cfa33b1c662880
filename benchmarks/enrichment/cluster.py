"""Pictures that a table names by their paths, labelled in threads and on local clusters of two processes.

    python -m benchmarks.enrichment.cluster [--pictures 10000 100000] [--runners threads dask ray] [--oracle ORACLE]

Each run is the whole command with a Prefect server of its own. The oracle is a simulated crowd that answers at once for
a price, so that all labels are claimed, booked and kept. The tables must be equal. A million pictures
(`--pictures 1000000`) take about 5 GB of disk and a quarter of an hour for each runner."""

from __future__ import annotations

import argparse
import csv
import io
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from benchmarks.enrichment.__main__ import PAID_CROWD, PER_FOLDER, SEED, traits, write_truth
from benchmarks.machine import heading

FEATURES = 2
WORKERS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pictures", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--runners", nargs="+", choices=("threads", "dask", "ray"), default=["threads", "dask", "ray"])
    parser.add_argument("--oracle", default=PAID_CROWD)
    options = parser.parse_args()
    print(heading(" ".join(["python -m benchmarks.enrichment.cluster", *sys.argv[1:]]), SEED))
    print("| pictures | runner | s | processor s | pictures/s | peak MB of a process |")
    print("|---:|---|---:|---:|---:|---:|")
    for pictures in options.pictures:
        with tempfile.TemporaryDirectory() as folder:
            draw(Path(folder), pictures)
            tables = [measure(Path(folder), pictures, runner, options.oracle) for runner in options.runners]
            if not all(table.equals(tables[0]) for table in tables):
                raise SystemExit(f"the tables of {pictures:,} pictures differ")
    print("\nThe tables of all runners are equal.")


def draw(folder: Path, pictures: int) -> None:
    """Small pictures whose contents differ, a table that names them, and a truth for the simulated crowd."""
    rng, names = np.random.default_rng(SEED), []
    drawn = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (16, 16, 3), np.uint8)).save(drawn, "PNG")
    with (folder / "pictures.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "image"])
        for number in range(pictures):
            path = folder / f"{number // PER_FOLDER:04}" / f"{number:07}.png"
            if number % PER_FOLDER == 0:
                path.parent.mkdir()
            path.write_bytes(drawn.getvalue() + number.to_bytes(8))
            names.append(f"p{number:07}")
            writer.writerow([names[-1], path])
    write_truth(folder, names, FEATURES)


def measure(folder: Path, pictures: int, runner: str, oracle: str) -> pd.DataFrame:
    own = folder / runner
    own.mkdir()
    kept = {name: str(own / name) for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "PREFECT_HOME")}
    options = ["--features", "; ".join(traits(FEATURES)), "--oracle", oracle, "--out", str(own / "out"), "--yes"]
    options += ["--runner", runner, "--workers", str(WORKERS)]
    command = [sys.executable, "-m", "flows", "enrich", str(folder / "pictures.csv"), *options]
    environment = os.environ | kept | {"TWOTHIRDS_SERVER_MINUTES": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cells = (f"{pictures:,}", runner, f"{seconds:.1f}", f"{used:.1f}", f"{pictures / seconds:,.0f}")
    print(f"| {' | '.join(cells)} | {after.ru_maxrss / 1024:,.0f} |", flush=True)
    table = pd.read_parquet(own / "out" / "labels.parquet").set_index("id").sort_index()
    assert len(table) == pictures
    return table


if __name__ == "__main__":
    main()
