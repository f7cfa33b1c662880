"""What it loses and saves to label the features of several questions together, by simulation.

    python -m benchmarks.price.rounds                      the matrices that ship, and made-up worlds
    python -m benchmarks.price.rounds MATRIX.csv …         others too: an id column, then 0/1 columns

`auto` with three features a question and 35 questions. Questions of a round are asked at a time (`--batch`), or one by
one, told what those before them have named (`--label-every`). Pictures are what is paid for: three for each question,
each compared one once for 100 features of a round, each other one once for 100 features in the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import SHIPPED, SHORT, Case, Variant, made_up, matrix_arguments, of_matrix, table
from benchmarks.machine import heading
from benchmarks.rehearsal import Rehearsal
from discovery.metrics import interesting_and_distinct
from flows.discover.settings import LABEL_EVERY, PER_QUESTION, WORKING_SET
from models.openai.label_groups import PICTURE_FEATURES

MANY = 2_000  # pictures, of which WORKING_SET are compared
EACH = 3  # pictures in a question
SIZES = (1, 5, 10, LABEL_EVERY, SHORT)


def requests(features: int) -> int:
    return ceil(features / PICTURE_FEATURES)


def pictures(history: Rehearsal, size: int, n: int) -> int:
    """That are sent, of a data set of n."""
    rounds = [sum(map(len, history.labels[first : min(first + size, SHORT)])) for first in range(0, SHORT, size)]
    compared = min(n, WORKING_SET)
    return EACH * SHORT + compared * sum(map(requests, rounds)) + (n - compared) * requests(sum(rounds))


def measured(case: Case, size: int, seeds: int, *, one_by_one: bool) -> NDArray[np.float64]:
    """Features that count, and pictures sent, of 100 and of MANY; means over the seeds."""
    rows = []
    for seed in range(seeds):
        variant = Variant("auto", "auto", batch=size, one_by_one=one_by_one, most=PER_QUESTION, queries=SHORT)
        history = variant.run(case, seed)
        good = sum(interesting_and_distinct(case.world(seed).truth.T[history.columns]))
        rows.append([good, pictures(history, size, 100), pictures(history, size, MANY)])
    means: NDArray[np.float64] = np.mean(rows, axis=0)
    return means


def lines(cases: Sequence[Case], seeds: int) -> list[list[str]]:
    usual = [measured(case, 1, seeds, one_by_one=False) for case in cases]
    found = []
    for size in SIZES:
        cells = [str(size)]
        for one_by_one in (False, True):
            here = [measured(case, size, seeds, one_by_one=one_by_one) for case in cases] if size > 1 else usual
            shares = [one[0] / other[0] for one, other in zip(here, usual, strict=True)]
            worst = int(np.argmin(shares))
            cells += [f"{np.mean(shares):.3f} ({shares[worst]:.2f}, {cases[worst].name})" if size > 1 else "1"]
        for place in (1, 2):
            cells.append(f"{np.mean([one[place] / one[0] for one in here]):.1f}")
        print(size, file=sys.stderr, flush=True)
        found.append(cells)
    return found


def main(arguments: list[str]) -> None:
    chosen = matrix_arguments("benchmarks.price.rounds", __doc__).parse_args(arguments)
    cases = [*map(of_matrix, (*SHIPPED, *chosen.matrices)), *made_up()]
    given = " MATRIX.csv …" if chosen.matrices else ""
    print(heading(f"python -m benchmarks.price.rounds{given} --seeds {chosen.seeds}"))
    print(
        f"{len(cases)} data sets, {SHORT} questions; features that count relative to labels after each question, mean"
    )
    print("(and worst); pictures sent for each feature that counts, told the names.\n")
    heads = ["questions a round", "asked at a time", "told the names", "100 pictures", f"{MANY:,} pictures"]
    print(table(heads, lines(cases, chosen.seeds)))


if __name__ == "__main__":
    main(sys.argv[1:])
