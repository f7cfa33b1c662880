"""How fast an enrichment labels, and how its time grows with the labels that are stored.

*local*: drawn faces labelled with the shipped model by a script of twenty lines and by `enrich`, the whole command with
a new store, table and Prefect server. The two tables must be equal.

*nights*: a table is enriched three times: everything is new, nothing is, one example in a hundred is. A simulated crowd
answers at once for a price, so that every label is claimed, booked and stored and all the time is overhead. Each night
is a process of its own; growth is judged by processor time, that of the database server included.

*first*: of a folder of pictures one in a hundred is new: how long the first question takes from the start of the
process, without Prefect (see [start](#start)).

*cluster* (only if asked for): pictures that a table names by their paths, labelled in threads and on local clusters of
two processes. A million pictures take about 5 GB of disk and a quarter of an hour for each runner."""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from benchmarks.data import PAID_CROWD, traits, write_faces, write_plain_texts, write_small_pictures, write_traits
from benchmarks.machine import alone, tell
from benchmarks.results import Cell, Table, rounded
from benchmarks.store import FEATURES, MAX_EXPONENT, NEGLIGIBLE, Database, databases, paid_enrichment
from twothirds.flows.enrich.batches import BatchFuture, Labeller
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.runners import local_submit
from twothirds.models import LabelBatch
from twothirds.reports.label_table import LabelTable
from twothirds.reports.versions import Column, TableSchema, VersionedTable, read_table, write_table

MEASURES = ("local", "nights", "first", "cluster")
RUNNERS = ("threads", "dask", "ray")
QUICK = {"examples": 300, "rounds": 1, "labels": [2_000, 20_000], "pictures": [1_000]}
MAX_RATIO, MAX_BYTES = 1.3, 5.0  # of the script's time; of the store for each label
SIDE = 96  # pixels
MAX_FIRST = 10.0  # seconds until the first question about new pictures
NIGHTS = ("all new", "nothing new", "1 % new")
CLUSTER_FEATURES = 2
WORKERS = 2
HOMES = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "PREFECT_HOME")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES[:3])
    parser.add_argument("--postgresql", action="store_true", help="nights, first: on a server that is started for it")
    parser.add_argument("--examples", type=int, default=10_000, help="local")
    parser.add_argument("--features", type=int, default=30, help="local")
    parser.add_argument("--rounds", type=int, default=3, help="local")
    parser.add_argument("--labels", type=int, nargs="+", default=[10_000, 100_000], help="nights")
    parser.add_argument("--pictures", type=int, nargs="+", default=[100_000], help="first, cluster")
    parser.add_argument("--runners", nargs="+", choices=RUNNERS, default=RUNNERS, help="cluster")


def run(options: argparse.Namespace) -> list[Table]:
    tables = []
    if "local" in options.only:
        tables.append(beside_a_script(options.examples, options.features, options.rounds))
    with databases(postgresql=options.postgresql) as database:
        if "nights" in options.only:
            tables.append(nights(database, options.labels))
        if "first" in options.only:
            tables.append(first_questions(database, options.pictures))
    if "cluster" in options.only:
        tables.append(on_clusters(options.pictures, options.runners))
    return tables


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
    return timed([sys.executable, "-m", "benchmarks.bare_script", *arguments], {})


def by_enrich(folder: Path, number: int) -> tuple[float, float]:
    """With nothing kept from before: no vectors, no store, no server."""
    own = folder / str(number)
    own.mkdir()
    options = ["--features", str(folder / "features.csv"), "--oracle", "contrastive", "--out", str(own / "out")]
    kept = {name: str(own / name) for name in HOMES}
    command = [sys.executable, "-m", "twothirds"]
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
    ours = read_labels(folder / str(number) / "out" / "labels.parquet")
    if not (bare == ours[bare.columns].astype("int8")).all(axis=None):
        raise SystemExit("the tables differ")
    shutil.rmtree(folder / str(number))


def read_labels(path: Path) -> pd.DataFrame:
    """One row per example, one column per feature under the feature's own name."""
    table = LabelTable.from_arrow(pq.read_table(path))
    return table.frame().set_axis([feature.name for feature in table.features], axis=1).sort_index()


def nights(database: Database, sizes: Sequence[int]) -> Table:
    rows, computed, missed = [], [], []
    for labels in sizes:
        tell(f"nights, {labels:,} labels")
        measured = three_nights(database, labels)
        computed.append([figures["processor"] for figures in measured])
        times = [f"{figures['seconds']:.1f}, {figures['processor']:.1f}" for figures in measured]
        rows.append([f"{labels:,}", *times, round(max(figures["peak_mb"] for figures in measured))])
    for (less, more), (before, after) in zip(pairwise(sizes), pairwise(computed), strict=True):
        exponents = [log(new / old) / log(more / less) for old, new in zip(before, after, strict=True)]
        rows.append([f"exponent {less:,} to {more:,}", *(round(exponent, 2) for exponent in exponents), None])
        missed += [
            f"{name}: exponent {exponent:.2f}, {MAX_EXPONENT} is allowed"
            for name, exponent, seconds in zip(NIGHTS, exponents, after, strict=True)
            if exponent > MAX_EXPONENT and seconds > NEGLIGIBLE
        ]
    columns = ["labels stored", *(f"{name}: s, of processor" for name in NIGHTS), "peak MB"]
    return Table(f"Nights, {database.name}", columns, rows, [], missed)


def three_nights(database: Database, labels: int) -> list[dict[str, float]]:
    examples = labels // FEATURES
    more = examples + max(examples // 100, 1)
    measured = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_traits(folder, [f"e{number:08}" for number in range(more)], FEATURES)
        url = database.new_store(folder)
        for known, asked in zip((examples, examples, more), (examples, 0, more - examples), strict=True):
            write_plain_texts(folder, known)
            served = database.served()
            figures = alone(night, folder, url)
            assert figures["added"] == asked, figures
            figures["processor"] += database.served() - served
            measured.append(figures)
    return measured


def first_questions(database: Database, sizes: Sequence[int]) -> Table:
    """Of folders whose last and first pictures, and some between, are new."""
    rows, missed = [], []
    for count in sizes:
        tell(f"first question, {count:,} pictures")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_traits(folder / "world", write_small_pictures(folder / "world", count), FEATURES)
            url = database.new_store(folder)
            alone(fill, folder, url)
            began = time.time()
            asked = alone(ask_first, folder, url)
        seconds = asked["at"] - began
        rows.append([count, int(asked["added"]), round(seconds, 1), round(asked["processor"], 1)])
        if seconds > MAX_FIRST:
            missed.append(f"{count:,} pictures: {seconds:.1f} s, {MAX_FIRST:.0f} are allowed")
    columns = ["pictures", "of these new", "first question after, s", "of processor"]
    return Table(f"First question about new pictures, {database.name}", columns, rows, [], missed)


def fill(folder: Path, store: str) -> None:
    """A table in which all pictures are labelled, but one in a hundred."""
    names = [str(path.relative_to(folder / "world")) for path in sorted((folder / "world").glob("*/*.png"))]
    known = [name for number, name in enumerate(names) if number % 100 and number < len(names) - 1]
    aside = folder / "few"
    (aside / Path(known[0]).parent).mkdir(parents=True)
    shutil.copy(folder / "world" / known[0], aside / known[0])
    write_traits(aside, known[:1], FEATURES)
    enrich_with(paid_enrichment(aside, store, folder / "out"))
    table = read_table(folder / "out")
    columns = tuple(Column(column.name, column.definition, 0) for column in table.table_schema.columns)
    labelled = VersionedTable(TableSchema(1, columns, table.table_schema.oracle, table.table_schema.votes), known)
    digests = b"".join(hashlib.sha256((folder / "world" / name).read_bytes()).digest() for name in known)
    labelled.digests = np.frombuffer(digests, np.uint8).reshape(-1, 32)
    labelled.versions = np.ones(len(known), np.int32)
    labelled.labels = np.random.default_rng(0).integers(0, 2, (len(known), FEATURES)).astype(np.int8)
    write_table(folder / "out", labelled)


def ask_first(folder: Path, store: str) -> dict[str, float]:
    """When the first batch was sent, the processor time until then, and how many examples were new."""
    sent: list[tuple[float, float]] = []
    with local_submit(2) as submit:

        def noted(labeller: Labeller, batch: LabelBatch) -> BatchFuture:
            sent.append((time.time(), time.process_time()))
            return submit(labeller, batch)

        added = enrich_with(paid_enrichment(folder / "world", store, folder / "out"), submit=noted).to_json()["added"]
    return {"at": sent[0][0], "processor": sent[0][1], "added": added}


def night(folder: Path, store: str) -> dict[str, float]:
    settings = paid_enrichment(folder / "world.csv", store, folder / "out")
    began, used = time.perf_counter(), time.process_time()
    added = enrich_with(settings).to_json()["added"]
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "processor": processor, "added": added, "peak_mb": peak}


def on_clusters(sizes: Sequence[int], runners: Sequence[str]) -> Table:
    rows = []
    for pictures in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_world(folder, pictures)
            tables = []
            for runner in runners:
                tell(f"cluster, {pictures:,} pictures, {runner}")
                row, table = on_cluster(folder, pictures, runner)
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
    write_traits(folder, ids, CLUSTER_FEATURES)


def on_cluster(folder: Path, pictures: int, runner: str) -> tuple[list[Cell], pd.DataFrame]:
    own = folder / runner
    own.mkdir()
    kept = {name: str(own / name) for name in HOMES}
    kept |= {"TWOTHIRDS_SERVER_MINUTES": "0.05", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    command = [
        sys.executable,
        "-m",
        "twothirds",
        "enrich",
        str(folder / "pictures.csv"),
        "--oracle",
        PAID_CROWD,
        "--yes",
    ]
    command += ["--features", "; ".join(traits(CLUSTER_FEATURES)), "--out", str(own / "out")]
    command += ["--runner", runner, "--workers", str(WORKERS)]
    seconds, used = timed(command, kept)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    table = read_labels(own / "out" / "labels.parquet")
    assert len(table) == pictures
    return [pictures, runner, round(seconds, 1), round(used, 1), round(pictures / seconds), round(peak)], table
