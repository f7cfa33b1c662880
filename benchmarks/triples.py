"""How fast unresolved triples are drawn, beside naive enumeration.

    python -m benchmarks.triples               10² to 10⁶ examples, of 10⁴ also a run to its end
    python -m benchmarks.triples --quick       only up to 10⁴ examples
    python -m benchmarks.triples --to-the-end  10⁵ examples to the end as well, in the hardest case: some two minutes

Each case runs in a process of its own, so that its peak memory is its own. Times are seconds of CPU."""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks.machine import heading
from discovery.questions import Labels
from discovery.unresolved.packed_labels import PackedLabels
from discovery.unresolved.survey import count_unresolved_triples
from discovery.unresolved.triples import UnresolvedTriples

SEED = 1
HALF = (0.5, 0.5)  # every feature is true of half the examples: the fewest triples stay unresolved
MIXED = (0.05, 0.5)  # each feature's frequency is drawn from this range
BLOCK = 1 << 16  # triples that are enumerated at once
NAIVE_SECONDS = 20.0  # enumeration is broken off after this and extrapolated


@dataclass(frozen=True)
class Case:
    n: int
    features: int
    frequencies: tuple[float, float]
    draws: int  # after each feature
    enumerate_too: bool = False
    to_the_end: bool = False  # after the last feature, ask all that is left until nothing is


@dataclass(frozen=True)
class Result:
    draw: float
    slowest: float
    update: float
    total: float
    unresolved: str
    naive: float | None
    extrapolated: bool
    megabytes: float


SMALL = [
    Case(100, 20, HALF, draws=1, enumerate_too=True),
    Case(1_000, 20, HALF, draws=1, enumerate_too=True),
    Case(10_000, 20, HALF, draws=1, enumerate_too=True),
    Case(10_000, 40, HALF, draws=1, to_the_end=True),
]
LARGE = [
    Case(100_000, 60, MIXED, draws=10),
    Case(1_000_000, 60, MIXED, draws=10),
    Case(1_000_000, 30, HALF, draws=10),
]
REMARK = """Means are over all draws, the slowest included. A run to the end finds the last few unresolved triples by
joining every pair of examples once, nearly all of its time: seconds at 10⁴ examples, most of a minute at 10⁵. With all
frequencies ½ and run to the end, 10⁵ examples miss the aim of 50 ms for a mean draw by that one join, unless numba
compiles it (optional, in requirements-scale.txt; the triples are the same); two threads were no faster than one.
`discover` compares 2,000 examples of so large a set unless told otherwise (`--elicit-on`)."""
HARDEST = [Case(100_000, 60, HALF, draws=10, to_the_end=True)]


def labels_of(case: Case) -> Iterator[Labels]:
    rng = np.random.default_rng(SEED)
    for _ in range(case.features):
        yield (rng.random(case.n) < rng.uniform(*case.frequencies)).astype(np.int8)


def run(case: Case) -> Result:
    triples = UnresolvedTriples(case.n, np.random.default_rng(SEED))
    updates, draws = [], []
    for labels in labels_of(case):
        updates.append(seconds(lambda labels=labels: triples.add(labels)))  # type: ignore[misc]
        draws += [seconds(lambda: ask(triples)) for _ in range(case.draws)]
    while case.to_the_end and triples.count():
        draws.append(seconds(lambda: ask(triples)))
    unresolved = f"{triples.share:.1e}" if triples.share_is_exact else f"about {triples.share:.0e}"
    total = sum(updates) + sum(draws)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    naive, extrapolated = enumeration(case) if case.enumerate_too else (None, False)
    means = float(np.mean(draws)), max(draws), float(np.mean(updates))
    return Result(*means, total, unresolved, naive, extrapolated, memory)


def ask(triples: UnresolvedTriples) -> None:
    triple = triples.draw()
    if triple is not None:
        triples.retire(triple)


def enumeration(case: Case) -> tuple[float, bool]:
    """Time to test every triple and draw one of the unresolved; whether that was extrapolated."""
    packed = PackedLabels(case.n)
    for labels in labels_of(case):
        packed.add(labels)
    has = packed.has[0]  # at most 64 features, and no label is missing
    started, tested, unresolved = time.process_time(), 0, 0
    for a in range(case.n - 2):
        rest = has[a + 1 :]
        for start in range(0, rest.size - 1, step := max(1, BLOCK // rest.size)):
            y, z = rest[start : start + step, None], rest[None, start + 1 :]
            two = ((has[a] & y) | ((has[a] | y) & z)) & ~(has[a] & y & z)
            unresolved += int(np.triu(two == 0).sum())
            tested += sum(range(z.size - y.size + 1, z.size + 1))
        if (spent := time.process_time() - started) > NAIVE_SECONDS:
            return spent / tested * (case.n * (case.n - 1) * (case.n - 2) // 6), True
    np.random.default_rng(SEED).integers(max(unresolved, 1))
    spent = time.process_time() - started
    assert unresolved == count_unresolved_triples(packed), "enumeration and join disagree"
    return spent, False


def seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def row(case: Case, result: Result) -> str:
    frequencies = "½" if case.frequencies == HALF else "{}–{}".format(*case.frequencies)
    naive = "" if result.naive is None else f"{result.naive:.3g}{' (extrapolated)' if result.extrapolated else ''}"
    faster = "" if result.naive is None else f"{result.naive / (result.draw + result.update):,.0f}"
    end = ", to the end" if case.to_the_end else ""
    cells = [f"{case.n:,}", f"{case.features}{end}", frequencies, result.unresolved, f"{1000 * result.update:.2f}"]
    cells += [f"{1000 * result.draw:.3f}", f"{1000 * result.slowest:.1f}", f"{result.total:.2f}", naive, faster]
    return "| " + " | ".join([*cells, f"{result.megabytes:.0f}"]) + " |"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.triples", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only up to 10⁴ examples (under a minute)")
    parser.add_argument("--to-the-end", action="store_true", help="10⁵ examples to the end as well (some two minutes)")
    chosen = parser.parse_args(arguments)
    cases = SMALL + ([] if chosen.quick else LARGE) + (HARDEST if chosen.to_the_end else [])
    print(heading(" ".join(["python -m benchmarks.triples", *arguments]), SEED))
    print("| examples | features | frequencies | unresolved share | update, ms | draw, ms | slowest draw, ms ", end="")
    print("| all updates and draws, s | one enumeration, s | times faster than it | peak memory, MB |")
    print("|" + "---:|" * 11)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        for case in cases:
            print(row(case, pool.submit(run, case).result()), flush=True)
    print(f"\n{REMARK}")


if __name__ == "__main__":
    main(sys.argv[1:])
