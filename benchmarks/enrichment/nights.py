"""How the time of a night grows with the labels that are kept: all new, nothing new, one example in a hundred new.

    python -m benchmarks.enrichment.nights [--labels 10000 100000] [--postgresql]

Each of the nights is a process of its own, with a simulated crowd that answers at once for a price, so that every
label is claimed, booked and kept and all the time is overhead. Growth is judged by processor time, that of the
database server included."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from math import log
from pathlib import Path

from benchmarks.enrichment.__main__ import SEED, traits, write_texts, write_truth
from benchmarks.enrichment.growth import FEATURES, MAX_EXPONENT, NEGLIGIBLE, Database, databases
from benchmarks.machine import heading
from flows.enrich.flow import enrich_with
from flows.enrich.settings import EnrichSettings

NIGHTS = ("all new", "nothing new", "1 % new")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--labels", type=int, nargs="+", default=[10_000, 100_000], help="1000000 takes minutes")
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--night", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.night:
        print(json.dumps(night(Path(options.night[0]), options.night[1])))
        return
    print(heading(" ".join(["python -m benchmarks.enrichment.nights", *sys.argv[1:]]), SEED))
    print(f"| labels kept | {' | '.join(f'{name}: s, of processor' for name in NIGHTS)} | peak MB |")
    print(f"|---:|{'---:|' * (len(NIGHTS) + 1)}")
    with databases(options.postgresql) as database:
        found = [nights(database, labels) for labels in options.labels]
    missed = []
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


def night(folder: Path, store: str) -> dict[str, float]:
    settings = EnrichSettings(
        dataset=str(folder / "world.csv"),
        features="; ".join(traits(FEATURES)),
        oracle="simulated?price=0.000007",
        store=store,
        out=str(folder / "out"),
    )
    began, used = time.perf_counter(), time.process_time()
    added = enrich_with(settings).to_json()["added"]
    ended, used_by_then = time.perf_counter(), time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": ended - began, "processor": used_by_then - used, "added": added, "peak_mb": peak}


if __name__ == "__main__":
    main()
