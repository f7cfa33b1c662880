"""What benchmarks run on: attribute matrices and synthetic worlds, with a salience-weighted crowd for each."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.rehearsal import TRUTHFUL, Labelling, Rehearsal, rehearse
from benchmarks.worlds import SKEWED, World, binary_tree, independent_features, leafy_tree, skewed_world
from discovery.metrics import interesting_and_distinct
from discovery.questions import UNKNOWN
from discovery.simulation.crowds import Matrix
from discovery.strategies import make_strategy

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = [ROOT / "datasets" / "zoo" / "truth.csv", ROOT / "datasets" / "faces" / "truth.csv"]
SHORT, LONG = 35, 100  # queries


@dataclass(frozen=True)
class Case:
    name: str
    world: Callable[[int], World]  # by seed


class Asker(Protocol):
    def run(self, case: Case, seed: int) -> Rehearsal: ...


@dataclass(frozen=True)
class Variant:
    """A strategy with its options, and how it is put to the crowd."""

    name: str
    strategy: str
    options: tuple[tuple[str, Any], ...] = ()
    batch: int = 1
    one_by_one: bool = False  # each question of a round after the answer to the one before, listing what was named
    voters: int = 1
    labelling: Labelling = TRUTHFUL
    most: int = 1  # features that an answer may hold
    look: bool = False
    look_of: int | None = None  # examples of which those that are compared are a random part
    queries: int = LONG

    def run(self, case: Case, seed: int) -> Rehearsal:
        world = case.world(seed)
        rng, options = np.random.default_rng([seed, 1]), dict(self.options)
        if self.strategy == "auto" and self.most > 1:
            options["most"] = self.most
        strategy = make_strategy(self.strategy, len(world.truth), rng, batch=self.batch, **options)
        return rehearse(
            strategy,
            world.crowd("salience", seed),
            world.truth,
            self.queries,
            np.random.default_rng([seed, 2]),
            batch=self.batch,
            one_by_one=self.one_by_one,
            voters=self.voters,
            labelling=replace(self.labelling, seed=seed),
            most=self.most,
            look=self.look,
            of=self.look_of,
        )


def read_matrix(path: Path) -> Matrix:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read ({error}): give a CSV file of an id and 0/1 columns") from None
    cells = {"0": 0, "1": 1, "": UNKNOWN}
    columns = [i for i in range(1, len(header)) if all(row[i] in cells for row in rows)]
    if not columns:
        raise SystemExit(f"{path} has no column of 0 and 1: give a CSV file with an id column, then 0/1 columns")
    return np.array([[cells[row[i]] for i in columns] for row in rows], dtype=np.int8)


def of_matrix(path: Path) -> Case:
    return _of_world(path.parent.name if path.stem == "truth" else path.stem, World(read_matrix(path)))


def parts_of(path: Path, number: int) -> list[Case]:
    """Random parts of a matrix: 50 to 100 examples, 25 to 280 features; of every three, one has mostly rare features
    and one mostly common ones. Their seeds are [number of the part, 4]."""
    whole, name = read_matrix(path), of_matrix(path).name
    cases = []
    for part in range(number):
        tilt, tilted = [(0.0, "any"), (-0.7, "rare"), (0.7, "common")][part % 3]
        rng = np.random.default_rng([part, 4])
        rows = rng.choice(len(whole), min(int(rng.integers(50, 101)), len(whole)), replace=False)
        share = (whole[rows] == 1).mean(axis=0)
        columns = np.flatnonzero((share > 0) & (share < 1))
        wanted = int(np.exp(rng.uniform(np.log(25), np.log(280))))
        chance = share[columns] ** tilt
        chosen = rng.choice(columns, min(wanted, columns.size * 2 // 3), replace=False, p=chance / chance.sum())
        world = World(whole[np.ix_(rows, chosen)])
        cases.append(_of_world(f"{name}, part {part + 1}, {tilted}", world))
    return cases


def _of_world(name: str, world: World) -> Case:
    return Case(name, lambda seed: world)  # noqa: ARG005


def made_up() -> list[Case]:
    def case(name: str, build: Callable[[np.random.Generator], World]) -> Case:
        return Case(name, lambda seed: build(np.random.default_rng([seed, 3])))

    return [
        *(case(f"like {like}", lambda rng, like=like: skewed_world(like, rng)) for like in SKEWED),  # type: ignore[misc]
        case("binary tree", lambda rng: binary_tree(98, rng)),
        case("balanced tree", lambda rng: binary_tree(98, rng, "balanced")),
        case("leafy tree, degree 4", lambda rng: leafy_tree(40, 4, rng)),
        case("independent, half", lambda rng: independent_features(100, [0.5] * 60, rng)),
        case("independent, sparse", lambda rng: independent_features(100, rng.uniform(0.03, 0.15, 60).tolist(), rng)),
    ]


def found(asker: Asker, case: Case, seeds: int) -> NDArray[np.float64]:
    """Interesting and distinct features after SHORT and after LONG queries, one row per seed.

    Judged by the truth, not by the labels: noise makes duplicates look distinct."""
    counted = []
    for seed in range(seeds):
        history, truth = asker.run(case, seed), case.world(seed).truth
        flags = interesting_and_distinct(truth.T[history.columns])
        good = {column for column, flag in zip(history.columns, flags, strict=True) if flag}
        counted.append([len(good.intersection(history.found_by(queries))) for queries in (SHORT, LONG)])
    return np.array(counted, dtype=np.float64)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_world(folder: Path, truth: Matrix) -> list[str]:
    """A data set of short texts with this truth, as world.csv and truth.csv; returns the names of its features."""
    names = [f"trait {chr(65 + place // 26)}{chr(65 + place % 26)}" for place in range(truth.shape[1])]
    ids = [f"e{number}" for number in range(len(truth))]
    with (folder / "world.csv").open("w", newline="") as world, (folder / "truth.csv").open("w", newline="") as labels:
        csv.writer(world).writerows([("id", "text"), *((name, f"example {name}") for name in ids)])
        csv.writer(labels).writerows([("id", *names), *((ids[row], *truth[row].tolist()) for row in range(len(ids)))])
    return names


def matrix_arguments(module: str, doc: str | None) -> argparse.ArgumentParser:
    """The command line of a benchmark of strategies on matrices."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=(doc or "").split("\n")[0])
    parser.add_argument("matrices", nargs="*", type=Path, help="CSV files, besides those that ship")
    parser.add_argument("--seeds", type=at_least_one, default=24)
    return parser


def at_least_one(text: str) -> int:
    """A number on the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not 1 or more")
    return int(text)
