"""Test one claim of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from reports.replication_claim import Finding, Job, Scale, Topic


@task(name="replicate", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def replicate_topic(
    name: str,  # noqa: ARG001 (names the task run)
    topic: Topic,
    scale: Scale,
    jobs: list[Job],
    run: Callable[[str, list[Job]], list[Any]],
) -> Finding:
    return topic.judge(scale, run(topic.name, jobs))
