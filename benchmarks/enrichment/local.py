"""An enrichment by a local model beside the script that one would write by hand."""

from __future__ import annotations

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

import pandas as pd

from benchmarks.data import write_faces
from benchmarks.machine import tell
from benchmarks.results import Table, rounded

MAX_RATIO, MAX_BYTES = 1.3, 5.0  # of the script's time; of the store for each label
SIDE = 96  # pixels


def beside_a_script(examples: int, features: int, rounds: int) -> Table:
    rows, ratios, sizes = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_faces(folder / "faces", examples, SIDE)
        (folder / "features.csv").write_text("\n".join(["name", *known_names(features)]), encoding="utf-8")
        for number in range(rounds):
            tell(f"local, round {number + 1}")
            script, enriched = by_script(folder), by_enrich(folder, number)
            sizes.append(store_size(folder / str(number)) / examples / features)
            ratios.append(enriched[0] / script[0])
            rows.append([number + 1, *rounded((*script, *enriched, ratios[-1]), 2), round(sizes[-1], 1)])
            compare(folder, number)
    ratio, size = statistics.median(ratios), max(sizes)
    note = (
        f"{examples:,} faces × {features} features. The tables are equal. Median ratio {ratio:.2f} (at most "
        f"{MAX_RATIO} is wanted), {size:.1f} bytes per label (at most {MAX_BYTES:.0f})."
    )
    missed = [f"ratio {ratio:.2f}"] if ratio > MAX_RATIO else []
    missed += [f"{size:.1f} bytes per label"] if size > MAX_BYTES else []
    columns = ["round", "script, s", "of processor", "enrich, s", "of processor", "ratio", "bytes per label"]
    return Table("A local model, beside a script", columns, rows, [note], missed)


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
