"""Attributes with values on data whose truth is known.

    python -m benchmarks.discovery.attributes [--seeds N] [--simulated]

The labels of a run are what a lifelike model (or a simulated crowd) with 6 % wrong labels says of every column of the
truth that at least a tenth of the examples have. Families are then found, named and asked of the same oracle. Counted
are the examples whose value is that of the truth, of families that the truth has; and families made of columns that do
not exclude one another. The independent data set is made up: its columns are drawn one by one, whatever their names."""

from __future__ import annotations

import argparse
import csv
import random
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import heading
from flows.runs import attributes
from models.prices import Price
from reports import Run
from sources import Dataset, load_dataset
from tests.support.fake_openai import Habits, LifelikeServer
from tests.support.run_folders import make_run

PRICE = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))
LEAST = 0.1  # of the examples have a column that a run would have found
WRONG = 0.06


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=3, help="from 0 on")
    options.add_argument("--simulated", action="store_true", help="a simulated crowd instead of the lifelike server")
    options.add_argument("--datasets", nargs="+", default=["datasets/faces", "datasets/zoo", "independent"])
    chosen = options.parse_args()
    which = f"--seeds {chosen.seeds}" + (" --simulated" if chosen.simulated else "")
    print(heading(f"python -m benchmarks.discovery.attributes {which}", seed=0))
    print("\n| data set | seed | family | values | asked | right | label error | likely USD | USD |")
    print("|---|---|---|---|---|---|---|---|---|")
    for spec in chosen.datasets:
        for seed in range(chosen.seeds):
            with tempfile.TemporaryDirectory() as folder:
                measure(spec, seed, Path(folder), simulated=chosen.simulated)


def measure(spec: str, seed: int, folder: Path, *, simulated: bool) -> None:
    dataset = load_dataset(independent(folder / "made", seed) if spec == "independent" else spec)
    assert dataset.truth is not None
    with LifelikeServer(dataset, Habits(label_noise=WRONG, slow=0.0), price=PRICE, seed=seed) as server:
        mind, dice = server.lifelike, random.Random(seed)
        truth = dataset.truth.matrix
        columns = [c for c in range(truth.shape[1]) if (truth[:, c] == 1).mean() >= LEAST]
        rows = range(len(dataset.examples))
        said = np.array([[mind.seen(row, column, dice) for row in rows] for column in columns], np.int8)
        model = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60,0.075"
        oracle = f"simulated?flip={WRONG}" if simulated else model
        run = run_of(dataset, folder / "run", columns, said, {"oracle": oracle, "seed": seed})
        result = attributes(run, confirmed=True)
        spent = 0 if simulated else server.spent(PRICE) / 1e6
    made = Run(run.folder).findings.attributes
    for one in made:
        values = [dataset.truth.columns.index(value.name) for value in one.values]
        right = share_right(one.codes, truth[:, values])
        figures = f"{one.asked} | {right:.0%} | {one.error:.1%} | {result.data['likely_usd']:.2f} | {spent:.2f}"
        print(f"| {spec} | {seed} | {one.name} | {len(one.values)} | {figures} |", flush=True)
    if not made:
        print(f"| {spec} | {seed} | none | | | | | {result.data.get('likely_usd', 0):.2f} | {spent:.2f} |", flush=True)


def share_right(codes: NDArray[np.int64], truth: NDArray[np.int8]) -> float:
    """Of the examples that have one of the values at most; those with several count as wrong."""
    having = (truth == 1).sum(axis=1)
    true = np.where(having == 1, (truth == 1).argmax(axis=1), np.where(having == 0, truth.shape[1], -2))
    return float((codes == true).mean())


def run_of(
    dataset: Dataset, folder: Path, columns: list[int], labels: NDArray[np.int8], settings: dict[str, object]
) -> Run:
    assert dataset.truth is not None
    names = [dataset.truth.columns[column] for column in columns]
    meanings = [f"The example shows {name}." for name in names]
    ids = [example.id for example in dataset.examples]
    run = make_run(folder, dataset.spec, ids, names, labels, definitions=meanings, votes=1, divided=0.0)
    changed = {"replace": True, "votes": 1, "store": str(folder.parent / "store.sqlite")} | settings
    summary = run.summary.model_copy(update={"settings": run.summary.settings | changed})
    (folder / "run.json").write_text(summary.model_dump_json())
    return Run(folder)


def independent(folder: Path, seed: int, examples: int = 120) -> str:
    """Names that look like values of one attribute, and columns that know nothing of each other."""
    rng = np.random.default_rng(seed)
    names = [f"{colour} {thing}" for thing in ("flag", "door", "hat") for colour in ("red", "blue", "green", "white")]
    matrix = (rng.random((examples, len(names))) < rng.uniform(0.2, 0.5, len(names))).astype(int)
    folder.mkdir(parents=True)
    tables = {"texts.csv": ["text"], "truth.csv": names}
    for file, header in tables.items():
        with (folder / file).open("w", newline="") as opened:
            rows = csv.writer(opened)
            rows.writerow(["id", *header])
            for number, row in enumerate(matrix.tolist()):
                rows.writerow([f"t{number}", *([f"text number {number}"] if file == "texts.csv" else row)])
    return str(folder / "texts.csv")


if __name__ == "__main__":
    main()
