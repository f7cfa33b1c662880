"""How fast unresolved triples are drawn, beside naive enumeration.

    python -m benchmarks.discovery.triples               10² to 10⁶ examples, of 10⁴ also a run to its end
    python -m benchmarks.discovery.triples --quick       only up to 10⁴ examples

Each workload runs in a process of its own, so that its peak memory is its own. Times are seconds of CPU."""

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
class Workload:
    n: int
    features: int
    frequencies: tuple[float, float]
    draws: int  # after each feature
    enumerate_too: bool = False
    to_the_end: bool = False  # after the last feature, ask all that is left until nothing is


@dataclass(frozen=True)
class Timing:
    draw: float
    slowest: float
    update: float
    total: float
    unresolved: str
    naive: float | None
    extrapolated: bool
    megabytes: float


SMALL = [
    Workload(100, 20, HALF, draws=1, enumerate_too=True),
    Workload(1_000, 20, HALF, draws=1, enumerate_too=True),
    Workload(10_000, 20, HALF, draws=1, enumerate_too=True),
    Workload(2_000, 40, HALF, draws=1, to_the_end=True),
    Workload(10_000, 40, HALF, draws=1, to_the_end=True),
]
LARGE = [
    Workload(100_000, 60, MIXED, draws=10),
    Workload(1_000_000, 60, MIXED, draws=10),
    Workload(1_000_000, 30, HALF, draws=10),
]
REMARK = """Means are over all draws, the slowest included. A run to the end finds the last few unresolved triples by
one join of all examples, which takes nearly all of its time: 0.2 s at 2,000 examples, seconds at 10⁴.
`discover` compares a sample of 2,000 where there are more than 5,000 examples, unless `--elicit-on` asks for more."""


def labels_of(workload: Workload) -> Iterator[Labels]:
    rng = np.random.default_rng(SEED)
    for _ in range(workload.features):
        yield (rng.random(workload.n) < rng.uniform(*workload.frequencies)).astype(np.int8)


def run(workload: Workload) -> Timing:
    triples = UnresolvedTriples(workload.n, np.random.default_rng(SEED))
    updates, draws = [], []
    for labels in labels_of(workload):
        updates.append(seconds(lambda labels=labels: triples.add(labels)))  # type: ignore[misc]
        draws += [seconds(lambda: ask(triples)) for _ in range(workload.draws)]
    while workload.to_the_end and triples.count():
        draws.append(seconds(lambda: ask(triples)))
    unresolved = f"{triples.share:.1e}" if triples.share_is_exact else f"about {triples.share:.0e}"
    total = sum(updates) + sum(draws)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    naive, extrapolated = enumeration(workload) if workload.enumerate_too else (None, False)
    means = float(np.mean(draws)), max(draws), float(np.mean(updates))
    return Timing(*means, total, unresolved, naive, extrapolated, memory)


def ask(triples: UnresolvedTriples) -> None:
    triple = triples.draw()
    if triple is not None:
        triples.retire(triple)


def enumeration(workload: Workload) -> tuple[float, bool]:
    """Time to test every triple and draw one of the unresolved; whether that was extrapolated."""
    packed = PackedLabels(workload.n)
    for labels in labels_of(workload):
        packed.add(labels)
    has = packed.has[0]  # at most 64 features, and no label is missing
    started, tested, unresolved = time.process_time(), 0, 0
    for a in range(workload.n - 2):
        rest = has[a + 1 :]
        for start in range(0, rest.size - 1, step := max(1, BLOCK // rest.size)):
            y, z = rest[start : start + step, None], rest[None, start + 1 :]
            two = ((has[a] & y) | ((has[a] | y) & z)) & ~(has[a] & y & z)
            unresolved += int(np.triu(two == 0).sum())
            tested += sum(range(z.size - y.size + 1, z.size + 1))
        if (spent := time.process_time() - started) > NAIVE_SECONDS:
            return spent / tested * (workload.n * (workload.n - 1) * (workload.n - 2) // 6), True
    np.random.default_rng(SEED).integers(max(unresolved, 1))
    spent = time.process_time() - started
    assert unresolved == count_unresolved_triples(packed), "enumeration and join disagree"
    return spent, False


def seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def row(workload: Workload, timing: Timing) -> str:
    frequencies = "½" if workload.frequencies == HALF else "{}–{}".format(*workload.frequencies)
    naive = "" if timing.naive is None else f"{timing.naive:.3g}{' (extrapolated)' if timing.extrapolated else ''}"
    faster = "" if timing.naive is None else f"{timing.naive / (timing.draw + timing.update):,.0f}"
    end = ", to the end" if workload.to_the_end else ""
    cells = [
        f"{workload.n:,}",
        f"{workload.features}{end}",
        frequencies,
        timing.unresolved,
        f"{1000 * timing.update:.2f}",
    ]
    cells += [f"{1000 * timing.draw:.3f}", f"{1000 * timing.slowest:.1f}", f"{timing.total:.2f}", naive, faster]
    return "| " + " | ".join([*cells, f"{timing.megabytes:.0f}"]) + " |"


def main(arguments: list[str]) -> None:
    about = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.discovery.triples", description=about)
    parser.add_argument("--quick", action="store_true", help="only up to 10⁴ examples (under a minute)")
    chosen = parser.parse_args(arguments)
    workloads = SMALL + ([] if chosen.quick else LARGE)
    print(heading(" ".join(["python -m benchmarks.discovery.triples", *arguments]), SEED))
    print("| examples | features | frequencies | unresolved share | update, ms | draw, ms | slowest draw, ms ", end="")
    print("| all updates and draws, s | one enumeration, s | times faster than it | peak memory, MB |")
    print("|" + "---:|" * 11)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        for workload in workloads:
            print(row(workload, pool.submit(run, workload).result()), flush=True)
    print(f"\n{REMARK}")


if __name__ == "__main__":
    main(sys.argv[1:])
