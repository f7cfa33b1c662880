"""An enrichment by a local model beside the script that one would write by hand.

    python -m benchmarks.enrichment.local [--examples 10000] [--features 30] [--rounds 3]

Both label the same drawn faces with the shipped model, each in its own process, one after the other; an enrichment is
the whole command, with a new store, table and Prefect server. The two tables must be equal."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.faces_model.draw import png
from benchmarks.faces_model.face import sample
from benchmarks.machine import heading

SEED = 0
MAX_RATIO, MAX_BYTES = 1.3, 5.0  # of the script's time; of the store for each label
SIDE = 96  # pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(heading("python -m benchmarks.enrichment.local", SEED))
    print("| round | script, s | of processor | enrich, s | of processor | ratio | bytes per label |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        pictures, features = Path(folder) / "faces", Path(folder) / "features.csv"
        draw(pictures, options.examples)
        features.write_text("\n".join(["name", *known_names(options.features)]), encoding="utf-8")
        ratios, sizes = [], []
        for number in range(options.rounds):
            script, enriched = by_script(Path(folder)), by_enrich(Path(folder), number)
            size = store_size(Path(folder) / str(number)) / options.examples / options.features
            cells = (*script, *enriched, enriched[0] / script[0])
            print(f"| {number + 1} | {' | '.join(f'{cell:.2f}' for cell in cells)} | {size:.1f} |", flush=True)
            ratios.append(enriched[0] / script[0])
            sizes.append(size)
            compare(Path(folder), number)
    ratio, size = statistics.median(ratios), max(sizes)
    print(f"\nThe tables are equal. Median ratio {ratio:.2f} (at most {MAX_RATIO} is wanted), ", end="")
    print(f"{size:.1f} bytes per label (at most {MAX_BYTES:.0f}).")
    if ratio > MAX_RATIO or size > MAX_BYTES:
        raise SystemExit("more than is wanted")


def draw(folder: Path, count: int) -> None:
    folder.mkdir()
    rng = np.random.default_rng(SEED)
    for number in range(count):  # a few bytes after the end make each another file
        (folder / f"{number:06}.png").write_bytes(png(sample(rng), SIDE) + number.to_bytes(4))


def known_names(count: int) -> list[str]:
    vocabulary = json.loads((Path("models") / "faces" / "vocabulary.json").read_text(encoding="utf-8"))
    return [phrase["name"] for phrase in vocabulary][:count]


def by_script(folder: Path) -> tuple[float, float]:
    arguments = [str(folder / "faces"), str(folder / "features.csv"), str(folder / "bare.parquet")]
    return timed([sys.executable, "-m", "benchmarks.enrichment.bare_script", *arguments], {})


def by_enrich(folder: Path, number: int) -> tuple[float, float]:
    """With nothing kept from before: no vectors, no store, no server."""
    own = folder / str(number)
    own.mkdir()
    options = ["--features", str(folder / "features.csv"), "--oracle", "contrastive", "--out", str(own / "out")]
    kept = {name: str(own / name) for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "PREFECT_HOME")}
    command = [sys.executable, "-m", "flows"]
    try:
        return timed([*command, "enrich", str(folder / "faces"), *options], kept)
    finally:  # else the server waits for the next run
        subprocess.run([*command, "server", "stop"], env=os.environ | kept, capture_output=True, check=True)


def timed(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds by the clock, and of the processor without those of a server that goes on in the background."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def store_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.sqlite*") if "PREFECT_HOME" not in path.parts)


def compare(folder: Path, number: int) -> None:
    bare = pd.read_parquet(folder / "bare.parquet").set_index("id").sort_index()
    ours = pd.read_parquet(folder / str(number) / "out" / "labels.parquet").set_index("id").sort_index()
    if not (bare == ours[bare.columns].astype("int8")).all(axis=None):
        raise SystemExit("the tables differ")
    shutil.rmtree(folder / str(number))


if __name__ == "__main__":
    main()
