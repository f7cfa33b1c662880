"""Test the paper's claims, tables and figures on simulated crowds, and write the page that says what came out."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow
from pydantic import Field

from flows.prefect_api import History, run_as_flow
from flows.progress import SILENT, Display
from flows.settings import FrozenSettings
from reports.replicate import FULL, QUICK, TOPICS, ClaimResult, Job, Scale, Topic, processes, run_jobs, write_page
from reports.run import check_writable
from tasks import publish, replicate_topic

DEFAULT_OUT = "docs/replication"


class ReplicateSettings(FrozenSettings):
    """The settings of one replication."""

    quick: bool = Field(False, description="fewer and smaller simulations: two minutes instead of up to an hour")
    out: str = Field(DEFAULT_OUT, description="folder of the page and its plots")
    seed: int = Field(0, ge=0, description="seed of every random choice")
    processes: int = Field(2, ge=1, le=256, description="processes that simulate; the results do not depend on it")

    @property
    def run_name(self) -> str:
        """Of its flow run."""
        return f"seed{self.seed}"

    @property
    def command(self) -> str:
        """What to type to get the same page."""
        options = ["--quick"] if self.quick else []
        return " ".join(["python -m flows replicate", *options, f"--seed {self.seed}"])


Test = Callable[[str, Callable[[], ClaimResult]], ClaimResult]  # the name of a topic, and what tests it


@flow(name="replicate", flow_run_name="{settings.run_name}", persist_result=False)
def replicate_flow(settings: ReplicateSettings) -> list[dict[str, Any]]:
    """Every claim of the paper as a task; the summary as an artifact."""
    return _replicate(settings, SILENT, History())


def _replicate(settings: ReplicateSettings, display: Display, history: History) -> list[dict[str, Any]]:
    """Within a flow run, or after it was lost."""
    scale = QUICK if settings.quick else FULL
    summary = run_replication(settings, scale, test=history.task(replicate_topic), display=display)
    history.tell(publish, "replication", summary, f"The paper, replicated: {settings.command}")
    return summary


def run_replication(
    settings: ReplicateSettings, scale: Scale, *, test: Test = lambda _, work: work(), display: Display = SILENT
) -> list[dict[str, Any]]:
    """The whole replication as plain Python; the flow passes a task, tests nothing."""
    folder = Path(settings.out)
    check_writable(folder)
    planned = [(topic, topic.plan(scale, settings.seed)) for topic in TOPICS]
    total = sum(len(jobs) for _, jobs in planned)
    with processes(settings.processes) as pool, display.counting(total, "simulations"):
        run = _Counted(pool, total, display).run
        findings = [test(topic.name, partial(_tested, topic, scale, jobs, run)) for topic, jobs in planned]
    size = "fewer and smaller simulations than without `--quick`" if settings.quick else "the full run"
    written = f"Written on {datetime.now(UTC).date()} by `{settings.command}`: {size}."
    write_page(folder, findings, written)
    return [{"claim": found.title, "runs": found.runs, "verdict": str(found.verdict)} for found in findings]


def _tested(topic: Topic, scale: Scale, jobs: list[Job], run: Callable[[str, list[Job]], list[Any]]) -> ClaimResult:
    return topic.judge(scale, run(topic.name, jobs))


class _Counted:
    """Runs the jobs of one topic after another and shows how far all of them are."""

    def __init__(self, pool: Executor | None, total: int, display: Display) -> None:
        self._pool, self._total, self._display = pool, total, display
        self._done, self._began = 0, 0.0

    def run(self, name: str, jobs: list[Job]) -> list[Any]:
        def count() -> None:
            self._done += 1
            self._began = self._began or time.monotonic()  # the processes have started
            left = (time.monotonic() - self._began) / self._done * (self._total - self._done)
            self._display.update(self._done, f"{name}, about {_minutes(left)} left")

        return run_jobs(jobs, self._pool, count)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def run_replicate_flow(settings: ReplicateSettings, display: Display = SILENT) -> list[dict[str, Any]]:
    check_writable(Path(settings.out))
    work = partial(_replicate, settings, display)
    summary: list[dict[str, Any]] = run_as_flow(
        replicate_flow, settings, work, publish.name, "replication", display=display
    )
    return summary
