"""How the time of a night grows with the labels that are stored: all new, nothing new, one example in a hundred new."""

from __future__ import annotations

import hashlib
import resource
import shutil
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np

from benchmarks.data import PAID_CROWD, traits, write_plain_texts, write_small_pictures, write_traits
from benchmarks.machine import alone, tell
from benchmarks.results import Table
from benchmarks.store.database import Database
from benchmarks.store.growth import FEATURES, MAX_EXPONENT, NEGLIGIBLE
from flows.enrich.batches import Batch, BatchFuture, Labeller
from flows.enrich.flow import enrich_with
from flows.enrich.runners import local_submit
from flows.enrich.settings import EnrichSettings
from reports.enrichment import Column, LabelTable, TableSchema, read_table, write_table

MAX_FIRST = 10.0  # seconds until the first question about new pictures
NIGHTS = ("all new", "nothing new", "1 % new")


def nights(database: Database, sizes: Sequence[int]) -> Table:
    rows, computed, missed = [], [], []
    for labels in sizes:
        tell(f"nights, {labels:,} labels")
        measured = three_nights(database, labels)
        computed.append([figures["processor"] for figures in measured])
        times = [f"{figures['seconds']:.1f}, {figures['processor']:.1f}" for figures in measured]
        rows.append([f"{labels:,}", *times, round(max(figures["peak_mb"] for figures in measured))])
    for (less, more), (before, after) in zip(pairwise(sizes), pairwise(computed), strict=True):
        exponents = [log(new / old) / log(more / less) for old, new in zip(before, after, strict=True)]
        rows.append([f"exponent {less:,} to {more:,}", *(round(exponent, 2) for exponent in exponents), None])
        missed += [
            f"{name}: exponent {exponent:.2f}, {MAX_EXPONENT} is allowed"
            for name, exponent, seconds in zip(NIGHTS, exponents, after, strict=True)
            if exponent > MAX_EXPONENT and seconds > NEGLIGIBLE
        ]
    columns = ["labels stored", *(f"{name}: s, of processor" for name in NIGHTS), "peak MB"]
    return Table(f"Nights, {database.name}", columns, rows, [], missed)


def three_nights(database: Database, labels: int) -> list[dict[str, float]]:
    examples = labels // FEATURES
    more = examples + max(examples // 100, 1)
    measured = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_traits(folder, [f"e{number:08}" for number in range(more)], FEATURES)
        url = database.new_store(folder)
        for known, asked in zip((examples, examples, more), (examples, 0, more - examples), strict=True):
            write_plain_texts(folder, known)
            served = database.served()
            figures = alone(night, folder, url)
            assert figures["added"] == asked, figures
            figures["processor"] += database.served() - served
            measured.append(figures)
    return measured


def first_questions(database: Database, sizes: Sequence[int]) -> Table:
    """Of folders whose last and first pictures, and some between, are new."""
    rows, missed = [], []
    for count in sizes:
        tell(f"first question, {count:,} pictures")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_traits(folder / "world", write_small_pictures(folder / "world", count), FEATURES)
            url = database.new_store(folder)
            alone(fill, folder, url)
            began = time.time()
            asked = alone(ask_first, folder, url)
        seconds = asked["at"] - began
        rows.append([count, int(asked["added"]), round(seconds, 1), round(asked["processor"], 1)])
        if seconds > MAX_FIRST:
            missed.append(f"{count:,} pictures: {seconds:.1f} s, {MAX_FIRST:.0f} are allowed")
    columns = ["pictures", "of these new", "first question after, s", "of processor"]
    return Table(f"First question about new pictures, {database.name}", columns, rows, [], missed)


def fill(folder: Path, store: str) -> None:
    """A table in which all pictures are labelled, but one in a hundred."""
    names = [str(path.relative_to(folder / "world")) for path in sorted((folder / "world").glob("*/*.png"))]
    known = [name for number, name in enumerate(names) if number % 100 and number < len(names) - 1]
    aside = folder / "few"
    (aside / Path(known[0]).parent).mkdir(parents=True)
    shutil.copy(folder / "world" / known[0], aside / known[0])
    write_traits(aside, known[:1], FEATURES)
    enrich_with(settings_of(folder, store, "few"))
    table = read_table(folder / "out")
    columns = tuple(Column(column.name, column.definition, 0) for column in table.table_schema.columns)
    labelled = LabelTable(TableSchema(1, columns, table.table_schema.oracle, table.table_schema.votes), known)
    digests = b"".join(hashlib.sha256((folder / "world" / name).read_bytes()).digest() for name in known)
    labelled.digests = np.frombuffer(digests, np.uint8).reshape(-1, 32)
    labelled.versions = np.ones(len(known), np.int32)
    labelled.labels = np.random.default_rng(0).integers(0, 2, (len(known), FEATURES)).astype(np.int8)
    write_table(folder / "out", labelled)


def ask_first(folder: Path, store: str) -> dict[str, float]:
    """When the first batch was sent, the processor time until then, and how many examples were new."""
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
        oracle=PAID_CROWD,
        store=store,
        out=str(folder / "out"),
    )


def night(folder: Path, store: str) -> dict[str, float]:
    settings = settings_of(folder, store, "world.csv")
    began, used = time.perf_counter(), time.process_time()
    added = enrich_with(settings).to_json()["added"]
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "processor": processor, "added": added, "peak_mb": peak}
