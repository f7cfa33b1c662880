"""How well the features found predict a target that they were, or were not, looked for by.

    python -m benchmarks.target                      the matrices that ship
    python -m benchmarks.target MATRIX.csv ...       other matrices too: an id column, then 0/1 columns
    python -m benchmarks.target --rounds             instead, what it loses to label the features of several questions
                                                     together, each question told the names before it

A target is a noisy rule over hidden attributes of the matrix: one of them, or whether more of three or of five hold
than in the median example, each perhaps negated; a tenth of the values is wrong. A third of the examples is held out:
no question is chosen by them, and the score is the AUC on them of a ridge regression fitted to the others."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import SHIPPED, Case, at_least_one, matrix_arguments, of_matrix, table
from benchmarks.machine import heading
from benchmarks.rehearsal import rehearse
from discovery.simulation.crowds import Matrix
from discovery.statistics import fit_ridge
from discovery.strategies import Targeted, make_strategy, target_outputs
from flows.discover.settings import LABEL_EVERY
from reports.analysis.held_out import score_held_out
from reports.analysis.prediction import Target, ranking_score

ATTRIBUTES = (1, 3, 5)
NOISE = 0.1
SOON, LATE = 10, 35  # questions
SHARES = (0.2, 0.8)  # of the examples that have an attribute which takes part in a rule
CLASSES = ("no", "yes")
LEVEL = 0.05


@dataclass(frozen=True)
class Task:
    truth: Matrix
    values: NDArray[np.intp]
    test: NDArray[np.bool_]

    @classmethod
    def draw(cls, truth: Matrix, attributes: int, seed: int) -> Task:
        """With no attributes the values are a coin's."""
        rng = np.random.default_rng([seed, attributes, 6])
        n = len(truth)
        values = rng.integers(0, 2, n) if not attributes else _rule(truth, attributes, rng)
        test = np.zeros(n, np.bool_)
        test[rng.permutation(n)[: n // 3]] = True
        return cls(truth, values.astype(np.intp), test)

    def found(
        self, case: Case, seed: int, most: int, queries: int, *, guided: bool = True, together: int = 1
    ) -> list[list[int]]:
        """The columns found after each question."""
        rng = np.random.default_rng([seed, 1])
        strategy = make_strategy("auto", len(self.truth), rng, most=most)
        if guided:
            hidden = np.where(self.test, -1, self.values)
            strategy = Targeted(strategy, target_outputs(hidden, 2), np.random.default_rng([seed, 1, 1]))
        crowd = case.world(seed).crowd("salience", seed)
        rounds: dict[str, Any] = {"batch": together, "one_by_one": together > 1, "most": most}
        history = rehearse(strategy, crowd, self.truth, queries, np.random.default_rng([seed, 2]), **rounds)
        return [history.found_by(query) for query in range(1, history.queries + 1)]

    def auc(self, columns: list[int]) -> float:
        x = np.where(self.truth < 0, np.nan, self.truth)[:, columns].astype(np.float64)
        outputs = target_outputs(self.values, 2)
        decided = fit_ridge(x[~self.test], outputs[~self.test]).predict(x[self.test])
        return ranking_score(np.hstack([-decided, decided]), Target(self.values[self.test], CLASSES))

    def is_found(self, columns: list[int]) -> bool:
        """Whether a run that found these would say that they predict the target."""
        x = np.where(self.truth < 0, np.nan, self.truth)[:, columns].astype(np.float64)
        scored = score_held_out(x, [1] * len(columns), 1, Target(self.values, CLASSES), self.test)
        return scored.p <= LEVEL


def _rule(truth: Matrix, attributes: int, rng: np.random.Generator) -> NDArray[np.intp]:
    share = (truth == 1).mean(axis=0)
    usable = np.flatnonzero((share >= SHARES[0]) & (share <= SHARES[1]) & (truth >= 0).all(axis=0))
    chosen = rng.choice(usable, attributes, replace=False)
    holds = (truth[:, chosen] == 1) ^ (rng.random(attributes) < 0.5)
    total = holds.sum(axis=1) + 1e-3 * rng.random(len(truth))  # ties in any order
    values = holds[:, 0] if attributes == 1 else total > np.median(total)
    return np.asarray(values ^ (rng.random(len(truth)) < NOISE), np.intp)


def compare(cases: list[Case], seeds: int, most: int) -> str:
    rows, gains = [], []
    for case in cases:
        truth = case.world(0).truth
        for attributes in ATTRIBUTES:
            scores = []
            for seed in range(seeds):
                task = Task.draw(truth, attributes, seed)
                guided = task.found(case, seed, most, LATE)
                unguided = task.found(case, seed, most, LATE, guided=False)
                at = ((guided, SOON), (unguided, SOON), (unguided, LATE), (guided, LATE))
                scores.append([task.auc(found[min(query, len(found)) - 1]) for found, query in at])
            mean, error = np.mean(scores, axis=0), np.std(scores, axis=0) / np.sqrt(seeds)
            gains.append((case.name, mean[0] - mean[2]))
            figures = [f"{value:.3f} ± {spread:.3f}" for value, spread in zip(mean, error, strict=True)]
            rows.append([case.name, "{} × {}".format(*truth.shape), str(attributes), *figures])
    columns = ["data", "examples × features", "attributes"]
    columns += [f"towards it, {SOON}", f"unguided, {SOON}", f"unguided, {LATE}", f"towards it, {LATE}"]
    by_case = {name: np.mean([gain for other, gain in gains if other == name]) for name, _ in gains}
    ahead = sum(gain >= 0 for gain in by_case.values())
    gain = np.mean(list(by_case.values()))
    return table(columns, rows) + (
        f"\n\nTowards the target after {SOON} questions, less unguided after {LATE}: {gain:+.3f} on average; "
        f"not below it on {ahead} of {len(by_case)} matrices.\n"
    )


def false_findings(cases: list[Case], seeds: int, most: int) -> str:
    said = [
        task.is_found(task.found(case, seed, most, SOON)[-1])
        for case in cases
        for seed in range(seeds)
        for task in [Task.draw(case.world(0).truth, 0, seed)]
    ]
    return (
        f"On a coin's values, which nothing predicts, {sum(said)} of {len(said)} runs of {SOON} questions say that the "
        f"features predict them ({np.mean(said):.1%}; stated level {LEVEL:.0%}).\n"
    )


def in_rounds(cases: list[Case], seeds: int, most: int) -> str:
    """AUC towards the target by how many questions are labelled together, over all matrices and rules."""
    rows = []
    for together in (1, 5, 10, LABEL_EVERY):
        scores = []
        for case, attributes, seed in product(cases, ATTRIBUTES, range(seeds)):
            task = Task.draw(case.world(0).truth, attributes, seed)
            found = task.found(case, seed, most, LATE, together=together)
            scores.append([task.auc(found[min(query, len(found)) - 1]) for query in (SOON, LATE)])
        mean, error = np.mean(scores, axis=0), np.std(scores, axis=0) / np.sqrt(len(scores))
        rows.append(
            [str(together), *(f"{value:.3f} ± {spread:.3f}" for value, spread in zip(mean, error, strict=True))]
        )
    return table(["questions a round", f"after {SOON}", f"after {LATE}"], rows) + "\n"


def main(arguments: list[str]) -> None:
    parser = matrix_arguments("benchmarks.target", __doc__)
    parser.add_argument("--per-question", type=at_least_one, default=3, metavar="K", help="features an answer may hold")
    parser.add_argument("--rounds", action="store_true", help="instead, labels after several questions")
    chosen = parser.parse_args(arguments)
    cases = [of_matrix(path) for path in [*SHIPPED, *chosen.matrices]]
    given = (" MATRIX.csv …" if chosen.matrices else "") + (" --rounds" if chosen.rounds else "")
    print(heading(f"python -m benchmarks.target{given} --seeds {chosen.seeds} --per-question {chosen.per_question}"))
    print(
        f"AUC on held-out examples after {SOON} and {LATE} questions, means over {chosen.seeds} seeds ± their error",
        end="\n\n",
    )
    if chosen.rounds:
        print(in_rounds(cases, chosen.seeds, chosen.per_question))
        return
    print(compare(cases, chosen.seeds, chosen.per_question), flush=True)
    print(false_findings(cases, chosen.seeds, chosen.per_question), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
