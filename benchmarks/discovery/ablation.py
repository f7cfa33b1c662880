"""What each part of the strategies is worth, against uniform Adaptive Triple.

python -m benchmarks.discovery.ablation                     the matrices that ship, and the worlds
python -m benchmarks.discovery.ablation MATRIX.csv ...      other matrices too: an id column, then 0/1 columns
python -m benchmarks.discovery.ablation --errors 'flip=0.3&shared=0.75&yes_bias=-0.7' [--votes 5]
                                                            the same with labels by voters who err so"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields, replace

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
    table,
)
from benchmarks.errors import VoteErrors
from benchmarks.machine import heading
from benchmarks.rehearsal import Labelling
from benchmarks.worlds import SKEWED

BANDIT = (("sample", True), ("imagine", False))
VARIANTS = [
    Variant("Adaptive Triple", "adaptive-triple"),
    Variant("Adaptive Triple, `beyond` exhaustion", "adaptive-triple", (("beyond", True),)),
    Variant("Adaptive Pair", "adaptive-pair"),
    Variant("Adaptive Pair, `beyond` exhaustion", "adaptive-pair", (("beyond", True),)),
    Variant("Adaptive Triple, rounds of 5", "adaptive-triple", batch=5),
    Variant("Adaptive Triple, rounds of 10", "adaptive-triple", batch=10),
    Variant("Adaptive Triple, 2 voters for each question", "adaptive-triple", voters=2),
    Variant("Adaptive Triple, 3 voters for each question", "adaptive-triple", voters=3),
    Variant("bandit over uniform, near and far", "auto", (("ways", ("unresolved", "near", "far")), *BANDIT)),
    Variant("bandit over two of three and pair", "auto", (("ways", ("unresolved", "pair")), *BANDIT)),
    Variant("auto", "auto"),
    Variant("auto without going `beyond` exhaustion", "auto", (("beyond", False),)),
    Variant("auto without “other than these” (`other=off`)", "auto", (("other", False),)),
    Variant("auto that imagines nothing (`imagine=off`)", "auto", (("imagine", False),)),
    Variant("auto with Thompson sampling (`sample=on`)", "auto", (("sample", True),)),
    Variant("auto without tags", "auto", (("ways", ("triple", "pair")),)),
    Variant("auto with two of three only", "auto", (("ways", ("triple",)),)),
    Variant("auto with near and far too", "auto", (("ways", ("triple", "pair", "tag", "near", "far")),)),
    Variant("auto that heeds its record more (`trust=8`)", "auto", (("trust", 8.0),)),
    Variant("auto that needs more evidence (`caution=6`)", "auto", (("caution", 6.0),)),
    Variant("auto that forgets nothing (`memory=1`)", "auto", (("memory", 1.0),)),
    Variant("auto, rounds of 5", "auto", batch=5),
    Variant("auto, rounds of 10", "auto", batch=10),
]
NOISE = [
    Variant(
        f"{strategy}, {flip:.0%} flips, {votes} vote{'s' if votes > 1 else ''}",
        strategy,
        labelling=Labelling(flip, votes),
    )
    for strategy, flips in (("adaptive-triple", (0.1, 0.2)), ("auto", (0.2,)))
    for flip in flips
    for votes in (1, 5)
]


def take_apart(variants: Sequence[Variant], cases: Sequence[Case], seeds: int) -> str:
    """Each variant beside the first one, with the standard error over the seeds."""
    results = {variant.name: np.array([found(variant, case, seeds) for case in cases]) for variant in variants}
    base = results[variants[0].name].mean(axis=1)  # cases × (short, long)
    rows = []
    for name, counted in results.items():
        relative = counted / base[:, None]
        mean = relative.mean(axis=(0, 1))
        error = relative.mean(axis=0).std(axis=0, ddof=1) / np.sqrt(seeds)
        worst = relative.mean(axis=1)
        rows.append(
            [
                name,
                "{:.1f} / {:.1f}".format(*counted.mean(axis=(0, 1))),
                f"{mean[0]:.2f} ± {error[0]:.2f} / {mean[1]:.2f} ± {error[1]:.2f}",
                " / ".join(f"{worst[:, q].min():.2f} ({cases[worst[:, q].argmin()].name})" for q in (0, 1)),
            ]
        )
    return table(["strategy", "features found", f"relative to {variants[0].name}", "where it does worst"], rows) + "\n"


def agreement(cases: Sequence[Case], seeds: int) -> str:
    """How often two voters who are asked the same question name the same feature."""
    rows = []
    for case in cases:
        same, often = [], []
        for seed in range(seeds):
            answers = Variant("", "random-triple", voters=2).run(case, seed).answers
            pairs = list(zip(answers[::2], answers[1::2], strict=False))
            same.append(np.mean([one == other for one, other in pairs if one is not None]))
            often.append(Counter(one for one in answers if one is not None).most_common(1)[0][1] / len(answers))
        rows.append([case.name, f"{np.mean(same):.0%}", f"{np.mean(often):.0%}"])
    return table(["data", "two voters agree", "answers that name the most salient feature"], rows) + "\n"


def with_errors(given: VoteErrors, votes: int, cases: Sequence[Case], seeds: int) -> str:
    """Every variant with labels by voters who err so; what counts is judged by the truth."""
    labelling = Labelling(votes=votes, errors=given)
    return take_apart([replace(one, labelling=labelling) for one in VARIANTS], cases, seeds)


def errors_named(text: str) -> VoteErrors:
    """Written as the parameters of a simulated crowd."""
    names = [field.name for field in fields(VoteErrors)]
    parts = [part.partition("=") for part in text.split("&")]
    try:
        given = {name: float(value) for name, _, value in parts if name in names}
    except ValueError:
        given = {}
    if len(given) < len(parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER&… with the names {', '.join(names)}")
    return VoteErrors(**given)


def main(arguments: list[str]) -> None:
    parser = matrix_arguments("benchmarks.discovery.ablation", __doc__)
    parser.add_argument("--errors", type=errors_named, help="of single votes, e.g. 'flip=0.1&shared=0.8'")
    parser.add_argument("--no-worlds", action="store_true", help="leave the made-up worlds out")
    parser.add_argument("--votes", type=at_least_one, default=1, help="on each label, with --errors")
    chosen = parser.parse_args(arguments)
    matrices, seeds = [of_matrix(path) for path in [*SHIPPED, *chosen.matrices]], chosen.seeds
    worlds = [] if chosen.no_worlds else made_up()
    words = [" MATRIX.csv …" * bool(chosen.matrices), f" --seeds {seeds}", " --no-worlds" * chosen.no_worlds]
    if chosen.errors is not None:
        parts = "&".join(f"{name}={value:g}" for name, value in asdict(chosen.errors).items() if value)
        words.append(f" --errors '{parts}' --votes {chosen.votes}")
    print(heading(f"python -m benchmarks.discovery.ablation{''.join(words)}"))
    print(
        f"Interesting and distinct features after {SHORT} / {LONG} queries, means over seeds 0 to {seeds - 1} and over"
    )
    print(f"{len(matrices)} matrices and {len(worlds)} made-up worlds. A query is one question to one voter.\n")
    if chosen.errors is not None:
        print(with_errors(chosen.errors, chosen.votes, [*matrices, *worlds], seeds))
        return
    print(take_apart(VARIANTS, [*matrices, *worlds], seeds), flush=True)
    print("Noisy labels, on the matrices and the salience-skewed worlds; what counts is judged by the truth:\n")
    print(take_apart(NOISE, [*matrices, *worlds[: len(SKEWED)]], seeds), flush=True)
    print("Salience, and how diverse voters are, on random triples:\n")
    print(agreement([*matrices, *worlds], seeds))


if __name__ == "__main__":
    main(sys.argv[1:])
