"""How the time of a night grows with the labels that are kept: all new, nothing new, one example in a hundred new.

    python -m benchmarks.enrichment.nights [--labels 10000 100000] [--pictures 100000] [--postgresql]

Each of the nights is a process of its own, with a simulated crowd that answers at once for a price, so that every
label is claimed, booked and kept and all the time is overhead. Growth is judged by processor time, that of the
database server included. Of a folder of pictures, of which one in a hundred is new, it is measured how long the first
question takes from the start of the process (without Prefect: see benchmarks.speed.start)."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.enrichment.__main__ import PER_FOLDER, SEED, traits, write_texts, write_truth
from benchmarks.enrichment.growth import FEATURES, MAX_EXPONENT, NEGLIGIBLE, Database, databases
from benchmarks.machine import heading
from flows.enrich.batches import Batch, BatchFuture, Labeller
from flows.enrich.flow import enrich_with
from flows.enrich.runners import local_submit
from flows.enrich.settings import EnrichSettings
from reports.enrichment import Column, GrowingTable, Meaning, read_table, write_table

MAX_FIRST = 10.0  # seconds until the first question about new pictures
NIGHTS = ("all new", "nothing new", "1 % new")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--labels", type=int, nargs="+", default=[10_000, 100_000], help="1000000 takes minutes")
    parser.add_argument("--pictures", type=int, default=100_000, help="of which one in a hundred is new; 0: none")
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--night", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--first", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.night:
        print(json.dumps(night(Path(options.night[0]), options.night[1])))
        return
    if options.first:
        print(json.dumps(first_question(Path(options.first[0]), options.first[1])))
        return
    print(heading(" ".join(["python -m benchmarks.enrichment.nights", *sys.argv[1:]]), SEED))
    print(f"| labels kept | {' | '.join(f'{name}: s, of processor' for name in NIGHTS)} | peak MB |")
    print(f"|---:|{'---:|' * (len(NIGHTS) + 1)}")
    with databases(options.postgresql) as database:
        found = [nights(database, labels) for labels in options.labels]
        missed = pictures(database, options.pictures) if options.pictures else []
    for (less, more), (before, after) in zip(pairwise(options.labels), pairwise(found), strict=True):
        exponents = [log(new / old) / log(more / less) for old, new in zip(before, after, strict=True)]
        print(f"| exponent {less:,} to {more:,} | {' | '.join(f'{one:.2f}' for one in exponents)} | |")
        for name, one, seconds in zip(NIGHTS, exponents, after, strict=True):
            if one > MAX_EXPONENT and seconds > NEGLIGIBLE:
                missed.append(f"{name}: exponent {one:.2f}, {MAX_EXPONENT} is allowed")
    if missed:
        raise SystemExit("; ".join(missed))


def nights(database: Database, labels: int) -> list[float]:
    """Processor seconds of the three nights."""
    examples, cells, computed, peak = labels // FEATURES, [], [], 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        more = examples + max(examples // 100, 1)
        write_truth(folder, [f"e{number:08}" for number in range(more)], FEATURES)
        url = database.new_store(folder)
        for known, asked in zip((examples, examples, more), (examples, 0, more - examples), strict=True):
            write_texts(folder, known)
            served = database.processor() - time.process_time()
            command = [sys.executable, "-m", "benchmarks.enrichment.nights", "--night", str(folder), url]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
            assert measured["added"] == asked, measured
            served = database.processor() - time.process_time() - served
            computed.append(measured["processor"] + served)
            cells.append(f"{measured['seconds']:.1f}, {computed[-1]:.1f}")
            peak = max(peak, measured["peak_mb"])
    print(f"| {labels:,} | {' | '.join(cells)} | {peak:.0f} |", flush=True)
    return computed


def pictures(database: Database, count: int) -> list[str]:
    """What is missed, of a folder whose last and first pictures, and some between, are new."""
    with tempfile.TemporaryDirectory() as name:
        folder, names = Path(name), []
        drawn = io.BytesIO()
        Image.new("RGB", (16, 16), "teal").save(drawn, "PNG")
        for number in range(count):  # a few bytes after the end make each another file
            names.append(f"{number // PER_FOLDER:03}/{number:07}.png")
            path = folder / "world" / names[-1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(drawn.getvalue() + number.to_bytes(8))
        write_truth(folder / "world", names, FEATURES)
        url = database.new_store(folder)
        command = [sys.executable, "-m", "benchmarks.enrichment.nights", "--first", str(folder), url]
        subprocess.run([sys.executable, "-c", FILL.format(str(folder), url)], check=True)
        began = time.time()
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        asked: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        seconds = asked["at"] - began
    new = f"{asked['added']:,} of {count:,} pictures are new: the first question after {seconds:.1f} s"
    print(f"\n{new} ({asked['processor']:.1f} of processor); at most {MAX_FIRST:.0f} are wanted.\n", flush=True)
    return [new] if seconds > MAX_FIRST else []


FILL = "from benchmarks.enrichment.nights import fill; from pathlib import Path; fill(Path({!r}), {!r})"


def fill(folder: Path, store: str) -> None:
    """A table in which all pictures are labelled, but one in a hundred."""
    names = [str(path.relative_to(folder / "world")) for path in sorted((folder / "world").glob("*/*.png"))]
    known = [name for number, name in enumerate(names) if number % 100 and number < len(names) - 1]
    aside = folder / "few"
    (aside / Path(known[0]).parent).mkdir(parents=True)
    shutil.copy(folder / "world" / known[0], aside / known[0])
    write_truth(aside, known[:1], FEATURES)
    enrich_with(settings_of(folder, store, "few"))
    table = read_table(folder / "out")
    columns = tuple(Column(one.name, one.definition, 0) for one in table.meaning.columns)
    whole = GrowingTable(Meaning(1, columns, table.meaning.oracle, table.meaning.votes), known)
    digests = b"".join(hashlib.sha256((folder / "world" / name).read_bytes()).digest() for name in known)
    whole.digests = np.frombuffer(digests, np.uint8).reshape(-1, 32)
    whole.versions = np.ones(len(known), np.int32)
    whole.labels = np.random.default_rng(SEED).integers(0, 2, (len(known), FEATURES)).astype(np.int8)
    write_table(folder / "out", whole)


def first_question(folder: Path, store: str) -> dict[str, float]:
    """When the first batch was sent, and the processor time until then."""
    sent: list[tuple[float, float]] = []
    with local_submit(2) as submit:

        def noted(labeller: Labeller, batch: Batch) -> BatchFuture:
            sent.append((time.time(), time.process_time()))
            return submit(labeller, batch)

        added = enrich_with(settings_of(folder, store, "world"), submit=noted).to_json()["added"]
    return {"at": sent[0][0], "processor": sent[0][1], "added": added}


def settings_of(folder: Path, store: str, world: str) -> EnrichSettings:
    return EnrichSettings(
        dataset=str(folder / world),
        features="; ".join(traits(FEATURES)),
        oracle="simulated?price=0.000007",
        store=store,
        out=str(folder / "out"),
    )


def night(folder: Path, store: str) -> dict[str, float]:
    settings = settings_of(folder, store, "world.csv")
    began, used = time.perf_counter(), time.process_time()
    added = enrich_with(settings).to_json()["added"]
    ended, used_by_then = time.perf_counter(), time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": ended - began, "processor": used_by_then - used, "added": added, "peak_mb": peak}


if __name__ == "__main__":
    main()
