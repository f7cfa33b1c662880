"""A claim of the paper under test: jobs that run in one process or several, then a verdict with its figures."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np

from reports.drawing import Plot

T = TypeVar("T")


class ClaimVerdict(StrEnum):
    HOLDS = "holds"
    HOLDS_AS_READ = "holds only as read here"
    FAILS = "fails"
    UNDECIDED = "undecided: too few runs"


@dataclass(frozen=True)
class Scale:
    """How much is simulated: each claim says what it does at each of the three levels."""

    name: str
    level: int

    def of(self, trial: T, quick: T, full: T) -> T:
        return (trial, quick, full)[self.level]


TRIAL, QUICK, FULL = Scale("trial", 0), Scale("quick", 1), Scale("full", 2)


@dataclass(frozen=True)
class Job:
    """One piece of simulation. Its result depends on the arguments and its own seed alone, wherever it runs."""

    work: Callable[..., Any]  # a module's own function, so that it can be sent to another process; takes rng last
    arguments: Mapping[str, Any]
    seed: tuple[int, ...]

    def run(self) -> Any:
        return self.work(**self.arguments, rng=np.random.default_rng(self.seed))


def jobs_of(
    work: Callable[..., Any], cases: Sequence[Mapping[str, Any]], seed: Sequence[int], *, repeats: int = 1
) -> list[Job]:
    """`repeats` jobs per case, one case after the other, each with a seed of its own."""
    return [Job(work, case, (*seed, number, turn)) for number, case in enumerate(cases) for turn in range(repeats)]


def results_of(cases: Sequence[Any], results: list[Any]) -> list[list[Any]]:
    """The results of each case, which all have as many."""
    each = len(results) // len(cases)
    return [results[number * each : (number + 1) * each] for number in range(len(cases))]


@dataclass(frozen=True)
class ClaimTable:
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    caption: str = ""


@dataclass(frozen=True)
class ClaimResult:
    """One section of the page."""

    title: str
    claim: str
    simulated: str
    runs: int
    verdict: ClaimVerdict
    because: str
    tables: list[ClaimTable]
    remarks: tuple[str, ...] = ()
    plots: dict[str, Plot] = field(default_factory=dict)  # by file name
    pictures: dict[str, str] = field(default_factory=dict)  # SVG by file name


@dataclass(frozen=True)
class Topic:
    """A claim, table or figure that `replicate` tests: what to run, and what the results say."""

    name: str
    plan: Callable[[Scale, int], list[Job]]  # scale, seed
    judge: Callable[[Scale, list[Any]], ClaimResult]  # the results in the order of the jobs


@contextmanager
def processes(count: int) -> Iterator[Executor | None]:
    """`count` fresh processes, or none at all for 1: then the jobs run right here."""
    if count == 1:
        yield None
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, context, initializer=_leave_interrupts_to_the_parent)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_jobs(jobs: Sequence[Job], pool: Executor | None, on_done: Callable[[], None] = lambda: None) -> list[Any]:
    """The results in the order of the jobs, whichever is done first."""
    if pool is None:
        results = []
        for job in jobs:
            results.append(job.run())
            on_done()
        return results
    futures = [pool.submit(job.run) for job in jobs]
    for _ in as_completed(futures):
        on_done()
    return [future.result() for future in futures]
