"""How many interesting and distinct features each strategy finds, on attribute matrices and on made-up worlds.

    python -m benchmarks.strategies                                   the matrices that ship, and the worlds
    python -m benchmarks.strategies MATRIX.csv ... --no-worlds        other matrices too: an id column, then 0/1 columns
    python -m benchmarks.strategies MATRIX.csv ... --subsets 3        random parts of all of them instead
    python -m benchmarks.strategies --per-question 1,2,3,5            auto with several features a question
    python -m benchmarks.strategies --look                            what a look before the whole saves and loses

Columns with other values are left out. Crowds are salience-weighted. Every figure is a mean over the seeds,
± one standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
ROOM = 1.6  # times what Adaptive Triple finds: where the ceiling is lower, several features a question cannot find more


def ceiling(case: Case) -> int:
    """How many features of the first world count when all are found, the most frequent first."""
    truth = case.world(0).truth
    order = np.argsort(-(truth == 1).sum(axis=0), kind="stable")
    return sum(interesting_and_distinct(truth.T[order]))


def compare(cases: Sequence[Case], seeds: int) -> str:
    rows, ratios = [], []
    for case in cases:
        counted = {name: found(Variant(name, name), case, seeds) for name in STRATEGIES}
        results = {name: one.mean(axis=0) for name, one in counted.items()}
        of_best = results["auto"] / np.max([results[name] for name in STRATEGIES[1:]], axis=0)
        of_triple = results["auto"] / results["adaptive-triple"]
        ratios.append((of_best, of_triple))
        shape = "{} × {}".format(*case.world(0).truth.shape)
        figures = [_with_errors(one) for one in counted.values()]
        shares = ["{:.2f} / {:.2f}".format(*share) for share in (of_best, of_triple)]
        rows.append([case.name, shape, str(ceiling(case)), *figures, *shares])
    worst = np.min([best for best, _ in ratios], axis=0)
    mean = np.mean([triple for _, triple in ratios], axis=0)
    columns = ["data", "examples × features", "ceiling", *STRATEGIES, "auto : best other", "auto : adaptive-triple"]
    return table(columns, rows) + (
        f"\n\nAuto against the best of the others, worst case: {worst[0]:.2f} / {worst[1]:.2f}. "
        f"Auto against Adaptive Triple, mean of the ratios: {mean[0]:.2f} / {mean[1]:.2f}.\n"
    )


def _with_errors(counted: NDArray[np.float64]) -> str:
    """Means over the seeds, ± one standard error where there are several."""
    means = counted.mean(axis=0)
    if len(counted) < 2:
        return " / ".join(f"{mean:.1f}" for mean in means)
    errors = counted.std(axis=0, ddof=1) / np.sqrt(len(counted))
    return " / ".join(f"{mean:.1f} ± {error:.1f}" for mean, error in zip(means, errors, strict=True))


def several(cases: Sequence[Case], most: Sequence[int], seeds: int) -> str:
    """Auto with up to so many features a question, beside Adaptive Triple with one and beside the ceiling."""
    rows, of_triple, of_one, of_ceiling, room = [], [], [], [], []
    for case in cases:
        triple = found(Variant("triple", "adaptive-triple"), case, seeds).mean(axis=0)
        results = [found(Variant("auto", "auto", most=each), case, seeds).mean(axis=0) for each in most]
        there = ceiling(case)
        of_triple.append([result / triple for result in results])
        of_one.append([result / results[0] for result in results])
        of_ceiling.append([result / there for result in results])
        room.append(there / triple)
        figures = [f"{short:.1f} / {long:.1f}" for short, long in (triple, *results)]
        shares = ["{:.2f} / {:.2f}".format(*share) for share in (*of_triple[-1], room[-1])]
        rows.append([case.name, str(there), *figures, *shares])
    mean, worst = np.mean([*zip(*of_triple, strict=True), room], axis=1), np.min(of_one, axis=0)
    rows.append(["mean", "", "", *[""] * len(most), *("{:.2f} / {:.2f}".format(*share) for share in mean)])
    columns = ["data", "ceiling", "adaptive-triple", *(f"auto, {each}" for each in most)]
    columns += [f"{what} : adaptive-triple" for what in (*(f"auto, {each}" for each in most), "ceiling")]
    least = ", ".join(f"{each}: {share[0]:.2f} / {share[1]:.2f}" for each, share in zip(most, worst, strict=True))
    return table(columns, rows) + (
        f"\n\nAgainst auto with {most[0]} a question, worst case of {least}.\n"
        + _where_there_is_room(most, np.array(of_triple)[:, :, 0], np.array(of_ceiling)[:, :, 0], np.array(room)[:, 0])
    )


def _where_there_is_room(
    most: Sequence[int], of_triple: NDArray[np.float64], of_ceiling: NDArray[np.float64], room: NDArray[np.float64]
) -> str:
    """Means after SHORT queries, apart for matrices whose ceiling is ROOM times what Adaptive Triple finds by then."""
    said = []
    for here, where, ratios, beside in (
        (room >= ROOM, "at least", of_triple, "multiple of that"),
        (room < ROOM, "less than", of_ceiling, "share of the ceiling"),
    ):
        if here.any():
            figures = ", ".join(f"{each}: {ratio:.2f}" for each, ratio in zip(most, ratios[here].mean(0), strict=True))
            said.append(
                f"Where the ceiling is {where} {ROOM} times what Adaptive Triple finds in {SHORT} queries "
                f"({here.sum()} of {len(here)}), mean {beside}: {figures}.\n"
            )
    return "".join(said)


def looked_at(cases: Sequence[Case], most: int, seeds: int) -> str:
    """Labels that a look before the whole saves, and features that count by the truth but were dropped."""
    rows, every = [], np.zeros((len(cases), 2, 4))
    for number, case in enumerate(cases):
        for seed in range(seeds):
            history, truth = Variant("auto", "auto", most=most, look=True).run(case, seed), case.world(seed).truth
            for length, queries in enumerate((SHORT, LONG)):
                columns = history.found_by(queries)
                counting = interesting_and_distinct(truth.T[columns])
                dropped = [history.dropped.get(column) for column in columns]
                saved = sum(len(truth) - one.seen for one in dropped if one is not None)
                lost = sum(flag and one is not None for flag, one in zip(counting, dropped, strict=True))
                every[number, length] += saved, len(truth) * len(columns), lost, sum(counting)
        rows.append([case.name, *_shares(every[number])])
    rows.append(["all", *_shares(every.sum(axis=0))])
    return table(["data", "labels saved", "features that count lost"], rows) + "\n"


def _shares(sums: NDArray[np.float64]) -> list[str]:
    """Of labels and of features that count, after SHORT and after LONG queries."""
    return [" / ".join(f"{row[part] / max(row[part + 1], 1):.1%}" for row in sums) for part in (0, 2)]


def main(arguments: list[str]) -> None:
    parser = matrix_arguments("benchmarks.strategies", __doc__)
    parser.add_argument("--no-worlds", action="store_true", help="leave the made-up worlds out")
    parser.add_argument("--subsets", type=at_least_one, default=0, metavar="K", help="instead K random parts of each")
    parser.add_argument("--per-question", metavar="K,…", help="instead auto with up to so many features a question")
    parser.add_argument("--look", action="store_true", help="instead what a look before the whole saves and loses")
    chosen = parser.parse_args(arguments)
    paths = [*SHIPPED, *chosen.matrices]
    matrices = [of_matrix(path) for path in paths]
    if chosen.subsets:
        matrices = [case for path in paths for case in parts_of(path, chosen.subsets)]
    given = " MATRIX.csv …" if chosen.matrices else ""
    given += f" --subsets {chosen.subsets}" if chosen.subsets else ""
    given += " --no-worlds" if chosen.no_worlds else ""
    given += f" --per-question {chosen.per_question}" if chosen.per_question else ""
    given += " --look" if chosen.look else ""
    print(heading(f"python -m benchmarks.strategies{given} --seeds {chosen.seeds}"))
    print(f"Interesting and distinct features after {SHORT} / {LONG} queries, means over {chosen.seeds} seeds.")
    print("The ceiling is how many there are to be found, the most frequent first.\n")
    most = [at_least_one(text) for text in (chosen.per_question or "").split(",") if text]
    if chosen.look:
        print(looked_at(matrices, most[0] if most else 3, chosen.seeds), flush=True)
        return
    if most:
        print(several(matrices, most, chosen.seeds), flush=True)
        return
    print(compare(matrices, chosen.seeds), flush=True)
    if not chosen.no_worlds:
        print("Made-up worlds:\n")
        print(compare(made_up(), chosen.seeds), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
