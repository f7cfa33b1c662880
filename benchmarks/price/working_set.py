"""What a small working set loses: features found in 35 questions by how many examples are compared.

    python -m benchmarks.price.working_set [--seeds 10]
    python -m benchmarks.price.working_set --look          labels of the whole run that looks save, and features lost

Worlds of 2,000 examples: independent features, features of 40 classes, and what can be seen in drawn faces. Features
are judged interesting and distinct on all examples, not on those that were compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import SHORT, Case, Variant, at_least_one, table
from benchmarks.faces_model.face import sample
from benchmarks.faces_model.truth import visible
from benchmarks.machine import heading
from benchmarks.worlds import World
from discovery.metrics import interesting_and_distinct
from discovery.simulation.crowds import Matrix

EXAMPLES, FEATURES = 2_000, 80
SIZES = (50, 120, 200, 400)
COMPARED = 120


def independent(rng: np.random.Generator) -> Matrix:
    shares = np.exp(rng.uniform(np.log(0.02), np.log(0.6), FEATURES))
    return (rng.random((EXAMPLES, FEATURES)) < shares).astype(np.int8)


def classes(rng: np.random.Generator, count: int = 40) -> Matrix:
    """Each example has the features of its class, one label in twenty turned over."""
    typical = rng.random((count, FEATURES)) < np.exp(rng.uniform(np.log(0.04), np.log(0.5), FEATURES))
    of_class = typical[rng.choice(count, EXAMPLES, p=rng.dirichlet(np.full(count, 0.7)))]
    return (of_class ^ (rng.random(of_class.shape) < 0.05)).astype(np.int8)


def faces(rng: np.random.Generator) -> Matrix:
    return np.array([list(visible(sample(rng)).values()) for _ in range(EXAMPLES)], dtype=np.int8)


def found(truth: Matrix, size: int, seed: int) -> int:
    """Interesting and distinct features that `auto` finds when it compares so many of the examples."""
    rows = np.random.default_rng([seed, 5]).choice(len(truth), size, replace=False)
    history = Variant("auto", "auto").run(Case("part", lambda _: World(truth[rows])), seed)
    columns = list(dict.fromkeys(column for column in history.answers[:SHORT] if column is not None))
    return sum(interesting_and_distinct(truth.T[columns]))


def looked_at(truth: Matrix, seed: int) -> NDArray[np.float64]:
    """Of a run by default, with 120 compared and three features a question: labels saved by looks, of how many, with
    those of the examples that are not compared; features lost that count on all examples, of how many."""
    n, rows = len(truth), np.random.default_rng([seed, 5]).choice(len(truth), COMPARED, replace=False)
    variant = Variant("auto", "auto", most=3, look=True, look_of=n)
    history = variant.run(Case("part", lambda _: World(truth[rows])), seed)
    columns = history.found_by(SHORT)
    counting = interesting_and_distinct(truth.T[columns])
    dropped = [history.dropped.get(column) for column in columns]
    saved = sum(n - one.seen for one in dropped if one is not None)
    lost = sum(flag and one is not None for flag, one in zip(counting, dropped, strict=True))
    return np.array([saved, n * len(columns), lost, sum(counting)], np.float64)


WORLDS: dict[str, Callable[[np.random.Generator], Matrix]] = {
    "independent features": independent,
    "40 classes": classes,
    "drawn faces": faces,
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.price.working_set")
    parser.add_argument("--seeds", type=at_least_one, default=10)
    parser.add_argument("--look", action="store_true", help="what a look before the whole saves and loses instead")
    chosen = parser.parse_args(arguments)
    seeds, rows = chosen.seeds, list[list[str]]()
    if chosen.look:
        print(heading(f"python -m benchmarks.price.working_set --look --seeds {seeds}"))
        for name, make in WORLDS.items():
            sums = np.sum([looked_at(make(np.random.default_rng([seed, 11])), seed) for seed in range(seeds)], axis=0)
            rows.append([name, f"{sums[0] / sums[1]:.1%}", f"{sums[2] / sums[3]:.1%}"])
            print(name, file=sys.stderr, flush=True)
        print(table(["world", "labels saved", "features that count lost"], rows))
        return
    for name, make in WORLDS.items():
        cells = [name]
        for size in SIZES:
            print(name, size, file=sys.stderr, flush=True)
            counts = [found(make(np.random.default_rng([seed, 11])), size, seed) for seed in range(seeds)]
            cells.append(f"{np.mean(counts):.1f} ± {np.std(counts) / np.sqrt(seeds):.1f}")
        rows.append(cells)
    print(heading(f"python -m benchmarks.price.working_set --seeds {seeds}"))
    print(f"Interesting and distinct features after {SHORT} questions, of {EXAMPLES:,} examples; mean and its error.\n")
    print(table(["world", *(f"{size} compared" for size in SIZES)], rows))


if __name__ == "__main__":
    main(sys.argv[1:])
