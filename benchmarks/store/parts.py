"""What the store costs: paid labels, its growth, a resume, a backup.

*paid*: every label is claimed and its price reserved, every request of twenty labels is written down before it leaves,
and every answer is stored and booked with its reply. A dozen requests leave at a time, as those of `openai:` do.
Answers are made up, which is not counted. All processes label for one scope.

*growth*: one run has paid for all answers and a second one of the same scope has used them. *Start* is opening the
store, beginning a run, counting the answers and the first claim. Exponents are of processor time; 1 is linear.

*resume*: an enrichment is killed half-way and started again. Its simulated crowd answers at once for a price, so that
all its time is overhead.

*backup*: of a store at rest and while another process claims, answers and books labels without a pause. Every key,
checksum and sum of the copies is checked."""

from __future__ import annotations

import argparse

from benchmarks.results import Table
from benchmarks.store.backup import back_ups
from benchmarks.store.database import databases
from benchmarks.store.growth import growth
from benchmarks.store.paid import paid_labels
from benchmarks.store.resume import resume

PARTS = ("paid", "growth", "resume", "backup")
QUICK = {"labels": 20_000, "processes": [1, 2], "answers": [2_000, 20_000], "examples": 1_000}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--postgresql", action="store_true", help="on a server that is started for it")
    parser.add_argument("--labels", type=int, default=200_000, help="paid: of all processes together")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 4, 8], help="paid")
    parser.add_argument("--in-flight", type=int, default=12, help="paid: requests of a process that leave together")
    parser.add_argument(
        "--answers", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="growth and backup: stored"
    )
    parser.add_argument("--examples", type=int, default=20_000, help="resume: with 20 features each")


def run(options: argparse.Namespace) -> list[Table]:
    tables = []
    with databases(postgresql=options.postgresql) as database:
        if "paid" in options.only:
            tables.append(paid_labels(database, options.labels, options.processes, options.in_flight))
        if "growth" in options.only:
            tables.append(growth(database, options.answers))
        if "resume" in options.only:
            tables.append(resume(database, options.examples))
        if "backup" in options.only:
            tables.append(back_ups(database, options.answers))
    return tables
