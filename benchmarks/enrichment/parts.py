"""How fast an enrichment labels, and how its time grows with the labels that are stored.

*local*: drawn faces labelled with the shipped model by a script of twenty lines and by `enrich`, the whole command with
a new store, table and Prefect server. The two tables must be equal.

*nights*: a table is enriched three times: everything is new, nothing is, one example in a hundred is. A simulated crowd
answers at once for a price, so that every label is claimed, booked and stored and all the time is overhead. Each night
is a process of its own; growth is judged by processor time, that of the database server included.

*first*: of a folder of pictures one in a hundred is new: how long the first question takes from the start of the
process, without Prefect (see [start](#start)).

*cluster* (only if asked for): pictures that a table names by their paths, labelled in threads and on local clusters of
two processes. A million pictures take about 5 GB of disk and a quarter of an hour for each runner."""

from __future__ import annotations

import argparse

from benchmarks.enrichment.cluster import on_clusters
from benchmarks.enrichment.local import beside_a_script
from benchmarks.enrichment.nights import first_questions, nights
from benchmarks.results import Table
from benchmarks.store.database import databases

PARTS = ("local", "nights", "first", "cluster")
RUNNERS = ("threads", "dask", "ray")
QUICK = {"examples": 300, "rounds": 1, "labels": [2_000, 20_000], "pictures": [1_000]}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS[:3])
    parser.add_argument("--postgresql", action="store_true", help="nights, first: on a server that is started for it")
    parser.add_argument("--examples", type=int, default=10_000, help="local")
    parser.add_argument("--features", type=int, default=30, help="local")
    parser.add_argument("--rounds", type=int, default=3, help="local")
    parser.add_argument("--labels", type=int, nargs="+", default=[10_000, 100_000], help="nights")
    parser.add_argument("--pictures", type=int, nargs="+", default=[100_000], help="first, cluster")
    parser.add_argument("--runners", nargs="+", choices=RUNNERS, default=RUNNERS, help="cluster")


def run(options: argparse.Namespace) -> list[Table]:
    tables = []
    if "local" in options.only:
        tables.append(beside_a_script(options.examples, options.features, options.rounds))
    with databases(postgresql=options.postgresql) as database:
        if "nights" in options.only:
            tables.append(nights(database, options.labels))
        if "first" in options.only:
            tables.append(first_questions(database, options.pictures))
    if "cluster" in options.only:
        tables.append(on_clusters(options.pictures, options.runners))
    return tables
