"""How the time to start, to list the costs and to check a store grows with the answers in it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

from benchmarks.data import traits
from benchmarks.machine import tell
from benchmarks.results import Table
from benchmarks.store.database import Database
from flows.cli.store_check import check
from models import Answer, Feature, Label, OracleIdentity, Question, Verdict
from models.keys import QuestionKeys
from models.recorded import record_of
from sources import Example
from sources.dataset import digest_of_content
from store import Request, Store

SCOPE, PAYER, USER = "the same run", "run-1", "run-2"
FEATURES = 20
BATCH = 8_000
PRICE = 7
MAX_EXPONENT = 1.1  # 1 is linear
MAX_SECONDS = 3.0  # to start and to list the costs
TICK = 0.01  # seconds: the finest that is counted of a server
NEGLIGIBLE = 0.2  # seconds: below that a ratio of two times says nothing
IDENTITY = OracleIdentity("simulated", "growth")
COLUMNS = ("start", "costs", "use 8,000 stored answers", "store check")
_TERMS: dict[str, Any] = {"owner": "starter", "lease_seconds": 1.0, "budget": None}


def growth(database: Database, sizes: Sequence[int]) -> Table:
    """Growth is judged by processor time, which other programs hardly change."""
    rows, missed, found = [], list[str](), list[dict[str, float]]()
    for size in sizes:
        tell(f"growth, {size:,} answers")
        with tempfile.TemporaryDirectory() as folder:
            url, began = database.new_store(Path(folder)), time.perf_counter()
            fill(url, size)
            made = size / (time.perf_counter() - began)
            seconds, computed = measured(url, size, database)
        found.append(computed)
        times = [round(seconds[name], 3) for name in COLUMNS]
        rows.append([f"{size:,}", *times, round(computed[COLUMNS[-1]], 2), round(made)])
        slow = [name for name in COLUMNS[:2] if seconds[name] > MAX_SECONDS]
        missed += [f"{name} takes {seconds[name]:.1f} s, {MAX_SECONDS:.0f} are allowed" for name in slow]
    for (less, more), (before, after) in zip(pairwise(sizes), pairwise(found), strict=True):
        exponents = {name: log(after[name] / before[name]) / log(more / less) for name in COLUMNS}
        rows.append(
            [f"exponent {less:,} to {more:,}", *(round(exponent, 2) for exponent in exponents.values()), None, None]
        )
        missed += [
            f"{name} grows with exponent {exponent:.2f}, {MAX_EXPONENT} is allowed"
            for name, exponent in exponents.items()
            if exponent > MAX_EXPONENT and after[name] > NEGLIGIBLE
        ]
    columns = ["answers stored", *(f"{name} s" for name in COLUMNS), "of it processor s", "answers made a second"]
    return Table(f"Growth, {database.name}", columns, rows, [], missed)


def questions(first: int, last: int) -> list[Question]:
    features = [Feature(name, "It has it.") for name in traits(FEATURES)]
    examples = [Example(f"e{number}", digest_of_content(str(number), None)) for number in range(first, last, FEATURES)]
    return [Label(feature, example) for example in examples for feature in features]


def fill(url: str, answers: int) -> None:
    """Claimed, answered and used as runs do it, many at a time."""
    with Store.open(url) as store:
        for run in (PAYER, USER):
            store.runs.begin(run, SCOPE, name=run, flow="enrich", dataset="d", oracle=str(IDENTITY), settings={})
        for start in range(0, answers, BATCH):
            answer_batch(store, start, min(start + BATCH, answers))
        if store.engine.dialect.name == "postgresql":  # as its autovacuum does a little later
            with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM ANALYZE")


def answer_batch(store: Store, first: int, last: int) -> None:
    keys, by, identity = QuestionKeys(IDENTITY), str(IDENTITY), IDENTITY.to_json()
    asked = {keys.of(question): question for question in questions(first, last)}
    requests = [Request(key, PRICE, by, "label") for key in asked]
    granted = store.claims.claim(PAYER, SCOPE, requests, **_TERMS, sending=len(asked)).granted
    answers = {key: Answer(question, Verdict.YES, by, cost=PRICE) for key, question in asked.items()}
    records = [
        record_of(answer, key, granted[key], answer.question.content, by, identity) for key, answer in answers.items()
    ]
    store.answers.record(PAYER, records)
    store.answers.note_uses(USER, list(asked))


def measured(url: str, answers: int, database: Database) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds that each takes, the store being opened for it: by the clock, and of processor time."""
    keys = QuestionKeys(IDENTITY)
    known = [keys.of(question) for question in questions(0, BATCH)]

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
        began, used = time.perf_counter(), time.process_time() + database.served()
        with Store.open(url) as store:
            act(store)
        seconds[name] = time.perf_counter() - began
        computed[name] = max(time.process_time() + database.served() - used, TICK)
    return seconds, computed
