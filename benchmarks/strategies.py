"""How many interesting and distinct features each strategy finds, on attribute matrices and in made-up worlds.

Matrices besides those that ship are given as CSV files of an id column and 0/1 columns; columns with other values are
skipped. Crowds are simulated and weighted by salience. Figures are after 35 / 100 questions, means over the seeds ± one
standard error. The ceiling is how many features count when all are found, the most frequent first. With `--libraries`
matrices of data that come with installed libraries are added. With `--wrong SHARE` so many labels are wrong, at random;
what was found is judged by the truth.

With `--per-question 1,3` the same for `auto` with up to so many features in an answer, beside Adaptive Triple."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import SHIPPED, Case, add_matrices, at_least_one, from_libraries, made_up, of_matrix
from benchmarks.machine import tell
from benchmarks.rehearsal import Labeller, rehearse, true_labels
from benchmarks.results import Table, mean_of, rounded
from twothirds.discovery.metrics import interesting_and_distinct
from twothirds.discovery.questions import UNKNOWN, Labels
from twothirds.discovery.simulation.crowds import Matrix
from twothirds.discovery.strategies import make_strategy

STRATEGIES = ["auto", "adaptive-triple", "adaptive-pair", "random-triple", "tagging"]
SHORT, LONG = 35, 100  # questions
QUICK = {"seeds": 2}


def add_options(parser: argparse.ArgumentParser) -> None:
    add_matrices(parser, seeds=24)
    parser.add_argument("--libraries", action="store_true", help="also matrices of data that come with libraries")
    parser.add_argument("--wrong", type=float, default=0.0, metavar="SHARE", help="of the labels that strategies learn")
    parser.add_argument("--no-worlds", action="store_true", help="skip the made-up worlds")
    parser.add_argument("--per-question", metavar="K,…", help="auto with up to so many features a question instead")


def run(options: argparse.Namespace) -> list[Table]:
    cases = [of_matrix(path) for path in [*SHIPPED, *options.matrices]] + from_libraries() * options.libraries
    labelling = wrong(options.wrong) if options.wrong else true_labels
    if options.per_question:
        most = [at_least_one(text) for text in options.per_question.split(",")]
        return [several_features(cases, most, options.seeds, labelling)]
    tables = [compare_strategies("Strategies on matrices", cases, options.seeds, labelling)]
    if not options.no_worlds:
        tables.append(compare_strategies("Strategies in made-up worlds", made_up(), options.seeds, labelling))
    return tables


def wrong(share: float) -> Labeller:
    def label(truth: Matrix, column: int, rng: np.random.Generator) -> Labels:
        labels, turned = truth[:, column].copy(), rng.random(len(truth)) < share
        labels[turned & (labels != UNKNOWN)] ^= 1
        return labels

    return label


def found(
    strategy: str, case: Case, seeds: int, most: int = 1, labelling: Labeller = true_labels
) -> NDArray[np.float64]:
    """Interesting and distinct features after SHORT and after LONG questions, a row for each seed.

    They are judged by the truth, not by the labels: noise makes duplicates look distinct."""
    rows = []
    for seed in range(seeds):
        world, rng = case.world(seed), np.random.default_rng([seed, 1])
        options: dict[str, Any] = {"most": most} if strategy == "auto" and most > 1 else {}
        asker = make_strategy(strategy, len(world.truth), rng, **options)
        crowd = world.crowd("salience", seed)
        history = rehearse(
            asker, crowd, world.truth, LONG, np.random.default_rng([seed, 2]), labelling=labelling, most=most
        )
        flags = interesting_and_distinct(world.truth.T[history.columns])
        good = {column for column, flag in zip(history.columns, flags, strict=True) if flag}
        rows.append([len(good.intersection(history.found_by(queries))) for queries in (SHORT, LONG)])
    return np.array(rows, dtype=np.float64)


def ceiling(case: Case) -> int:
    """How many features of the first world count when all are found, the most frequent first."""
    truth = case.world(0).truth
    order = np.argsort(-(truth == 1).sum(axis=0), kind="stable")
    return sum(interesting_and_distinct(truth.T[order]))


def compare_strategies(title: str, cases: Sequence[Case], seeds: int, labelling: Labeller = true_labels) -> Table:
    rows, of_best, of_triple = [], [], []
    for case in cases:
        tell(case.name)
        counts = {name: found(name, case, seeds, labelling=labelling) for name in STRATEGIES}
        means = {name: count.mean(axis=0) for name, count in counts.items()}
        of_best.append(means["auto"] / np.max([means[name] for name in STRATEGIES[1:]], axis=0))
        of_triple.append(means["auto"] / means["adaptive-triple"])
        figures = [[mean_of(column, 1) for column in count.T] for count in counts.values()]
        shape = "{} × {}".format(*case.world(0).truth.shape)
        ratios = [rounded(of_best[-1], 2), rounded(of_triple[-1], 2)]
        rows.append([case.name, shape, ceiling(case), *figures, *ratios])
    worst, mean = np.min(of_best, axis=0), np.mean(of_triple, axis=0)
    return Table(
        title,
        ["data", "examples × features", "ceiling", *STRATEGIES, "auto : best other", "auto : adaptive-triple"],
        rows,
        [
            f"Auto against the best of the others, worst case: {worst[0]:.2f} / {worst[1]:.2f}. "
            f"Auto against Adaptive Triple, mean of the ratios: {mean[0]:.2f} / {mean[1]:.2f}. {seeds} seeds."
        ],
    )


def several_features(
    cases: Sequence[Case], most: Sequence[int], seeds: int, labelling: Labeller = true_labels
) -> Table:
    rows, ratios = [], []
    for case in cases:
        tell(case.name)
        triple = found("adaptive-triple", case, seeds, labelling=labelling).mean(axis=0)
        counts = [found("auto", case, seeds, each, labelling).mean(axis=0) for each in most]
        highest = ceiling(case)
        ratios.append([count / triple for count in (*counts, highest)])
        figures = [rounded(count, 1) for count in (triple, *counts)]
        rows.append([case.name, highest, *figures, *(rounded(ratio, 2) for ratio in ratios[-1])])
    rows.append(["mean", None, None, *[None] * len(most), *(rounded(mean, 2) for mean in np.mean(ratios, axis=0))])
    names = [f"auto, {each}" for each in most]
    columns = ["data", "ceiling", "adaptive-triple", *names]
    columns += [f"{name} : adaptive-triple" for name in (*names, "ceiling")]
    return Table("Several features a question", columns, rows, [f"{seeds} seeds."])
