"""How well the features found predict a target, when they were looked for by it and when they were not.

A target is a noisy rule over hidden attributes of a matrix: one of them, or whether more of three or of five hold than
in the median example, each perhaps negated; a tenth of the values is wrong. A third of the examples is held out: no
question is chosen by them, and the score is the AUC on them of a ridge regression fitted to the others, means over the
seeds ± one standard error. The second table has targets that nothing predicts."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import SHIPPED, Case, add_matrices, at_least_one, of_matrix
from benchmarks.machine import tell
from benchmarks.rehearsal import rehearse
from benchmarks.results import Table, mean_of
from twothirds.discovery.simulation.crowds import Matrix
from twothirds.discovery.statistics import fit_ridge
from twothirds.discovery.strategies import Targeted, make_strategy, target_outputs
from twothirds.reports.analysis.held_out import score_held_out
from twothirds.reports.analysis.prediction import Target, ranking_score

ATTRIBUTES = (1, 3, 5)
NOISE = 0.1
SOON, LATE = 10, 35  # questions
SHARES = (0.2, 0.8)  # of the examples that have an attribute which takes part in a rule
CLASSES = ("no", "yes")
LEVEL = 0.05
QUICK = {"seeds": 2}


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

    def found(self, case: Case, seed: int, most: int, queries: int, *, guided: bool = True) -> list[list[int]]:
        """The columns found after each question."""
        rng = np.random.default_rng([seed, 1])
        strategy = make_strategy("auto", len(self.truth), rng, most=most)
        if guided:
            hidden = np.where(self.test, -1, self.values)
            strategy = Targeted(strategy, target_outputs(hidden, 2), np.random.default_rng([seed, 1, 1]))
        crowd = case.world(seed).crowd("salience", seed)
        history = rehearse(strategy, crowd, self.truth, queries, np.random.default_rng([seed, 2]), most=most)
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


def compare(cases: list[Case], seeds: int, most: int) -> Table:
    rows, gains = [], dict[str, list[float]]()
    for case in cases:
        tell(case.name)
        truth = case.world(0).truth
        for attributes in ATTRIBUTES:
            scores = []
            for seed in range(seeds):
                task = Task.draw(truth, attributes, seed)
                guided = task.found(case, seed, most, LATE)
                unguided = task.found(case, seed, most, LATE, guided=False)
                moments = ((guided, SOON), (unguided, SOON), (unguided, LATE), (guided, LATE))
                scores.append([task.auc(columns[min(query, len(columns)) - 1]) for columns, query in moments])
            means = np.mean(scores, axis=0)
            gains.setdefault(case.name, []).append(means[0] - means[2])
            figures = [mean_of(column, 3) for column in np.transpose(scores)]
            rows.append([case.name, "{} × {}".format(*truth.shape), attributes, *figures])
    by_case = [float(np.mean(each)) for each in gains.values()]
    ahead = sum(gain >= 0 for gain in by_case)
    note = (
        f"Towards the target after {SOON} questions, less unguided after {LATE}: {np.mean(by_case):+.3f} on average; "
        f"not below it on {ahead} of {len(by_case)} matrices. {seeds} seeds."
    )
    columns = ["data", "examples × features", "attributes"]
    columns += [f"towards it, {SOON}", f"unguided, {SOON}", f"unguided, {LATE}", f"towards it, {LATE}"]
    return Table(f"AUC on held-out examples after {SOON} and {LATE} questions", columns, rows, [note])


def false_findings(cases: list[Case], seeds: int, most: int) -> Table:
    findings = [
        task.is_found(task.found(case, seed, most, SOON)[-1])
        for case in cases
        for seed in range(seeds)
        for task in [Task.draw(case.world(0).truth, 0, seed)]
    ]
    return Table(
        "Targets that nothing predicts",
        ["runs", "that say the features predict it", "share", "stated level"],
        [[len(findings), sum(findings), round(float(np.mean(findings)), 3), LEVEL]],
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    add_matrices(parser, seeds=8)
    parser.add_argument("--per-question", type=at_least_one, default=3, metavar="K", help="features an answer may hold")


def run(options: argparse.Namespace) -> list[Table]:
    cases = [of_matrix(path) for path in [*SHIPPED, *options.matrices]]
    return [make(cases, options.seeds, options.per_question) for make in (compare, false_findings)]
