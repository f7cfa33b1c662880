"""How often a discovery counts the same feature twice, and how often it takes different features for the same.

A discovery of 35 questions by the lifelike server, which errs in 6 % of the labels and says one name in eight in other
words; with *errors by wording* other words for a feature are labelled with errors of their own. Counted by the
attributes that the server means, with 95 % intervals. In the controls the oracle is not asked whether two features mean
the same: names and labels alone decide. At most 1 in 30 may be counted twice, and 1 % taken for another.

Further matrices are given as CSV files of an id column and 0/1 columns whose names are words."""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

from benchmarks.cases import add_matrices, at_least_one, read_matrix
from benchmarks.machine import tell
from benchmarks.results import Cell, Table
from tests.support.fake_openai import Failings, LifelikeServer
from tests.support.fake_openai.lifelike import LifelikeModel, meaning_of
from twothirds.discovery.statistics import wilson
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.reports import Run
from twothirds.sources import load_dataset

MOST_REPEATED, MOST_MISTAKEN = 1 / 30, 0.01
QUICK = {"seeds": 1, "queries": 8}
SHIPPED = ("datasets/faces", "datasets/zoo")
HABITS = {
    "": Failings(slow=0.0),
    ", errors by wording": Failings(slow=0.0, errs_by_wording=True),
    ", errors by wording, half in other words": Failings(
        slow=0.0, errs_by_wording=True, other_words=0.5, repeats_known=0.2
    ),
}


@dataclass(frozen=True)
class VoteCounts:
    """Counts of one run or of several."""

    counted: int = 0  # features that are interesting and distinct
    repeated: int = 0  # of them, those that mean what an earlier one of them means
    different: int = 0  # features that mean what none before them means
    mistaken: int = 0  # of them, those that were taken for the same as another
    asked: int = 0  # questions whether two mean the same
    labels: int = 0  # that the server was asked for

    def __add__(self, other: VoteCounts) -> VoteCounts:
        mine, theirs = asdict(self), asdict(other)
        return VoteCounts(**{name: mine[name] + theirs[name] for name in mine})


def tally_of(run: Run, mind: LifelikeModel, asked: int, labels: int) -> VoteCounts:
    meanings: dict[str, object] = {}
    counted = repeated = different = mistaken = 0
    seen: set[object] = set()
    for row in run.features.itertuples():
        name = str(row.name)
        column = mind.column_of(name, str(row.definition))
        meaning = meaning_of(name) if column is None else column
        if meaning not in meanings.values():
            different += 1
            mistaken += str(row.twin).startswith("same as ")
        meanings[name] = meaning
        if row.interesting and row.distinct:
            counted += 1
            repeated += meaning in seen
            seen.add(meaning)
    return VoteCounts(counted, repeated, different, mistaken, asked, labels)


def discovered(
    dataset: str, habits: Failings, seed: int, queries: int, folder: Path, *, asking: bool = True
) -> VoteCounts:
    with LifelikeServer(load_dataset(dataset), habits, seed=seed) as server:
        settings = DiscoverSettings(
            dataset=dataset,
            oracle=f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60",
            ask_same=asking,
            queries=queries,
            seed=seed,
            budget="100",
            store=str(folder / "store.sqlite"),
            out=str(folder / "run"),
        )
        with mock.patch.dict("os.environ", {"XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}):
            prepared = prepare(settings)
            run_discovery(prepared, run_id="run")
        lines = prepared.store.costs.lines("run")
        asked = sum(line.paid_calls for line in lines if line.kind == "same")
        return tally_of(Run(folder / "run"), server.lifelike, asked, server.labels_asked)


@contextmanager
def as_dataset(path: str) -> Iterator[str]:
    """A data set as it is; of a matrix texts that say nothing, with its columns as truth."""
    if not path.endswith(".csv"):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder, Path(path).open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
        kept = [place for place in range(1, len(header)) if all(row[place] in ("0", "1", "") for row in rows)]
        with (Path(folder) / "truth.csv").open("w", newline="", encoding="utf-8") as truth:
            names = [header[place].replace("_", " ") for place in kept]
            csv.writer(truth).writerow(["id", *names])
            csv.writer(truth).writerows([[f"e{n}", *(row[place] for place in kept)] for n, row in enumerate(rows)])
        texts = "".join(f"e{number},the example with the number {number}\n" for number in range(len(rows)))
        (Path(folder) / "examples.csv").write_text(f"id,text\n{texts}", encoding="utf-8")
        yield str(Path(folder) / "examples.csv")


def measured(dataset: str, habits: Failings, seeds: int, queries: int, *, asking: bool = True) -> VoteCounts:
    total = VoteCounts()
    with as_dataset(dataset) as source:
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as folder:
                total += discovered(source, habits, seed, queries, Path(folder), asking=asking)
    return total


def row_of(name: str, counts: VoteCounts) -> list[Cell]:
    def share(part: int, total: int) -> str:
        low, high = wilson(part, total)
        return f"{part} of {total}: {part / max(total, 1):.1%} ({low:.1%} to {high:.1%})"

    repeated, mistaken = share(counts.repeated, counts.counted), share(counts.mistaken, counts.different)
    return [name, repeated, mistaken, counts.asked, counts.labels]


def add_options(parser: argparse.ArgumentParser) -> None:
    add_matrices(parser, seeds=2)
    parser.add_argument("--queries", type=at_least_one, default=35)


def run(options: argparse.Namespace) -> list[Table]:
    for path in options.matrices:
        read_matrix(path)  # raises before anything is run
    rows, total = [], VoteCounts()
    for words, habits in HABITS.items():
        for dataset in (*SHIPPED, *map(str, options.matrices)):
            tell(Path(dataset).stem + words)
            tally = measured(dataset, habits, options.seeds, options.queries)
            total += tally
            rows.append(row_of(Path(dataset).stem + words, tally))
        control = measured(SHIPPED[0], habits, options.seeds, options.queries, asking=False)
        rows.append(row_of(f"control: {Path(SHIPPED[0]).stem}{words}, `--no-ask-same`", control))
    rows.append(row_of("all but the controls", total))
    missed = []
    if total.repeated > MOST_REPEATED * total.counted or total.mistaken > MOST_MISTAKEN * total.different:
        missed.append("more than 1 in 30 counted twice, or more than 1 % taken for another")
    columns = ["data", "counted twice", "different, taken for the same", "questions", "labels"]
    return [Table("The same feature twice", columns, rows, [f"{options.seeds} seeds."], missed)]
