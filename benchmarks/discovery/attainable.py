"""Upper bounds for strategies: how much a chooser finds that knows what no strategy can know.

    python -m benchmarks.discovery.attainable                     the matrices that ship
    python -m benchmarks.discovery.attainable MATRIX.csv ...      other matrices too: an id column, then 0/1 columns
    python -m benchmarks.discovery.attainable --per-question 3    so many features a question; Adaptive Triple has one

One chooser knows every feature and its salience, but not which ones a random member of the crowd will name. The other
knows half of the features and has to find the other half. Both ask what is expected to find the most that count."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import (
    LONG,
    SHIPPED,
    SHORT,
    Asker,
    Case,
    Variant,
    at_least_one,
    found,
    matrix_arguments,
    of_matrix,
    table,
)
from benchmarks.machine import heading
from benchmarks.rehearsal import Rehearsal, rehearse
from benchmarks.worlds import World
from discovery.metrics import DIFFERENCE, distinct, interesting
from discovery.questions import Comparison, Labels
from discovery.simulation.crowds import Matrix, WeightedCrowd
from discovery.strategies.auto import SIZE
from discovery.strategies.hypothetical import P_ANSWER_GIVEN_NONE, Bits, Floats, answers, mean_named

DRAWN = 1_000  # comparisons of each kind, of which the most promising is asked


class Seer:
    """A strategy that believes in given features. With saliences they are the true ones, and one of them is the answer;
    without, they only resemble the true ones, and weigh less after a question that they answer found another."""

    unresolved = 1.0

    def __init__(
        self, believed: Matrix, rng: np.random.Generator, salience: Floats | None = None, most: int = 1
    ) -> None:
        self._believed, self._rng, self._most, self._certain = believed, rng, most, salience is not None
        self._has: Bits = believed == 1
        self._weights = np.ones(believed.shape[1]) if salience is None else salience.copy()
        self._would_count = np.array([interesting(labels) for labels in believed.T], np.bool_)
        self._kept: list[Labels] = []
        self._names: set[str] = set()
        self._asked: dict[Comparison, tuple[Bits, float]] = {}  # which features answer, and their weight

    def next_questions(self, k: int) -> list[Comparison]:  # noqa: ARG002 (one at a time)
        best, most = None, -1.0
        for kind, size in SIZE.items():
            drawn = np.sort(self._rng.integers(len(self._has), size=(DRAWN, size)), axis=1)
            drawn = drawn[(np.diff(drawn, axis=1) > 0).all(axis=1)]
            answering = answers(kind, self._has[drawn])
            weights = np.stack([self._weights, self._weights * self._would_count], axis=1).astype(np.float32)
            mass, counting = (answering.astype(np.float32) @ weights).astype(np.float64).T
            left = (answering & (self._weights > 0)).sum(axis=1)
            named = np.minimum(left, self._most) if self._certain else mean_named(mass, self._most)
            promise = counting / (mass + 1e-9) * named
            for place in np.argsort(-promise):
                question = Comparison(kind, tuple(drawn[place].tolist()), other_than_known=True)
                if question not in self._asked:
                    if promise[place] > most:
                        best, most = (question, answering[place], float(mass[place])), float(promise[place])
                    break
        if best is None:
            return []
        self._asked[best[0]] = best[1:]
        return [best[0]]

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        answering, mass = self._asked[question]
        if not self._certain:
            named = 1.0 if len(features) < self._most else min(1.0, self._most / max(mass, 1.0))
            self._weights[answering] *= max(1 - named, P_ANSWER_GIVEN_NONE)
        for feature, its_labels in zip(features, labels, strict=True):
            self.know(feature, its_labels)

    def know(self, feature: str, labels: Labels) -> None:
        if feature in self._names:
            return
        self._names.add(feature)
        if self._certain:
            same = (self._believed == labels[:, None]).all(axis=0) & (self._weights > 0)
            self._weights[np.flatnonzero(same)[:1]] = 0.0
        if interesting(labels) and distinct(labels, self._kept):
            self._kept.append(labels)
            has, lacks = (labels == 1)[:, None], (labels == 0)[:, None]
            differing = self._has & lacks | (self._believed == 0) & has
            self._would_count &= differing.mean(axis=0) >= DIFFERENCE


@dataclass(frozen=True)
class Seeing:
    """Runs a Seer in place of a strategy."""

    believed: Callable[[int], Matrix]  # by seed
    certain: bool
    most: int

    def run(self, case: Case, seed: int) -> Rehearsal:
        world, rng = case.world(seed), np.random.default_rng([seed, 1])
        crowd = world.crowd("salience", seed)
        assert isinstance(crowd, WeightedCrowd)
        seer = Seer(self.believed(seed), rng, crowd.weight if self.certain else None, self.most)
        return rehearse(seer, crowd, world.truth, LONG, np.random.default_rng([seed, 2]), most=self.most)


def all_knowing(case: Case, most: int = 1) -> Seeing:
    return Seeing(lambda seed: case.world(seed).truth, certain=True, most=most)


def half_knowing(case: Case, most: int = 1) -> tuple[Case, Seeing]:
    """A random half of the features as a case, and one who knows the other half."""

    def half(seed: int, which: int) -> Matrix:
        truth = case.world(seed).truth
        return truth[:, np.random.default_rng([seed, 5]).permutation(truth.shape[1])[which::2]]

    seeing = Seeing(lambda seed: half(seed, 1), certain=False, most=most)
    return Case(case.name, lambda seed: World(half(seed, 0))), seeing


def compare(cases: Sequence[tuple[Case, Asker]], seer: str, seeds: int, most: int) -> str:
    rows, ratios = [], []
    others = [Variant("auto", "auto", most=most), Variant("adaptive-triple", "adaptive-triple")]
    for case, seeing in cases:
        bound, auto, triple = (found(asker, case, seeds).mean(axis=0) for asker in (seeing, *others))
        ratios.append([auto / bound, bound / triple, auto / triple])
        rows.append([case.name, *(_both(figures, 1) for figures in (bound, auto, triple))])
    rows.append(["mean", "", "", ""])
    columns = ["data", seer, *(variant.name for variant in others)]
    columns += ["auto : that", "that : adaptive-triple", "auto : adaptive-triple"]
    shares = [[_both(share, 2) for share in row] for row in (*ratios, np.mean(ratios, axis=0))]
    return table(columns, [[*row, *more] for row, more in zip(rows, shares, strict=True)]) + "\n"


def _both(figures: NDArray[np.float64], digits: int) -> str:
    return " / ".join(f"{figure:.{digits}f}" for figure in figures)


def main(arguments: list[str]) -> None:
    parser = matrix_arguments("benchmarks.discovery.attainable", __doc__)
    parser.add_argument("--per-question", type=at_least_one, default=1, metavar="K", help="features an answer may hold")
    chosen = parser.parse_args(arguments)
    most = chosen.per_question
    cases = [of_matrix(path) for path in [*SHIPPED, *chosen.matrices]]
    given = " MATRIX.csv …" if chosen.matrices else ""
    given += f" --per-question {most}" if most > 1 else ""
    print(heading(f"python -m benchmarks.discovery.attainable{given} --seeds {chosen.seeds}"))
    print(f"Interesting and distinct features after {SHORT} / {LONG} queries, means over {chosen.seeds} seeds.")
    print("First beside a chooser that knows every feature and its salience:\n")
    knowing = [(case, all_knowing(case, most)) for case in cases]
    print(compare(knowing, "knows all features", chosen.seeds, most), flush=True)
    print("Half of the features are to be found, drawn for each seed, beside a chooser that knows the other half,")
    print("and so how many examples features tend to have and which examples tend to share them:\n")
    halves = [half_knowing(case, most) for case in cases]
    print(compare(halves, "knows the other half", chosen.seeds, most), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
