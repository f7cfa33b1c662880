"""How fast an enrichment labels, how its time grows with the data, and how much memory it takes.

    python -m benchmarks.enrichment [--examples 100000] [--features 20] [--rows 1000000]

Each measurement runs in a process of its own, whose peak memory the system reports. The oracle is the simulated crowd
without delay, so what is measured is everything else: reading, keys, store, votes and the table."""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.machine import heading
from flows.enrich import enrich_with
from flows.enrich_settings import EnrichSettings
from reports.growing import Column, GrowingTable, Meaning, write_table
from sources.load import digest_of_text

GROWTH = 2.2  # that twice the examples may take
LIMIT = 1024.0  # MB
TEXT = "A few words about example {}, as long as such descriptions tend to be in practice, more or less."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of a table in which nothing is new")
    parser.add_argument("--measure", choices=("label", "look"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measured = label if options.measure == "label" else look
        print(json.dumps(measured(Path(options.folder), options.examples, options.features)))
        return
    print(heading("python -m benchmarks.enrichment"))
    print("| what | examples | features | seconds | of processor | examples/s | peak MB |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    half = measure("label", options.examples // 2, options.features)
    whole = measure("label", options.examples, options.features)
    measure("look", options.rows, options.features)
    print(f"\nTwice the examples take {whole / half:.2f} times as long ({GROWTH} is allowed).")
    if whole / half > GROWTH:
        raise SystemExit("slower than it may be")


def measure(what: str, examples: int, features: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        options = ["--measure", what, "--folder", folder, "--examples", str(examples), "--features", str(features)]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.enrichment", *options], capture_output=True, text=True, check=True
        )
    figures = json.loads(done.stdout.splitlines()[-1])
    name = "all new: each label asked" if what == "label" else "nothing new: table and data set looked through"
    seconds, peak = figures["seconds"], figures["peak_mb"]
    print(
        f"| {name} | {examples:,} | {features} | {seconds:.1f} | {examples / seconds:,.0f} | {peak:.0f} |", flush=True
    )
    if what == "look" and peak > LIMIT:
        raise SystemExit(f"{peak:.0f} MB are more than {LIMIT:.0f}")
    return float(seconds)


def label(folder: Path, examples: int, features: int) -> dict[str, float]:
    write_world(folder, examples, features)
    return timed(folder, features, added=examples)


def look(folder: Path, examples: int, features: int) -> dict[str, float]:
    """The table is there already and complete: what a night without news costs."""
    write_world(folder, 3, features)
    timed(folder, features, added=3)
    write_texts(folder, examples)
    fill_table(folder, examples)
    return timed(folder, features, added=0)


def timed(folder: Path, features: int, *, added: int) -> dict[str, float]:
    settings = EnrichSettings(
        dataset=str(folder / "world.csv"),
        features="; ".join(traits(features)),
        oracle="simulated",
        store=str(folder / "store.sqlite"),
        out=str(folder / "out"),
    )
    began, used = time.perf_counter(), time.process_time()
    summary = enrich_with(settings)
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    assert summary["added"] == added, summary
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "processor": processor, "peak_mb": peak}


def traits(features: int) -> list[str]:
    return [f"trait {number}" for number in range(features)]


def write_world(folder: Path, examples: int, features: int) -> None:
    write_texts(folder, examples)
    rng = np.random.default_rng(0)
    with (folder / "truth.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *traits(features)])
        for number in range(examples):
            writer.writerow([f"e{number:08}", *rng.integers(0, 2, features).tolist()])


def write_texts(folder: Path, examples: int) -> None:
    with (folder / "world.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows([f"e{number:08}", TEXT.format(number)] for number in range(examples))


def fill_table(folder: Path, examples: int) -> None:
    """As if every example had been labelled before; in a process of its own, so that its memory is not counted."""
    code = f"from benchmarks.enrichment import write_filled; write_filled({str(folder)!r}, {examples})"
    subprocess.run([sys.executable, "-c", code], check=True)


def write_filled(folder: str, examples: int) -> None:
    from reports.growing import read_table

    before = read_table(Path(folder) / "out")
    columns = tuple(Column(column.name, column.definition, 0) for column in before.meaning.columns)
    meaning = Meaning(1, columns, before.meaning.oracle, before.meaning.votes)
    table = GrowingTable(meaning, [f"e{number:08}" for number in range(examples)])
    digests = b"".join(bytes.fromhex(digest_of_text(TEXT.format(number))) for number in range(examples))
    table.digests = np.frombuffer(digests, np.uint8).reshape(-1, 32)
    table.versions = np.ones(examples, np.int32)
    table.labels = np.random.default_rng(1).integers(0, 2, (examples, len(columns))).astype(np.int8)
    write_table(Path(folder) / "out", table)


if __name__ == "__main__":
    main()
