"""What the store costs: paid labels, its growth, a resume, a backup.

*paid*: every label is claimed and its price reserved, every request is written down before it leaves, and every answer
is stored and booked with its reply. A dozen requests leave at a time, as those of `openai:` do. A request holds all
labels of an example, or, where those are fewer than ten, of so many examples that they are about twenty. Answers are
made up, which is not counted. All processes label for one scope.

*growth*: one run has paid for all answers. *Start* is opening the store, beginning a run, counting the answers and the
first claim. Exponents are of processor time; 1 is linear.

*resume*: an enrichment is killed half-way and started again. Its simulated crowd answers at once for a price, so that
all its time is overhead.

*backup*: of a store at rest and while another process claims, answers and books labels without a pause. Every key,
checksum and sum of the copies is checked."""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from math import log
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
from sqlalchemy import text

from benchmarks.data import PAID_CROWD, traits, write_plain_texts, write_traits
from benchmarks.machine import alone, tell
from benchmarks.results import Cell, Table, rounded
from twothirds.flows.cli.store_check import check
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.events import SILENT, Events, Progressed
from twothirds.models import Answer, Feature, Label, OracleIdentity, Verdict
from twothirds.models.keys import QuestionKeys
from twothirds.models.oracle import Usage
from twothirds.sources import Example
from twothirds.sources.dataset import digest_of_content
from twothirds.store import Granted, Reply, Respondent, Store, Wanted, back_up, new_owner, sqlite_file

MEASURES = ("paid", "growth", "resume", "backup")
QUICK = {"labels": 20_000, "processes": [1, 2], "answers": [2_000, 20_000], "examples": 1_000}
IDENTITY = OracleIdentity("openai", "gpt-4o-mini", (("prompts", "2"),))
SCOPE = "benchmark"
SEED, PRICE, PER_REQUEST = 0, 7, 20
FEATURES = PER_REQUEST  # of an example, which are asked for in one request
AT_ONCE = 256  # labels that an oracle with a dozen requests in flight has claimed at a time
STORED_AT_ONCE = 8_000  # answers, where a store is filled
MAX_EXPONENT = 1.1  # 1 is linear
MAX_SECONDS = 0.3  # to start and to list the costs
MAX_MICROSECONDS, MAX_BYTES = 50.0, 90  # of a core and of the file per paid label, by one process on SQLite
COMPARED, MIN_RATE = 4, 0.7  # processes, of which PostgreSQL must pay for so many labels a second, SQLite being 1
TICK = 0.01  # seconds: the finest that is counted of a server
NEGLIGIBLE = 0.2  # seconds: below that a ratio of two times says nothing
MAX_RATIO = 1.2  # of a resume, to the time that the undisturbed run takes for what is left
SHORT_RUN = 5.0  # seconds: below that the start of a run is most of it
SECONDS_ALONE = 3.0  # in which the run is measured without a backup
PATIENCE = 120.0  # seconds until the run has begun to write


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES)
    parser.add_argument("--postgresql", action="store_true", help="on a server that is started for it")
    parser.add_argument("--labels", type=int, default=200_000, help="paid: of all processes together")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 4, 8], help="paid")
    parser.add_argument("--features", type=int, nargs="+", default=[1, 3, 30], help="paid: labels of an example")
    parser.add_argument("--alone", action="store_true", help="paid: each example has a request of its own")
    parser.add_argument("--in-flight", type=int, default=12, help="paid: requests of a process that leave together")
    parser.add_argument(
        "--answers", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="growth and backup: stored"
    )
    parser.add_argument("--examples", type=int, default=20_000, help="resume: with 20 features each")


def run(options: argparse.Namespace) -> list[Table]:
    tables = []
    with databases(postgresql=options.postgresql) as database:
        if "paid" in options.only:
            tables.append(paid_labels(database, options))
        if "growth" in options.only:
            tables.append(growth(database, options.answers))
        if "resume" in options.only:
            tables.append(resume(database, options.examples))
        if "backup" in options.only:
            tables.append(back_ups(database, options.answers))
    return tables


@dataclass(frozen=True)
class Database:
    name: str
    is_sqlite: bool
    new_store: Callable[[Path], str]  # the address of one; files of SQLite are in the folder that is given
    served: Callable[[], float]  # processor seconds of its server


@contextmanager
def databases(*, postgresql: bool) -> Iterator[Database]:
    """SQLite, or a PostgreSQL server that is started for it."""
    if not postgresql:
        yield Database("SQLite", True, lambda folder: str(folder / f"store-{time.monotonic_ns()}.sqlite"), lambda: 0.0)
        return
    from tests.support.postgres import start_postgres

    server = start_postgres()
    try:
        yield Database("PostgreSQL", False, lambda _folder: server.fresh_schema(), server.processor_seconds)
    finally:
        server.close()


def begin(store: Store, run_id: str, scope: str = SCOPE) -> None:
    store.runs.begin(run_id, scope, name=run_id, flow="enrich", dataset="d", oracle=str(IDENTITY), settings={})


def labels_of(first: int, last: int, features_each: int = FEATURES) -> dict[str, Label]:
    """Of the examples with these numbers, by their keys."""
    keys = QuestionKeys(IDENTITY)
    features = [Feature(name, f"It has {name}.") for name in traits(features_each)]
    examples = [Example(f"e{number}", digest_of_content(str(number), None)) for number in range(first, last)]
    labels = (Label(feature, example) for example in examples for feature in features)
    return {keys.of(label): label for label in labels}


def claimed(
    store: Store, run_id: str, owner: str, keys: Sequence[str], per_request: int = PER_REQUEST
) -> list[Granted]:
    """The requests, each of so many labels."""
    together = (tuple(keys[place : place + per_request]) for place in range(0, len(keys), per_request))
    wanted = [Wanted(part, PRICE * len(part)) for part in together]
    by = Respondent(str(IDENTITY), IDENTITY.to_json())
    return store.requests.claim(run_id, by, wanted, owner=owner, lease_seconds=900.0, budget=None).granted


def leave(store: Store, run_id: str, owner: str, granted: Granted) -> None:
    assert store.requests.send(run_id, owner, {granted.request: granted.booked}, None) == ({granted.request}, False)


def record(store: Store, run_id: str, answers: dict[str, Answer], granted: Sequence[Granted]) -> None:
    replies = []
    for one in granted:
        said = [answers[key] for key in one.keys]
        entries = {at: (answer.question.content, answer.to_json()) for at, answer in enumerate(said)}
        cost = sum(answer.cost for answer in said)
        replies.append(Reply(request=one.request, keys=one.keys, answers=entries, cost=cost, closes=True))
    store.requests.record(run_id, replies)


def answer_batch(store: Store, run_id: str, first: int, last: int) -> list[str]:
    """Label these examples as runs do it; returns the keys of the answers."""
    asked = labels_of(first, last)
    granted = claimed(store, run_id, run_id, list(asked))
    answers = {key: Answer(label, Verdict.YES, str(IDENTITY), cost=PRICE) for key, label in asked.items()}
    record(store, run_id, answers, granted)
    return list(asked)


PAID_COLUMNS = ["labels an example", "labels a request", "processes", "labels", "seconds", "labels/s"]
PAID_COLUMNS += ["µs of a core per label", "of it the server's", "bytes per label"]


@dataclass(frozen=True)
class Paid:
    """What the labels of a measurement are like."""

    features: int  # labels of an example
    per_request: int  # labels of a request
    in_flight: int

    @classmethod
    def of(cls, features: int, in_flight: int, *, alone: bool) -> Paid:
        examples = 1 if alone or features >= PER_REQUEST // 2 else PER_REQUEST // features
        return cls(features, features * examples, in_flight)


def paid_labels(database: Database, options: argparse.Namespace) -> Table:
    rows, missed, notes = list[list[Cell]](), list[str](), list[str]()
    for features in options.features:
        paid = Paid.of(features, options.in_flight, alone=options.alone)
        for number in options.processes:
            tell(f"paid labels, {features} an example, {number} processes")
            row = measure_paid(database, number, options.labels, paid)
            rows.append(row)
            rate, used, _, size = row[-4:]
            if database.is_sqlite and number == 1:
                limits = [("µs of a core", used, MAX_MICROSECONDS), ("bytes", size, MAX_BYTES)]
                above = [(unit, value, most) for unit, value, most in limits if value > most]
                missed += [
                    f"{value} {u} per label at {features} an example, {most} are allowed" for u, value, most in above
                ]
            if not database.is_sqlite and number == COMPARED:
                with databases(postgresql=False) as sqlite:
                    share = rate / measure_paid(sqlite, number, options.labels, paid)[-4]
                said = f"{share:.2f} of the labels a second of SQLite at {features} an example, {number} processes"
                (notes if share >= MIN_RATE else missed).append(said)
    return Table(f"Paid labels, {database.name}", PAID_COLUMNS, rows, notes, missed)


def measure_paid(database: Database, processes: int, labels: int, paid: Paid) -> list[Cell]:
    with tempfile.TemporaryDirectory() as folder:
        url = database.new_store(Path(folder))
        with Store.open(url) as store:
            begin(store, "first")
        ends = np.linspace(0, labels // paid.features, processes + 1).astype(int).tolist()
        served = database.served()
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            futures = [pool.submit(work, url, first, last, paid) for first, last in pairwise(ends)]
            measured = [future.result() for future in futures]
        seconds = max(part["ended"] for part in measured) - min(part["began"] for part in measured)
        served = database.served() - served
        used = sum(part["processor"] for part in measured) + served
        size = size_of(url) / labels
    each = [round(1e6 * used / labels, 1), round(1e6 * served / labels, 1)]
    rates: list[Cell] = [processes, labels, round(seconds, 1), round(labels / seconds)]
    return [paid.features, paid.per_request, *rates, *each, round(size)]


def work(url: str, first: int, last: int, paid: Paid) -> dict[str, float]:
    """Label these examples."""
    dice, made_up, at_once = np.random.default_rng([SEED, first]), 0.0, max(AT_ONCE // paid.features, 1)
    with Store.open(url) as store, ThreadPoolExecutor(paid.in_flight) as threads:
        run_id, owner = f"of {first}", new_owner()
        begin(store, run_id)

        began, used = time.time(), time.process_time()
        for start in range(first, last, at_once):
            asked = labels_of(start, min(start + at_once, last), paid.features)
            before = time.process_time()
            replies = make_answers(asked, dice)
            made_up += time.process_time() - before
            keys = list(asked)
            granted = claimed(store, run_id, owner, keys, paid.per_request)
            list(threads.map(partial(leave, store, run_id, owner), granted))
            record(store, run_id, replies, granted)
        return {"began": began, "ended": time.time(), "processor": time.process_time() - used - made_up}


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


ACTS = ("start", "costs", "use 8,000 stored answers", "store check")


def growth(database: Database, sizes: Sequence[int]) -> Table:
    """Growth is judged by processor time, which other programs hardly change."""
    rows, notes, missed, found = [], list[str](), list[str](), list[dict[str, float]]()
    for size in sizes:
        tell(f"growth, {size:,} answers")
        with tempfile.TemporaryDirectory() as folder:
            url, began = database.new_store(Path(folder)), time.perf_counter()
            fill(url, size)
            made = size / (time.perf_counter() - began)
            seconds, computed = measured(url, size, database)
        found.append(computed)
        times = [round(seconds[name], 3) for name in ACTS]
        rows.append([f"{size:,}", *times, round(computed[ACTS[-1]], 2), round(made)])
        notes += [f"{size:,} answers: {name} takes {computed[name]:.2f} s of processor." for name in ACTS[:3]]
        slow = [name for name in ACTS[:2] if computed[name] > MAX_SECONDS]
        missed += [f"{name} takes {computed[name]:.2f} s of processor, {MAX_SECONDS} are allowed" for name in slow]
    for (less, more), (before, after) in zip(pairwise(sizes), pairwise(found), strict=True):
        exponents = {name: log(after[name] / before[name]) / log(more / less) for name in ACTS}
        rows.append(
            [f"exponent {less:,} to {more:,}", *(round(exponent, 2) for exponent in exponents.values()), None, None]
        )
        missed += [
            f"{name} grows with exponent {exponent:.2f}, {MAX_EXPONENT} is allowed"
            for name, exponent in exponents.items()
            if exponent > MAX_EXPONENT and after[name] > NEGLIGIBLE
        ]
    columns = ["answers stored", *(f"{name} s" for name in ACTS), "of it processor s", "answers made a second"]
    return Table(f"Growth, {database.name}", columns, rows, notes, missed)


def fill(url: str, answers: int) -> None:
    """A run has claimed and paid for so many answers, many at a time."""
    with Store.open(url) as store:
        begin(store, "run-1")
        for start in range(0, answers, STORED_AT_ONCE):
            end = min(start + STORED_AT_ONCE, answers)
            answer_batch(store, "run-1", start // FEATURES, end // FEATURES)
        if store.engine.dialect.name == "postgresql":  # as its autovacuum does a little later
            with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM ANALYZE")


def measured(url: str, answers: int, database: Database) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds that each takes, the store being opened for it: by the clock, and of processor time."""
    known = list(labels_of(0, STORED_AT_ONCE // FEATURES))
    new = next(iter(labels_of(answers, answers + 1)))

    def start(store: Store) -> None:
        begin(store, "run-3")
        assert store.requests.count(SCOPE) == answers
        assert claimed(store, "run-3", "run-3", [new])

    def use(store: Store) -> None:
        assert len(store.requests.lookup(known)) == min(len(known), answers)
        store.costs.note_stored("run-3", str(IDENTITY), {"label": (len(known), PRICE * len(known))})
        store.costs.totals("run-3")

    def look(store: Store) -> None:
        found = check(store)
        assert (found.answers, found.problems) == (answers, [])

    def list_costs(store: Store) -> None:
        store.costs.lines()

    acts = dict(zip(ACTS, (start, list_costs, use, look), strict=True))
    seconds, computed = {}, {}
    for name, act in acts.items():
        began, used = time.perf_counter(), time.process_time() + database.served()
        with Store.open(url) as store:
            act(store)
        seconds[name] = time.perf_counter() - began
        computed[name] = max(time.process_time() + database.served() - used, TICK)
    return seconds, computed


def resume(database: Database, examples: int) -> Table:
    tell(f"resume, {examples:,} examples")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_plain_texts(folder, examples)
        write_traits(folder, [f"e{number:08}" for number in range(examples)], FEATURES)
        undisturbed = alone(enrich, folder, "whole", database.new_store(folder))
        halved = database.new_store(folder)
        killed = get_context("spawn").Process(
            target=enrich, args=(folder, "halved", halved), kwargs={"kill_at": examples * FEATURES // 2}
        )
        killed.start()
        killed.join()
        assert killed.exitcode == -signal.SIGKILL, killed.exitcode
        resumed = alone(enrich, folder, "halved", halved)
    share = resumed["asked"] / undisturbed["asked"]
    rest = undisturbed["seconds"] * share  # what the whole run took for as many labels
    ratio, of_processor = resumed["seconds"] / rest, resumed["processor"] / (undisturbed["processor"] * share)
    rows = [["whole", *rounded(undisturbed.values(), 1)], ["resumed", *rounded(resumed.values(), 1)]]
    note = (
        f"{examples:,} × {FEATURES} labels. For as many labels as were left the whole run took {rest:.1f} s, the "
        f"resumed run {ratio:.2f} times that ({MAX_RATIO} is allowed); of processor time {of_processor:.2f} times."
    )
    missed = [f"a resume takes {ratio:.2f} times as long"] if ratio > MAX_RATIO and rest > SHORT_RUN else []
    columns = ["run", "seconds", "of processor", "labels asked", "stored before"]
    return Table(f"Resume, {database.name}", columns, rows, [note], missed)


class KillAt:
    """Kills the process when so many answers have come."""

    def __init__(self, answers: int) -> None:
        self._answers = answers

    def __call__(self, event: object) -> None:
        """The detail says it: examples are read long before they are answered."""
        if (
            isinstance(event, Progressed) and int(event.detail.split()[0].replace(",", "")) >= self._answers
        ):  # "1,234 answers, …"
            os.kill(os.getpid(), signal.SIGKILL)


def paid_enrichment(dataset: Path, store: str, out: Path) -> EnrichSettings:
    """By a simulated crowd that answers at once for a price, so that all the time is overhead."""
    places = {"dataset": str(dataset), "store": store, "out": str(out)}
    return EnrichSettings(features="; ".join(traits(FEATURES)), oracle=PAID_CROWD, **places)


def enrich(folder: Path, name: str, store: str, kill_at: int | None = None) -> dict[str, float]:
    settings = paid_enrichment(folder / "world.csv", store, folder / name)
    began, used = time.perf_counter(), time.process_time()
    summary = enrich_with(settings, events=SILENT if kill_at is None else Events(KillAt(kill_at))).to_json()
    return {
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - used,
        "asked": summary["paid_calls"],
        "stored": summary["cached_calls"],
    }


BACKUP_COLUMNS = ["answers", "MB", "at rest, s", "MB/s", "while a run writes, s", "labels/s of the run alone"]
BACKUP_COLUMNS += ["during the backup"]


def back_ups(database: Database, sizes: Sequence[int]) -> Table:
    rows = []
    for answers in sizes:
        tell(f"backup, {answers:,} answers")
        with tempfile.TemporaryDirectory() as folder:
            url = database.new_store(Path(folder))
            fill(url, answers)
            rows.append(measure_backup(url, answers, Path(folder)))
    return Table(f"Backup, {database.name}", BACKUP_COLUMNS, rows)


def measure_backup(url: str, answers: int, folder: Path) -> list[Cell]:
    with Store.open(url) as store:
        idle = timed_backup(store, folder / "idle.sqlite")
        with writing(url, answers):
            before, began = store.requests.count(), time.perf_counter()
            time.sleep(SECONDS_ALONE)
            undisturbed = (store.requests.count() - before) / (time.perf_counter() - began)
            before = store.requests.count()
            busy = timed_backup(store, folder / "busy.sqlite")
            during = (store.requests.count() - before) / busy
    for name, least in (("idle.sqlite", answers), ("busy.sqlite", before)):
        with Store.open(str(folder / name)) as copy:
            found = check(copy)
            assert not found.problems, found.problems
            assert found.answers >= least
    size = (folder / "idle.sqlite").stat().st_size / 1e6
    rates = [round(undisturbed), round(during)]
    return [answers, round(size), round(idle, 2), round(size / idle), round(busy, 2), *rates]


def timed_backup(store: Store, path: Path) -> float:
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


def write(url: str, answers: int, started: Event) -> None:
    """Label after label that the store does not have, until this process is ended."""
    with Store.open(url) as store:
        begin(store, "writer", "another scope")
        for first in count(answers // FEATURES, 10):
            answer_batch(store, "writer", first, first + 10)
            started.set()
