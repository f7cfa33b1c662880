"""Errors as people and models make them: `python -m benchmarks.evidence.noise --leuven FILE --rte FILE …`.

Votes are not coins: the same labels are hard for all voters. It prints how strongly the errors of people hang together
(where the truth is known), what that leaves of the gain from more votes, the parameters of a simulated crowd that errs
as the raters of Leuven do, and what the strategies find with such errors."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import SHIPPED, SHORT, Case, of_matrix, table
from benchmarks.errors import VoteErrors
from benchmarks.evidence.vote_errors import (
    crowd_of,
    crowd_of_nlvr,
    crowds_table,
    errors_of,
    leuven_errors,
    votes_table,
)
from benchmarks.machine import heading
from benchmarks.rehearsal import Labelling, rehearse
from discovery import interesting_and_distinct
from discovery.strategies import make_strategy

COIN = VoteErrors(0.1)
MODEL_LIKE = VoteErrors(0.1, shared=0.8, by_example=0.3, confused=0.1, yes_bias=0.5)
# As benchmarks.evidence.weak_model measured them on 2026-11-17: it says no to everything; drawn, it is nearly a coin.
SMOLLM2 = VoteErrors(0.5, shared=1.0, yes_bias=-1.0)
SMOLLM2_DRAWN = VoteErrors(0.52, shared=0.01, yes_bias=-0.35)
VOTES = (1, 3, 5)
ASKERS = {"auto": ("auto", 1), "auto, 3 a question": ("auto", 3), "adaptive triple": ("adaptive-triple", 1)}


def found(case: Case, strategy: str, most: int, labelling: Labelling, seed: int) -> int:
    """Interesting and distinct features after 35 questions, judged by the truth."""
    world = case.world(seed)
    options: dict[str, Any] = {"most": most} if most > 1 else {}
    asked = make_strategy(strategy, len(world.truth), np.random.default_rng([seed, 1]), **options)
    crowd, chance = world.crowd("salience", seed), np.random.default_rng([seed, 2])
    labels = replace(labelling, seed=seed)
    history = rehearse(asked, crowd, world.truth, SHORT, chance, labelling=labels, most=most)
    return sum(interesting_and_distinct(world.truth.T[history.columns]))


def strategies_table(cases: Sequence[Case], crowds: Sequence[tuple[str, VoteErrors]], seeds: int) -> str:
    """Auto beside Adaptive Triple with the same errors, and what more votes bring."""
    rows = []
    for name, errors in crowds:
        for votes in VOTES if errors.flip and errors.shared < 1 else VOTES[:1]:
            labelling = Labelling(votes=votes, errors=errors if errors.flip else None)
            counted = np.array(
                [
                    [[found(case, *asker, labelling, seed) for seed in range(seeds)] for case in cases]
                    for asker in ASKERS.values()
                ],
                float,
            )  # strategies × cases × seeds
            relative = counted / counted[-1].mean(1)[None, :, None]
            error = relative.mean(1).std(1, ddof=1) / np.sqrt(seeds)
            ratios = [f"{one.mean():.2f} ± {its:.2f}" for one, its in zip(relative[:-1], error[:-1], strict=True)]
            rows.append([name, str(votes), *(f"{one.mean():.1f}" for one in counted), *ratios])
    return table(["errors", "votes", *ASKERS, *(f"{one} : adaptive triple" for one in list(ASKERS)[:-1])], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    about = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence.noise", description=about)
    parser.add_argument(
        "matrices", nargs="*", type=Path, help="CSV files of an id and 0/1 columns, besides those that ship"
    )
    for name in ("leuven", "rte", "bluebirds", "nlvr"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--seeds", type=int, default=12)
    options = parser.parse_args(arguments)
    print(heading(f"python -m benchmarks.evidence.noise --seeds {options.seeds}"))
    crowds = [crowd_of(name, path) for name, path in (("bluebirds", options.bluebirds), ("RTE", options.rte)) if path]
    crowds += [crowd_of_nlvr(options.nlvr)] if options.nlvr else []
    measured = [(crowd.name, errors_of(crowd)) for crowd in crowds]
    tried = [("none", VoteErrors()), ("coins, 10 %", COIN), ("coins, 20 %", VoteErrors(0.2))]
    if options.leuven:
        errors, fitted = leuven_errors(options.leuven)
        print(fitted + "\n")
        measured.append(("Leuven", errors))
        tried.append(("as Leuven", errors))
    tried += [("shared, 10 %", MODEL_LIKE), ("shared, 20 %", replace(MODEL_LIKE, flip=0.2))]
    tried += [("as SmolLM2", SMOLLM2), ("as SmolLM2, drawn", SMOLLM2_DRAWN)]
    if measured:
        print(crowds_table(measured) + "\n")
    if crowds:
        print(votes_table(crowds) + "\n")
    cases = [of_matrix(path) for path in [*SHIPPED, *options.matrices]]
    print(
        f"Interesting and distinct features after {SHORT} questions, means over seeds 0 to {options.seeds - 1} and over"
    )
    print(f"{', '.join(case.name for case in cases)}; judged by the truth:\n")
    print(strategies_table(cases, tried, options.seeds))


if __name__ == "__main__":
    main()
