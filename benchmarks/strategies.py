"""How many interesting and distinct features each strategy finds, on attribute matrices and on made-up worlds.

    python -m benchmarks.strategies                                   the matrices that ship, and the worlds
    python -m benchmarks.strategies MATRIX.csv ... --no-worlds        other matrices too: an id column, then 0/1 columns
    python -m benchmarks.strategies MATRIX.csv ... --subsets 3        random parts of all of them instead

Columns with other values are left out. Crowds are salience-weighted. Every figure is a mean over the seeds."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from benchmarks.cases import (
    LONG,
    SHIPPED,
    SHORT,
    Case,
    Variant,
    at_least_one,
    found,
    made_up,
    matrix_arguments,
    of_matrix,
    parts_of,
    table,
)
from benchmarks.machine import heading
from discovery.metrics import interesting_and_distinct

STRATEGIES = ["auto", "adaptive-triple", "adaptive-pair", "random-triple", "tagging"]


def ceiling(case: Case) -> int:
    """How many features of the first world count when all are found, the most frequent first."""
    truth = case.world(0).truth
    order = np.argsort(-(truth == 1).sum(axis=0), kind="stable")
    return sum(interesting_and_distinct(truth.T[order]))


def compare(cases: Sequence[Case], seeds: int) -> str:
    rows, ratios = [], []
    for case in cases:
        results = {name: found(Variant(name, name), case, seeds).mean(axis=0) for name in STRATEGIES}
        of_best = results["auto"] / np.max([results[name] for name in STRATEGIES[1:]], axis=0)
        of_triple = results["auto"] / results["adaptive-triple"]
        ratios.append((of_best, of_triple))
        shape = "{} × {}".format(*case.world(0).truth.shape)
        figures = [f"{short:.1f} / {long:.1f}" for short, long in results.values()]
        shares = ["{:.2f} / {:.2f}".format(*share) for share in (of_best, of_triple)]
        rows.append([case.name, shape, str(ceiling(case)), *figures, *shares])
    worst = np.min([best for best, _ in ratios], axis=0)
    mean = np.mean([triple for _, triple in ratios], axis=0)
    columns = ["data", "examples × features", "ceiling", *STRATEGIES, "auto : best other", "auto : adaptive-triple"]
    return table(columns, rows) + (
        f"\n\nAuto against the best of the others, worst case: {worst[0]:.2f} / {worst[1]:.2f}. "
        f"Auto against Adaptive Triple, mean of the ratios: {mean[0]:.2f} / {mean[1]:.2f}.\n"
    )


def main(arguments: list[str]) -> None:
    parser = matrix_arguments("benchmarks.strategies", __doc__)
    parser.add_argument("--no-worlds", action="store_true", help="leave the made-up worlds out")
    parser.add_argument("--subsets", type=at_least_one, default=0, metavar="K", help="instead K random parts of each")
    chosen = parser.parse_args(arguments)
    paths = [*SHIPPED, *chosen.matrices]
    matrices = [of_matrix(path) for path in paths]
    if chosen.subsets:
        matrices = [case for path in paths for case in parts_of(path, chosen.subsets)]
    given = " MATRIX.csv …" if chosen.matrices else ""
    given += f" --subsets {chosen.subsets}" if chosen.subsets else ""
    given += " --no-worlds" if chosen.no_worlds else ""
    print(heading(f"python -m benchmarks.strategies{given} --seeds {chosen.seeds}"))
    print(f"Interesting and distinct features after {SHORT} / {LONG} queries, means over {chosen.seeds} seeds.")
    print("The ceiling is how many there are to be found, the most frequent first.\n")
    print(compare(matrices, chosen.seeds), flush=True)
    if not chosen.no_worlds:
        print("Made-up worlds:\n")
        print(compare(made_up(), chosen.seeds), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
