"""How long a backup takes, of a store at rest and while a run writes, and how much slower that run gets."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.machine import tell
from benchmarks.results import Cell, Table
from benchmarks.store.database import Database
from benchmarks.store.growth import FEATURES, IDENTITY, PRICE, fill, questions
from flows.cli.store_check import check
from models import Answer, Verdict
from models.keys import QuestionKeys
from models.recorded import record_of
from store import Request, Store, back_up

BATCH = 10 * FEATURES
SECONDS_ALONE = 3.0  # in which the run is measured without a backup
PATIENCE = 120.0  # seconds until the run has begun to write
COLUMNS = ["answers", "MB", "at rest, s", "MB/s", "while a run writes, s", "labels/s of the run alone"]
COLUMNS += ["during the backup"]


def back_ups(database: Database, sizes: Sequence[int]) -> Table:
    rows = []
    for answers in sizes:
        tell(f"backup, {answers:,} answers")
        with tempfile.TemporaryDirectory() as folder:
            url = database.new_store(Path(folder))
            fill(url, answers)
            rows.append(measure(url, answers, Path(folder)))
    return Table(f"Backup, {database.name}", COLUMNS, rows)


def measure(url: str, answers: int, folder: Path) -> list[Cell]:
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
    rates = [round(alone), round(during)]
    return [answers, round(size), round(idle, 2), round(size / idle), round(busy, 2), *rates]


def timed(store: Store, path: Path) -> float:
    began = time.perf_counter()
    back_up(store, path, lambda _done, _total: None)
    return time.perf_counter() - began


@contextmanager
def writing(url: str, answers: int) -> Iterator[None]:
    context = get_context("spawn")
    started = context.Event()
    process = context.Process(target=write, args=(url, answers, started))
    process.start()
    try:
        assert started.wait(PATIENCE), "the run did not begin"
        yield
    finally:
        process.terminate()
        process.join()


def write(url: str, begin: int, started: Event) -> None:
    """Label after label that the store does not have, until this process is ended."""
    first = begin
    keys, by, identity = QuestionKeys(IDENTITY), str(IDENTITY), IDENTITY.to_json()
    with Store.open(url) as store:
        store.runs.begin("writer", "another scope", name="w", flow="enrich", dataset="d", oracle=by, settings={})
        while True:
            asked = {keys.of(question): question for question in questions(first, first + BATCH)}
            requests = [Request(key, PRICE, by, "label") for key in asked]
            claimed = store.claims.claim(
                "writer", "another scope", requests, owner="writer", lease_seconds=600, budget=None, sending=BATCH
            )
            answers = {key: Answer(question, Verdict.YES, by, cost=PRICE) for key, question in asked.items()}
            fences = claimed.granted
            records = [
                record_of(answer, key, fences[key], answer.question.content, by, identity)
                for key, answer in answers.items()
            ]
            store.answers.record("writer", records)
            if first == begin:
                started.set()
            first += BATCH
