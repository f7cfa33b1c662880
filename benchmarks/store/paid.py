"""How many paid labels a second the store takes, twenty to a request, and how many bytes each of them is."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sqlalchemy import text

from benchmarks.machine import tell
from benchmarks.results import Cell, Table
from benchmarks.store.database import Database
from models import Answer, Feature, Label, OracleIdentity, Verdict
from models.keys import QuestionKeys
from models.oracle import Usage
from models.recorded import CLAIMED_AT_ONCE, record_of
from sources import Example
from sources.dataset import digest_of_content
from store import Request, Store, new_owner, sqlite_file

SEED, PRICE, PER_REQUEST = 0, 7, 20
AT_ONCE = 4 * CLAIMED_AT_ONCE  # labels that an oracle with a dozen requests in flight has claimed at a time
SCOPE = "paid"
IDENTITY = OracleIdentity("openai", "gpt-4o-mini", (("prompts", "2"),))


COLUMNS = ["processes", "labels", "seconds", "labels/s", "µs of a core per label", "of it the server's"]
COLUMNS += ["bytes per label"]


def paid_labels(database: Database, labels: int, processes: Sequence[int], in_flight: int) -> Table:
    rows = []
    for count in processes:
        tell(f"paid labels, {count} processes")
        rows.append(measure(database, count, labels, in_flight))
    return Table(f"Paid labels, {database.name}", COLUMNS, rows)


def measure(database: Database, processes: int, labels: int, in_flight: int) -> list[Cell]:
    with tempfile.TemporaryDirectory() as folder:
        url = database.new_store(Path(folder))
        with Store.open(url) as store:
            begin(store, "first")
        ends = np.linspace(0, labels // PER_REQUEST, processes + 1).astype(int).tolist()
        served = database.served()
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            futures = [pool.submit(work, url, first, last, in_flight) for first, last in pairwise(ends)]
            measured = [future.result() for future in futures]
        seconds = max(part["ended"] for part in measured) - min(part["began"] for part in measured)
        served = database.served() - served
        used = sum(part["processor"] for part in measured) + served
        size = size_of(url) / labels
    each = [round(1e6 * used / labels, 1), round(1e6 * served / labels, 1)]
    return [processes, labels, round(seconds, 1), round(labels / seconds), *each, round(size)]


def begin(store: Store, run_id: str) -> None:
    store.runs.begin(run_id, SCOPE, name=run_id, flow="enrich", dataset="d", oracle=str(IDENTITY), settings={})


def work(url: str, first: int, last: int, in_flight: int = 1) -> dict[str, float]:
    """Label these examples."""
    dice, by, identity, made_up = np.random.default_rng([SEED, first]), str(IDENTITY), IDENTITY.to_json(), 0.0
    with Store.open(url) as store, ThreadPoolExecutor(in_flight) as threads:
        run_id, owner = f"of {first}", new_owner()
        begin(store, run_id)

        def leave(keys: list[str]) -> None:
            assert store.claims.mark_leaving(owner, dict.fromkeys(keys, PRICE)) == set(keys)

        began, used = time.time(), time.process_time()
        for asked in batches(first, last):
            before = time.process_time()
            replies = make_answers(asked, dice)
            made_up += time.process_time() - before
            requests = [Request(key, PRICE, by, "label") for key in asked]
            terms = {"owner": owner, "lease_seconds": 900.0, "budget": None}
            granted = store.claims.claim(run_id, SCOPE, requests, **terms).granted  # type: ignore[arg-type]
            keys = list(asked)
            list(threads.map(leave, (keys[start : start + PER_REQUEST] for start in range(0, len(keys), PER_REQUEST))))
            records = [record_of(replies[key], key, granted[key], asked[key].content, by, identity) for key in keys]
            store.answers.record(run_id, records)
        return {"began": began, "ended": time.time(), "processor": time.process_time() - used - made_up}


def batches(first: int, last: int) -> Iterator[dict[str, Label]]:
    keys = QuestionKeys(IDENTITY)
    features = [Feature(f"trait {number}", f"It has trait {number}.") for number in range(PER_REQUEST)]
    for start in range(first, last, AT_ONCE // PER_REQUEST):
        numbers = range(start, min(start + AT_ONCE // PER_REQUEST, last))
        examples = [Example(f"e{number}", digest_of_content(str(number), None)) for number in numbers]
        yield {
            keys.of(label): label for label in (Label(feature, example) for example in examples for feature in features)
        }


def make_answers(asked: dict[str, Label], dice: np.random.Generator) -> dict[str, Answer]:
    """As a model with log-probabilities gives them: every probability is another one."""
    chances = dice.random(len(asked)).tolist()
    answers = dict[str, Answer]()
    for place, ((key, question), chance) in enumerate(zip(asked.items(), chances, strict=True)):
        yes = chance > 0.5
        raw = json.dumps({f"feature_{place % PER_REQUEST + 1}": yes})
        usage = Usage(int(place % PER_REQUEST == 0), 140, 5)
        verdict = Verdict.YES if yes else Verdict.NO
        more = {"usage": usage, "cost": PRICE, "seconds": 0.73, "raw": raw}
        answers[key] = Answer(question, verdict, str(IDENTITY), probability=chance, **more)  # type: ignore[arg-type]
    return answers


def size_of(url: str) -> float:
    """Bytes of the file, or of all tables with their indexes."""
    file = sqlite_file(url)
    if file is not None:
        return file.stat().st_size
    with Store.open(url) as store, store.engine.connect() as connection:
        tables = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'"
        of_ours = f"{tables} AND relnamespace = current_schema()::regnamespace"
        return float(connection.execute(text(of_ours)).scalar_one())
