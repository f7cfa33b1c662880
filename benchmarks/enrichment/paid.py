"""How many paid labels a second the store takes, twenty to a request, and how many bytes each of them is.

    python -m benchmarks.enrichment.paid [--labels 200000] [--processes 1 4 8] [--in-flight 12] [--postgresql]

Every label is claimed and its price reserved, every request is written down before it leaves, and every answer is kept
and booked with its reply; the answers are made up, which is not counted. A dozen requests leave at a time, each from a
thread of its own, as those of `openai:` do. Each process labels examples of its own for one scope. `--postgresql`
starts a server of its own, whose processor time counts too."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
from sqlalchemy import text

from benchmarks.enrichment.growth import Database, databases
from benchmarks.machine import heading
from models import Answer, Feature, Label, OracleIdentity, Verdict
from models.keys import QuestionKeys
from models.oracle import Usage
from models.recorded.batch import CLAIMED_AT_ONCE, record_of
from sources import Example
from sources.load import digest_of_text
from store import Request, Store, new_owner, sqlite_file

SEED, PRICE, PER_REQUEST = 0, 7, 20
AT_ONCE = 4 * CLAIMED_AT_ONCE  # labels that an oracle with a dozen requests in flight has claimed at a time
SCOPE = "paid"
IDENTITY = OracleIdentity("openai", "gpt-4o-mini", (("prompts", "2"),))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--labels", type=int, default=200_000, help="of all processes together")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--in-flight", type=int, default=12, help="requests of a process that leave at the same time")
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        url, first, last = options.work
        print(json.dumps(work(url, int(first), int(last), options.in_flight)))
        return
    print(heading(" ".join(["python -m benchmarks.enrichment.paid", *sys.argv[1:]]), SEED))
    print(
        "| processes | labels | seconds | labels/s | µs of a core per label | of it the database's | bytes per label |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|")
    with databases(options.postgresql) as database:
        for processes in options.processes:
            measure(database, processes, options.labels, options.in_flight)


def measure(database: Database, processes: int, labels: int, in_flight: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = database.new_store(Path(folder))
        with Store.open(url) as store:
            begin(store, "first")
        ends = np.linspace(0, labels // PER_REQUEST, processes + 1).astype(int).tolist()
        began, served = time.perf_counter(), database.processor() - time.process_time()
        command = [sys.executable, "-m", "benchmarks.enrichment.paid", "--in-flight", str(in_flight), "--work", url]
        started = [
            subprocess.Popen([*command, str(first), str(last)], stdout=subprocess.PIPE, text=True)
            for first, last in pairwise(ends)
        ]
        measured = [json.loads(one.communicate()[0].splitlines()[-1]) for one in started]
        seconds = max(one["ended"] for one in measured) - min(one["began"] for one in measured)
        served = database.processor() - time.process_time() - served
        assert time.perf_counter() - began >= seconds
        used = sum(one["processor"] for one in measured) + served
        each = size_of(url) / labels
    cells = (f"{labels / seconds:,.0f}", f"{1e6 * used / labels:.1f}", f"{1e6 * served / labels:.1f}", f"{each:.0f}")
    print(f"| {processes} | {labels:,} | {seconds:.1f} | {' | '.join(cells)} |", flush=True)


def begin(store: Store, run_id: str) -> None:
    store.runs.begin(run_id, SCOPE, name=run_id, flow="enrich", dataset="d", oracle=str(IDENTITY), settings={})


def work(url: str, first: int, last: int, in_flight: int = 1) -> dict[str, float]:
    """Label these examples."""
    dice, by, about, made_up = np.random.default_rng([SEED, first]), str(IDENTITY), IDENTITY.to_json(), 0.0
    with Store.open(url) as store, ThreadPoolExecutor(in_flight) as threads:
        run_id, owner = f"of {first}", new_owner()
        begin(store, run_id)

        def leave(keys: list[str]) -> None:
            assert store.claims.mark_leaving(owner, dict.fromkeys(keys, PRICE)) == set(keys)

        began, used = time.time(), time.process_time()
        for asked in batches(first, last):
            before = time.process_time()
            said = answers(asked, dice)
            made_up += time.process_time() - before
            requests = [Request(key, PRICE, by, "label") for key in asked]
            terms = {"owner": owner, "lease_seconds": 900.0, "budget": None}
            granted = store.claims.claim(run_id, SCOPE, requests, **terms).granted  # type: ignore[arg-type]
            keys = list(asked)
            list(threads.map(leave, (keys[start : start + PER_REQUEST] for start in range(0, len(keys), PER_REQUEST))))
            records = [record_of(said[key], key, granted[key], asked[key].content, by, about) for key in keys]
            store.answers.record(run_id, records)
        return {"began": began, "ended": time.time(), "processor": time.process_time() - used - made_up}


def batches(first: int, last: int) -> Iterator[dict[str, Label]]:
    keys = QuestionKeys(IDENTITY)
    features = [Feature(f"trait {number}", f"It has trait {number}.") for number in range(PER_REQUEST)]
    for start in range(first, last, AT_ONCE // PER_REQUEST):
        numbers = range(start, min(start + AT_ONCE // PER_REQUEST, last))
        examples = [Example(f"e{number}", digest_of_text(str(number))) for number in numbers]
        yield {keys.of(one): one for one in (Label(feature, example) for example in examples for feature in features)}


def answers(asked: dict[str, Label], dice: np.random.Generator) -> dict[str, Answer]:
    """As a model with log-probabilities gives them: every probability is another one."""
    chances = dice.random(len(asked)).tolist()
    said = {}
    for place, ((key, question), chance) in enumerate(zip(asked.items(), chances, strict=True)):
        yes = chance > 0.5
        raw = json.dumps({f"feature_{place % PER_REQUEST + 1}": yes})
        usage = Usage(int(place % PER_REQUEST == 0), 140, 5)
        verdict = Verdict.YES if yes else Verdict.NO
        more = {"usage": usage, "cost": PRICE, "seconds": 0.73, "raw": raw}
        said[key] = Answer(question, verdict, str(IDENTITY), probability=chance, **more)  # type: ignore[arg-type]
    return said


def size_of(url: str) -> float:
    """Bytes of the file, or of all tables with their indexes."""
    file = sqlite_file(url)
    if file is not None:
        return file.stat().st_size
    with Store.open(url) as store, store.engine.connect() as connection:
        tables = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'"
        of_ours = f"{tables} AND relnamespace = current_schema()::regnamespace"
        return float(connection.execute(text(of_ours)).scalar_one())


if __name__ == "__main__":
    main()
