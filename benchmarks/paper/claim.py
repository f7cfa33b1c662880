"""A claim of the paper under test: simulations that run in one process or several, and the verdict on them."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import Any, TypeVar

import numpy as np

from benchmarks.paper.plots import Plot

T = TypeVar("T")


class Verdict(StrEnum):
    HOLDS = "holds"
    HOLDS_AS_READ = "holds only as read here"
    FAILS = "fails"
    UNDECIDED = "undecided: too few runs"


def verdict_of(holds: bool, *, as_printed: bool = True, refuted: bool = True) -> Verdict:
    """Whether the claim holds under the reading that is tested, and under the printed one; else if it is refuted."""
    if holds:
        return Verdict.HOLDS if as_printed else Verdict.HOLDS_AS_READ
    return Verdict.FAILS if refuted else Verdict.UNDECIDED


@dataclass(frozen=True)
class Scale:
    """How much is simulated: each claim says what it does at each of the three levels."""

    level: int

    def of(self, trial: T, quick: T, full: T) -> T:
        return (trial, quick, full)[self.level]


TRIAL, QUICK, FULL = Scale(0), Scale(1), Scale(2)


@dataclass(frozen=True)
class Trials:
    """Simulations of one case. A result depends on the case and its own seed alone, wherever it is computed."""

    work: Callable[..., Any]  # a module's own function, so that it can be sent to another process; takes rng last
    case: Mapping[str, Any]
    seeds: Sequence[tuple[int, ...]]

    def run(self, seed: tuple[int, ...]) -> Any:
        return self.work(**self.case, rng=np.random.default_rng(seed))


Tested = Sequence[tuple[Trials, list[Any]]]  # with the results, one per seed


def grid(**values: Iterable[Any]) -> list[dict[str, Any]]:
    """A case for each combination of the values; the last name varies fastest."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def trials_of(
    work: Callable[..., Any], cases: Iterable[Mapping[str, Any]], seed: Sequence[int], repeats: int = 1
) -> list[Trials]:
    """`repeats` simulations of each case, each with a seed of its own."""
    return [Trials(work, case, [(*seed, number, turn) for turn in range(repeats)]) for number, case in enumerate(cases)]


@dataclass(frozen=True)
class ClaimTable:
    headings: str  # separated by |, as in the page
    rows: Sequence[tuple[Any, ...]]
    caption: str = ""


@dataclass(frozen=True)
class Finding:
    """What the simulations of a claim say."""

    simulated: str
    verdict: Verdict
    because: str
    tables: Sequence[ClaimTable]
    plots: Mapping[str, Plot] = field(default_factory=dict)  # by file name
    pictures: Mapping[str, str] = field(default_factory=dict)  # SVG by file name
    runs: int | None = None  # where they are not the simulations


@dataclass(frozen=True)
class Topic:
    """A claim, table or figure of claims.toml: what to run, and what the results say."""

    name: str
    plan: Callable[[Scale, int], list[Trials]]  # scale, seed
    judge: Callable[[Scale, Tested], Finding]


@contextmanager
def processes(count: int) -> Iterator[Executor | None]:
    """`count` fresh processes, or none at all for 1: then the simulations run right here."""
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


def run_trials(planned: Sequence[Trials], pool: Executor | None) -> Tested:
    """The results in the order of the plan, whichever is done first."""
    jobs = [(trials, seed) for trials in planned for seed in trials.seeds]
    results = iter((map if pool is None else pool.map)(Trials.run, *zip(*jobs, strict=True)))
    return [(trials, [next(results) for _ in trials.seeds]) for trials in planned]
