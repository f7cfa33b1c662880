"""Runs jobs in this process or in several; the results are the same and in the same order."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from reports.replication_claim import Job


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
