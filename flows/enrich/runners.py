"""Where batches are labelled: in threads of this process, or on the workers of a Dask or Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from twothirds.flows.enrich.batches import BatchFuture, LabelledBatch, Labeller, Submit
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.prefect_api.executor import TaskExecutor
from twothirds.models import LabelBatch
from twothirds.tasks import label_batch

QUIET = {"PREFECT_LOGGING_LEVEL": "ERROR", "PREFECT_LOGGING_ROOT_LEVEL": "ERROR"}  # the terminal is for results


@contextmanager
def local_submit(workers: int) -> Iterator[Submit]:
    """Threads of this process, without Prefect."""
    with ThreadPoolExecutor(workers, thread_name_prefix="label") as pool:
        yield lambda labeller, batch: pool.submit(labeller, batch)


@dataclass(frozen=True)
class _TaskFuture:
    """A batch that is a task of Prefect, and is labelled here if Prefect is lost meanwhile."""

    task: BatchFuture
    label: Callable[[], LabelledBatch]
    executor: TaskExecutor

    def result(self) -> LabelledBatch:
        return self.executor.result_of(self.task, self.label)


@contextmanager
def prefect_submit(settings: EnrichSettings, executor: TaskExecutor) -> Iterator[Submit]:
    """One Prefect task per batch on the runner that the settings name; threads of this process once Prefect is lost."""
    if executor.lost:
        with local_submit(settings.workers) as submit_here:
            yield submit_here
        return
    with local_submit(settings.workers) as submit_here, task_runner(settings) as runner:

        def submit(labeller: Labeller, batch: LabelBatch) -> BatchFuture:
            if executor.lost:
                return submit_here(labeller, batch)
            future: BatchFuture = runner.submit(label_batch, {"labeller": labeller, "batch": batch})
            return _TaskFuture(future, partial(labeller, batch), executor)

        yield submit


def task_runner(settings: EnrichSettings) -> Any:
    """Prefect's task runner, which starts a cluster of its own unless an address is given."""
    if settings.runner == "threads":
        from prefect.task_runners import ThreadPoolTaskRunner

        return ThreadPoolTaskRunner(max_workers=settings.workers)
    return _dask(settings) if settings.runner == "dask" else _ray(settings)


def _dask(settings: EnrichSettings) -> Any:
    from prefect_dask.task_runners import DaskTaskRunner

    if settings.cluster:
        return DaskTaskRunner(address=settings.cluster)
    for name, level in QUIET.items():
        os.environ.setdefault(name, level)  # the workers take it over
    own = {"n_workers": settings.workers, "threads_per_worker": 1, "dashboard_address": None}
    return DaskTaskRunner(cluster_kwargs=own)


def _ray(settings: EnrichSettings) -> Any:
    from prefect_ray.task_runners import RayTaskRunner

    if settings.cluster:
        return RayTaskRunner(address=settings.cluster)
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own workers would give way to everything else
    own = {"num_cpus": settings.workers, "include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    return RayTaskRunner(init_kwargs=own)
