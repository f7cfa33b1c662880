"""How many interesting and distinct features each strategy finds, on attribute matrices and on made-up worlds.

    python -m benchmarks.strategies                            the matrices that ship, and the worlds
    python -m benchmarks.strategies MATRIX.csv ... --seeds 20  other matrices: an id column, then 0/1 columns

Columns with other values are left out. Crowds are salience-weighted. Every figure is a mean over the seeds."""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import heading
from discovery.crowds import Matrix
from discovery.metrics import interesting_and_distinct
from discovery.questions import UNKNOWN
from discovery.rehearsal import TRUTHFUL, History, Labelling, rehearse
from discovery.strategies import make_strategy
from discovery.worlds import SKEWED, World, binary_tree, independent_features, leafy_tree, skewed_world

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = [ROOT / "datasets" / "zoo" / "truth.csv", ROOT / "datasets" / "faces" / "truth.csv"]
STRATEGIES = ["auto", "adaptive-triple", "adaptive-pair", "random-triple", "tagging"]
SHORT, LONG = 35, 100  # queries


@dataclass(frozen=True)
class Case:
    name: str
    world: Callable[[int], World]  # by seed


@dataclass(frozen=True)
class Variant:
    """A strategy with its options, and how it is put to the crowd."""

    name: str
    strategy: str
    options: tuple[tuple[str, Any], ...] = ()
    batch: int = 1
    voters: int = 1
    labelling: Labelling = TRUTHFUL

    def run(self, case: Case, seed: int) -> History:
        world = case.world(seed)
        strategy = make_strategy(
            self.strategy, len(world.truth), np.random.default_rng([seed, 1]), batch=self.batch, **dict(self.options)
        )
        return rehearse(
            strategy,
            world.crowd("salience", seed),
            world.truth,
            LONG,
            np.random.default_rng([seed, 2]),
            batch=self.batch,
            voters=self.voters,
            labelling=self.labelling,
        )


def read_matrix(path: Path) -> Matrix:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    cells = {"0": 0, "1": 1, "": UNKNOWN}
    columns = [i for i in range(1, len(header)) if all(row[i] in cells for row in rows)]
    if not columns:
        raise SystemExit(f"{path} has no column of 0 and 1: give a CSV file with an id column, then 0/1 columns")
    return np.array([[cells[row[i]] for i in columns] for row in rows], dtype=np.int8)


def of_matrix(path: Path) -> Case:
    world = World(read_matrix(path))
    name = path.parent.name if path.stem == "truth" else path.stem
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


VARIANTS = [
    Variant("Adaptive Triple", "adaptive-triple"),
    Variant("… going on after exhaustion", "adaptive-triple", (("beyond", True),)),
    Variant("… five questions a round", "adaptive-triple", batch=5),
    Variant("… two voters for each question", "adaptive-triple", voters=2),
    Variant("… three voters for each question", "adaptive-triple", voters=3),
    Variant(
        "bandit: unresolved, near, far",
        "auto",
        (("ways", ("unresolved", "near", "far")), ("sample", True), ("forecast", False)),
    ),
    Variant(
        "bandit: unresolved, pair", "auto", (("ways", ("unresolved", "pair")), ("sample", True), ("forecast", False))
    ),
    Variant("auto", "auto"),
    Variant("… without “other than these”", "auto", (("other", False),)),
    Variant("… without forecast", "auto", (("forecast", False),)),
    Variant("… without balance", "auto", (("balance", False),)),
    Variant("… with Thompson sampling", "auto", (("sample", True),)),
    Variant("… without tags", "auto", (("ways", ("unresolved", "triple", "pair")),)),
    Variant("… two of three only", "auto", (("ways", ("unresolved", "triple")),)),
    Variant("… with near and far too", "auto", (("ways", ("unresolved", "near", "far", "triple", "pair", "tag")),)),
    Variant("… five questions a round", "auto", batch=5),
]
NOISE = [
    Variant(
        f"{strategy}, {flip:.0%} flips, {votes} vote{'s' if votes > 1 else ''}",
        strategy,
        labelling=Labelling(flip, votes),
    )
    for strategy in ("auto", "adaptive-triple")
    for flip in (0.1, 0.2)
    for votes in (1, 5)
]


def found(variant: Variant, case: Case, seeds: int) -> tuple[float, float]:
    """Interesting and distinct features after SHORT and after LONG queries."""
    histories = [variant.run(case, seed) for seed in range(seeds)]
    return tuple(float(np.mean([h.interesting_distinct(q) for h in histories])) for q in (SHORT, LONG))  # type: ignore[return-value]


def ceiling(case: Case) -> int:
    """How many features of the first world count when all are found, the most frequent first."""
    truth = case.world(0).truth
    order = np.argsort(-(truth == 1).sum(axis=0), kind="stable")
    return sum(interesting_and_distinct(truth.T[order]))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def compare(cases: Sequence[Case], seeds: int) -> str:
    rows, ratios = [], []
    for case in cases:
        results = {name: found(Variant(name, name), case, seeds) for name in STRATEGIES}
        others = np.max([results[name] for name in STRATEGIES[1:]], axis=0)
        of_best = np.divide(results["auto"], others)
        ratios.append((of_best, np.divide(results["auto"], results["adaptive-triple"])))
        shape = "{} × {}".format(*case.world(0).truth.shape)
        figures = [f"{short:.1f} / {long:.1f}" for short, long in results.values()]
        rows.append([case.name, shape, str(ceiling(case)), *figures, "{:.2f} / {:.2f}".format(*of_best)])
    worst = np.min([best for best, _ in ratios], axis=0)
    mean = np.mean([triple for _, triple in ratios], axis=0)
    columns = ["data", "examples × features", "ceiling", *STRATEGIES, "auto : best other"]
    return table(columns, rows) + (
        f"\n\nAuto against the best of the others, worst case: {worst[0]:.2f} / {worst[1]:.2f}. "
        f"Auto against Adaptive Triple, mean of the ratios: {mean[0]:.2f} / {mean[1]:.2f}.\n"
    )


def take_apart(variants: Sequence[Variant], cases: Sequence[Case], seeds: int) -> str:
    rows: list[list[str]] = []
    base = np.array([found(variants[0], case, seeds) for case in cases])
    for variant in variants:
        results = np.array([found(variant, case, seeds) for case in cases])
        ratio = (results / base).mean(axis=0)
        worst = (results / base).min(axis=0)
        rows.append([variant.name, *(f"{x:.2f} / {y:.2f}" for x, y in (results.mean(axis=0), ratio, worst))])
    return table(["strategy", "features found", f"relative to {variants[0].name}", "worst case"], rows) + "\n"


def agreement(cases: Sequence[Case], seeds: int) -> str:
    """How often two voters who are asked the same question name the same feature."""
    rows = []
    for case in cases:
        same, often = [], []
        for seed in range(seeds):
            history = Variant("", "random-triple", voters=2).run(case, seed)
            pairs = list(zip(history.answers[::2], history.answers[1::2], strict=False))
            same.append(np.mean([a == b for a, b in pairs if a is not None]))
            often.append(
                Counter(a for a in history.answers if a is not None).most_common(1)[0][1] / len(history.answers)
            )
        rows.append([case.name, f"{np.mean(same):.0%}", f"{np.mean(often):.0%}"])
    return table(["data", "two voters agree", "answers that name the most salient feature"], rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strategies", description=__doc__.split("\n")[0])
    parser.add_argument("matrices", nargs="*", type=Path, help="CSV files; by default those that ship")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--no-worlds", action="store_true", help="leave the made-up worlds out")
    parser.add_argument("--no-parts", action="store_true", help="do not take the strategies apart")
    arguments = parser.parse_args()
    matrices = [of_matrix(path) for path in arguments.matrices or SHIPPED]
    worlds = [] if arguments.no_worlds else made_up()
    print(heading("python -m benchmarks.strategies --seeds " + str(arguments.seeds)))
    print(f"Interesting and distinct features after {SHORT} / {LONG} queries, means over {arguments.seeds} seeds.\n")
    print(compare(matrices, arguments.seeds), flush=True)
    if worlds:
        print(compare(worlds, arguments.seeds), flush=True)
    if not arguments.no_parts:
        print("Parts, over all of these:\n")
        print(take_apart(VARIANTS, [*matrices, *worlds], arguments.seeds), flush=True)
        print("Noisy labels:\n")
        print(take_apart(NOISE, [*matrices, *worlds[:3]], arguments.seeds), flush=True)
        print("Salience, and how diverse voters are, on random triples:\n")
        print(agreement([*matrices, *worlds], arguments.seeds))


if __name__ == "__main__":
    main()
