"""How the time to start, to list the costs and to check a store grows with the answers in it, and what a resume takes.

    python -m benchmarks.enrichment.growth [--answers 10000 100000 1000000] [--examples 20000] [--postgresql]

One run has paid for all answers and a second one of the same scope has used them. For the resume an enrichment is
killed half-way and started again; its simulated crowd answers at once for a price, so that its answers are kept, unless
`--oracle` says otherwise.
`--postgresql` starts a server of its own."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

from benchmarks.enrichment.__main__ import PAID_CROWD, SEED, traits, write_texts, write_truth
from benchmarks.machine import heading
from flows.cli.store_check import check
from flows.enrich.flow import enrich_with
from flows.enrich.settings import EnrichSettings
from flows.progress import Display
from models import Answer, Feature, Label, OracleIdentity, Question, Verdict
from models.keys import QuestionKeys
from models.recorded import record_of
from sources import Example
from sources.load import digest_of_text
from store import Request, Store

SCOPE, PAYER, USER = "the same run", "run-1", "run-2"
FEATURES = 20
BATCH = 8_000
PRICE = 7
MAX_EXPONENT = 1.1  # 1 is linear
MAX_SECONDS = 3.0  # to start and to list the costs
MAX_RESUME = 1.2  # of the time that the undisturbed run takes for what is left
TICK = 0.01  # seconds: the finest that is counted of a server
NEGLIGIBLE = 0.2  # seconds: below that a ratio of two times says nothing
IDENTITY = OracleIdentity("simulated", "growth")
COLUMNS = ("start", "costs", "use 8,000 known answers", "store check")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--answers", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--examples", type=int, default=20_000, help=f"of the resume, with {FEATURES} features each")
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--oracle", default=PAID_CROWD, help="of the resume, such as simulated?latency=0.02")
    parser.add_argument("--enrich", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.enrich:
        folder, name, store, kill = options.enrich
        print(json.dumps(enrich(Path(folder), name, store, options, kill=kill == "kill")))
        return
    print(heading(" ".join(["python -m benchmarks.enrichment.growth", *sys.argv[1:]]), SEED))
    with databases(options.postgresql) as database:
        missed = growing(options.answers, database) if options.answers else []
        missed += resuming(options, database.new_store) if options.examples else []
    if missed:
        raise SystemExit("; ".join(missed))


@dataclass(frozen=True)
class Database:
    new_store: Callable[[Path], str]  # the address of one; files of SQLite are in the folder that is given
    processor: Callable[[], float]  # seconds that this process and the database have computed


@contextmanager
def databases(postgresql: bool) -> Iterator[Database]:
    if not postgresql:
        yield Database(lambda folder: str(folder / f"store-{time.monotonic_ns()}.sqlite"), time.process_time)
        return
    from tests.support.postgres import start_postgres

    server = start_postgres()
    try:
        yield Database(lambda _folder: server.fresh_schema(), lambda: time.process_time() + server.processor_seconds())
    finally:
        server.close()


def growing(sizes: list[int], database: Database) -> list[str]:
    """Times of day are printed; growth is judged by processor time, which other programs hardly change."""
    print(f"| answers kept | {' s | '.join(COLUMNS)} s | of it processor s | answers made a second |")
    print(f"|---:|{'---:|' * (len(COLUMNS) + 2)}")
    found: list[dict[str, float]] = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            url, began = database.new_store(Path(folder)), time.perf_counter()
            fill(url, size)
            made = size / (time.perf_counter() - began)
            seconds, computed = measured(url, size, database.processor)
        found.append(computed)
        times = " | ".join(f"{seconds[name]:.3f}" for name in COLUMNS)
        print(f"| {size:,} | {times} | {computed[COLUMNS[-1]]:.2f} | {made:,.0f} |", flush=True)
        missed = [
            f"{name} takes {seconds[name]:.1f} s, {MAX_SECONDS:.0f} are allowed"
            for name in COLUMNS[:2]
            if seconds[name] > MAX_SECONDS
        ]
    for (less, more), (before, after) in zip(pairwise(sizes), pairwise(found), strict=True):
        exponents = {name: log(after[name] / before[name]) / log(more / less) for name in COLUMNS}
        print(f"| exponent {less:,} to {more:,} | {' | '.join(f'{one:.2f}' for one in exponents.values())} | | |")
        missed += [
            f"{name} grows with exponent {one:.2f}, {MAX_EXPONENT} is allowed"
            for name, one in exponents.items()
            if one > MAX_EXPONENT and after[name] > NEGLIGIBLE
        ]
    return missed


def questions(first: int, last: int) -> list[Question]:
    features = [Feature(name, "It has it.") for name in traits(FEATURES)]
    examples = [Example(f"e{number}", digest_of_text(str(number))) for number in range(first, last, FEATURES)]
    return [Label(feature, example) for example in examples for feature in features]


def fill(url: str, answers: int) -> None:
    """Claimed, answered and used as runs do it, many at a time."""
    with Store.open(url) as store:
        for run in (PAYER, USER):
            store.runs.begin(run, SCOPE, name=run, flow="enrich", dataset="d", oracle=str(IDENTITY), settings={})
        for start in range(0, answers, BATCH):
            answer(store, start, min(start + BATCH, answers))
        if store.engine.dialect.name == "postgresql":  # as its autovacuum does a little later
            with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM ANALYZE")


def answer(store: Store, first: int, last: int) -> None:
    keys, by, identity = QuestionKeys(IDENTITY), str(IDENTITY), IDENTITY.to_json()
    asked = {keys.of(one): one for one in questions(first, last)}
    requests = [Request(key, PRICE, by, "label") for key in asked]
    granted = store.claims.claim(PAYER, SCOPE, requests, **_TERMS, sending=len(asked)).granted
    said = {key: Answer(one, Verdict.YES, by, cost=PRICE) for key, one in asked.items()}
    records = [record_of(one, key, granted[key], one.question.content, by, identity) for key, one in said.items()]
    store.answers.record(PAYER, records)
    store.answers.note_uses(USER, list(asked))


def measured(url: str, answers: int, processor: Callable[[], float]) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds that each takes, the store being opened for it: by the clock, and of processor time."""
    keys = QuestionKeys(IDENTITY)
    known = [keys.of(one) for one in questions(0, BATCH)]

    def start(store: Store) -> None:
        store.runs.begin("run-3", SCOPE, name="3", flow="enrich", dataset="d", oracle="o", settings={})
        assert store.answers.count(SCOPE) == answers
        store.claims.claim("run-3", SCOPE, [Request(keys.of(questions(answers, answers + 1)[0]), 0)], **_TERMS)

    def use(store: Store) -> None:
        store.answers.note_uses("run-3", store.answers.lookup(known))
        store.costs.totals("run-3")

    def look(store: Store) -> None:
        found = check(store)
        assert (found.answers, found.problems) == (answers, [])

    def list_costs(store: Store) -> None:
        store.costs.lines()

    acts = dict(zip(COLUMNS, (start, list_costs, use, look), strict=True))
    seconds, computed = {}, {}
    for name, act in acts.items():
        began, used = time.perf_counter(), processor()
        with Store.open(url) as store:
            act(store)
        seconds[name], computed[name] = time.perf_counter() - began, max(processor() - used, TICK)
    return seconds, computed


_TERMS: dict[str, Any] = {"owner": "starter", "lease_seconds": 1.0, "budget": None}


def resuming(options: argparse.Namespace, new_store: Callable[[Path], str]) -> list[str]:
    examples: int = options.examples
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_texts(folder, examples)
        write_truth(folder, [f"e{number:08}" for number in range(examples)], FEATURES)
        whole = run_enrichment(folder, "whole", new_store(folder), options)
        halved = new_store(folder)
        run_enrichment(folder, "halved", halved, options, kill=True)
        resumed = run_enrichment(folder, "halved", halved, options)
    left = resumed["paid"] / whole["paid"]
    rest = whole["seconds"] * left  # what the undisturbed run took for as many labels
    ratio, of_processor = resumed["seconds"] / rest, resumed["processor"] / (whole["processor"] * left)
    print(f"\nAn enrichment of {examples:,} × {FEATURES} labels, killed half-way and started again:\n")
    print("| run | known | asked | seconds | of processor |\n|---|---:|---:|---:|---:|")
    for name, one in (("undisturbed", whole), ("resumed", resumed)):
        cells = (f"{one['cached']:,.0f}", f"{one['paid']:,.0f}", f"{one['seconds']:.1f}", f"{one['processor']:.1f}")
        print(f"| {name} | {' | '.join(cells)} |")
    print(
        f"\nFor as many labels as were left the undisturbed run took {rest:.1f} s, "
        f"the resumed run {ratio:.2f} times that ({MAX_RESUME} is allowed); of processor time {of_processor:.2f} times."
    )
    return [f"a resume takes {ratio:.2f} times as long, {MAX_RESUME} is allowed"] if ratio > MAX_RESUME else []


def run_enrichment(
    folder: Path, name: str, store: str, asked: argparse.Namespace, *, kill: bool = False
) -> dict[str, float]:
    """In a process of its own, which prints nothing if it is killed."""
    terms = ["--examples", str(asked.examples), "--oracle", asked.oracle]
    options = [*terms, "--enrich", str(folder), name, store, "kill" if kill else "whole"]
    command = [sys.executable, "-m", "benchmarks.enrichment.growth", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if kill:
        assert done.returncode == -signal.SIGKILL, done.returncode
        return {}
    assert done.returncode == 0, done.returncode
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


class HalfWay(Display):
    """Kills the process when so many answers have come."""

    def __init__(self, half: int) -> None:
        self._half = half

    def update(self, done: int, detail: str) -> None:  # noqa: ARG002 (examples are read long before they are answered)
        if int(detail.split()[0].replace(",", "")) >= self._half:  # "1,234 answers, …"
            os.kill(os.getpid(), signal.SIGKILL)


def enrich(folder: Path, name: str, store: str, asked: argparse.Namespace, *, kill: bool) -> dict[str, float]:
    settings = EnrichSettings(
        dataset=str(folder / "world.csv"),
        features="; ".join(traits(FEATURES)),
        oracle=asked.oracle,
        store=store,
        out=str(folder / name),
    )
    display = HalfWay(asked.examples * FEATURES // 2) if kill else Display()
    began, used = time.perf_counter(), time.process_time()
    summary = enrich_with(settings, display=display).to_json()
    ended, used_by_then = time.perf_counter(), time.process_time()
    return {
        "seconds": ended - began,
        "processor": used_by_then - used,
        "paid": summary["paid_calls"],
        "cached": summary["cached_calls"],
    }


if __name__ == "__main__":
    main()
