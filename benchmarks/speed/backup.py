"""How long a backup takes, with nothing else going on and while a run writes, and how much slower that run gets.

    python -m benchmarks.speed.backup [--answers 100000 1000000] [--postgresql]

The run is another process that claims, answers and books labels without a pause. The copy must be sound: every key,
checksum and sum of it is checked."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.enrichment.growth import FEATURES, IDENTITY, PRICE, databases, fill, questions
from benchmarks.machine import heading
from flows.cli.store_check import check
from models import Answer, Verdict
from models.keys import QuestionKeys
from models.recorded import record_of
from store import Request, Store, back_up

BATCH = 10 * FEATURES
SECONDS_ALONE = 3.0  # in which the run is measured without a backup


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--answers", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.write[0], int(options.write[1]))
        return
    print(heading(" ".join(["python -m benchmarks.speed.backup", *sys.argv[1:]])))
    print("| answers | MB | idle, s | MB/s | while a run writes, s | labels/s of the run alone | during the backup |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    with databases(options.postgresql) as database:
        for answers in options.answers:
            with tempfile.TemporaryDirectory() as folder:
                url = database.new_store(Path(folder))
                fill(url, answers)
                measure(url, answers, Path(folder))


def measure(url: str, answers: int, folder: Path) -> None:
    with Store.open(url) as store:
        idle = timed(store, folder / "idle.sqlite")
        with writing(url, answers):
            before, began = store.answers.count(), time.perf_counter()
            time.sleep(SECONDS_ALONE)
            alone = (store.answers.count() - before) / (time.perf_counter() - began)
            before = store.answers.count()
            busy = timed(store, folder / "busy.sqlite")
            during = (store.answers.count() - before) / busy
    for name, least in (("idle.sqlite", answers), ("busy.sqlite", before)):
        with Store.open(str(folder / name)) as copy:
            found = check(copy)
            assert not found.problems, found.problems
            assert found.answers >= least
    size = (folder / "idle.sqlite").stat().st_size / 1e6
    cells = (f"{size:,.0f}", f"{idle:.2f}", f"{size / idle:,.0f}", f"{busy:.2f}", f"{alone:,.0f}", f"{during:,.0f}")
    print(f"| {answers:,} | {' | '.join(cells)} |", flush=True)


def timed(store: Store, path: Path) -> float:
    began = time.perf_counter()
    back_up(store, path, lambda _done, _total: None)
    return time.perf_counter() - began


@contextmanager
def writing(url: str, answers: int) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.speed.backup", "--write", url, str(answers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline(), "the run did not begin"
        yield
    finally:
        process.terminate()
        process.wait()


def write(url: str, begin: int) -> None:
    """Label after label that the store does not have, until this process is ended."""
    first = begin
    keys, by, identity = QuestionKeys(IDENTITY), str(IDENTITY), IDENTITY.to_json()
    with Store.open(url) as store:
        store.runs.begin("writer", "another scope", name="w", flow="enrich", dataset="d", oracle=by, settings={})
        while True:
            asked = {keys.of(one): one for one in questions(first, first + BATCH)}
            requests = [Request(key, PRICE, by, "label") for key in asked]
            claimed = store.claims.claim(
                "writer", "another scope", requests, owner="writer", lease_seconds=600, budget=None, sending=BATCH
            )
            said = {key: Answer(one, Verdict.YES, by, cost=PRICE) for key, one in asked.items()}
            fences = claimed.granted
            records = [
                record_of(one, key, fences[key], one.question.content, by, identity) for key, one in said.items()
            ]
            store.answers.record("writer", records)
            if first == begin:
                print("it writes", flush=True)
            first += BATCH


if __name__ == "__main__":
    main()
