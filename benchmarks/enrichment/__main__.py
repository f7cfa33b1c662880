"""How fast an enrichment labels, how its time grows with the data, and how much memory it takes.

    python -m benchmarks.enrichment [--examples 100000] [--features 20] [--rows 1000000] [--pictures 100000]

Each measurement runs in a process of its own, whose peak memory the system reports. The oracle is a simulated crowd
that answers at once for a price, so that all labels are claimed, booked and kept. What is measured is everything else:
reading, keys, store, votes and the table."""

from __future__ import annotations

import argparse
import csv
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.machine import heading
from flows.enrich.flow import enrich_with
from flows.enrich.settings import EnrichSettings
from reports.enrichment import Cells, Column, GrowingTable, Meaning, NewVersion, read_table, write_history, write_table
from sources.load import digest_of_text

SEED = 0
PAID_CROWD = "simulated?price=0.000001"  # the labels of a free one would be computed, and not kept
MAX_GROWTH = 2.2  # of the time, for twice the examples
MAX_MEGABYTES = 1024.0  # of memory at the peak
TEXT = "A few words about example {}, as long as such descriptions tend to be in practice, more or less."
MAX_SECONDS = 25.0  # of the processor, where nothing is new
TABLE_FEATURES = 50  # of a table in which nothing is new
PICTURE_FEATURES = 2  # what is measured there is the reading of pictures
PER_FOLDER = 1_000
NAMES = {
    "label": "all new: each label asked",
    "look": "nothing new: table and data set read",
    "pictures": "all new: pictures in folders",
    "history": "the history of a whole table written",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of a table in which nothing is new")
    parser.add_argument("--pictures", type=int, default=100_000)
    parser.add_argument("--measure", choices=tuple(NAMES), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measured = {"label": label, "look": look, "pictures": pictures, "history": history}[options.measure]
        print(json.dumps(measured(Path(options.folder), options.examples, options.features)))
        return
    print(heading("python -m benchmarks.enrichment", SEED))
    print("| what | examples | features | seconds | of processor | examples/s | labels/s | peak MB |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    half = measure("label", options.examples // 2, options.features)["seconds"]
    labelled = measure("label", options.examples, options.features)
    whole, bytes_each = labelled["seconds"], 1e6 * labelled["store_mb"] / options.examples / options.features
    measure("pictures", options.pictures, PICTURE_FEATURES)
    for rows in (options.rows // 10, options.rows):
        looked = measure("look", rows, TABLE_FEATURES)
        measure("history", rows, TABLE_FEATURES)
    print(f"\nTwice the examples take {whole / half:.2f} times as long ({MAX_GROWTH} is allowed).")
    print(f"The store takes {bytes_each:.0f} bytes for each label.")
    if looked["processor"] > MAX_SECONDS:
        raise SystemExit(f"{looked['processor']:.1f} s to find that nothing is new; {MAX_SECONDS:.0f} s are allowed")
    if whole / half > MAX_GROWTH:
        raise SystemExit(f"twice the examples take {whole / half:.2f} times as long; the target is {MAX_GROWTH}")


def measure(what: str, examples: int, features: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        options = ["--measure", what, "--folder", folder, "--examples", str(examples), "--features", str(features)]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.enrichment", *options], stdout=subprocess.PIPE, text=True, check=True
        )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    seconds, peak = figures["seconds"], figures["peak_mb"]
    labels = "–" if what in ("look", "history") else f"{examples * features / seconds:,.0f}"
    cells = (f"{examples:,}", features, f"{seconds:.1f}", f"{figures['processor']:.1f}", f"{examples / seconds:,.0f}")
    print(f"| {NAMES[what]} | {' | '.join(map(str, cells))} | {labels} | {peak:.0f} |", flush=True)
    if peak > MAX_MEGABYTES:
        raise SystemExit(f"{peak:.0f} MB are more than {MAX_MEGABYTES:.0f}")
    return figures


def label(folder: Path, examples: int, features: int) -> dict[str, float]:
    write_texts(folder, examples)
    write_truth(folder, [f"e{number:08}" for number in range(examples)], features)
    return timed(folder / "world.csv", features, added=examples)


def pictures(folder: Path, examples: int, features: int) -> dict[str, float]:
    """One small picture many times, with a few bytes after its end that make each another file."""
    world, drawn = folder / "pictures", io.BytesIO()
    Image.new("RGB", (16, 16), "teal").save(drawn, "PNG")
    names = [f"{number // PER_FOLDER:03}/{number:08}.png" for number in range(examples)]
    for number, name in enumerate(names):
        if number % PER_FOLDER == 0:
            (world / name).parent.mkdir(parents=True)
        (world / name).write_bytes(drawn.getvalue() + number.to_bytes(8))
    write_truth(world, names, features)
    return timed(world, features, added=examples)


def look(folder: Path, examples: int, features: int) -> dict[str, float]:
    """The table is complete already: what a nightly run without new examples costs."""
    label(folder, 3, features)
    write_texts(folder, examples)
    fill_table(folder, examples)
    return timed(folder / "world.csv", features, added=0)


def history(folder: Path, examples: int, features: int) -> dict[str, float]:
    """What the first night after an update costs once more: a row and a cell each of all there is."""
    label(folder, 3, features)
    fill_table(folder, examples)
    table = read_table(folder / "out")
    began, used = time.perf_counter(), time.process_time()
    cells = Cells(np.arange(len(table)), np.arange(len(table.meaning.columns)))
    write_history(folder / "out", table, NewVersion("run", None, [cells]))
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    kept = sum(path.stat().st_size for path in (folder / "out").glob("*/version=*/*")) / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "processor": processor, "peak_mb": peak, "store_mb": kept}


def timed(dataset: Path, features: int, *, added: int) -> dict[str, float]:
    folder = dataset.parent
    settings = EnrichSettings(
        dataset=str(dataset),
        features="; ".join(traits(features)),
        oracle=PAID_CROWD,
        store=str(folder / "store.sqlite"),
        out=str(folder / "out"),
    )
    began, used = time.perf_counter(), time.process_time()
    summary = enrich_with(settings).to_json()
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    assert summary["added"] == added, summary
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    kept = (folder / "store.sqlite").stat().st_size / 1e6
    return {"seconds": seconds, "processor": processor, "peak_mb": peak, "store_mb": kept}


def traits(features: int) -> list[str]:
    return [f"trait {number}" for number in range(features)]


def write_truth(folder: Path, names: list[str], features: int) -> None:
    rng = np.random.default_rng(SEED)
    with (folder / "truth.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *traits(features)])
        for name in names:
            writer.writerow([name, *rng.integers(0, 2, features).tolist()])


def write_texts(folder: Path, examples: int) -> None:
    with (folder / "world.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows([f"e{number:08}", TEXT.format(number)] for number in range(examples))


def fill_table(folder: Path, examples: int) -> None:
    """A table in which every example is labelled; written by another process, so that its memory is not counted."""
    code = f"from benchmarks.enrichment.__main__ import write_filled; write_filled({str(folder)!r}, {examples})"
    subprocess.run([sys.executable, "-c", code], check=True)


def write_filled(folder: str, examples: int) -> None:
    before = read_table(Path(folder) / "out")
    columns = tuple(Column(column.name, column.definition, 0) for column in before.meaning.columns)
    meaning = Meaning(1, columns, before.meaning.oracle, before.meaning.votes)
    table = GrowingTable(meaning, [f"e{number:08}" for number in range(examples)])
    digests = b"".join(bytes.fromhex(digest_of_text(TEXT.format(number))) for number in range(examples))
    table.digests = np.frombuffer(digests, np.uint8).reshape(-1, 32)
    table.versions = np.ones(examples, np.int32)
    table.labels = np.random.default_rng(SEED).integers(0, 2, (examples, len(columns))).astype(np.int8)
    write_table(Path(folder) / "out", table)


if __name__ == "__main__":
    main()
