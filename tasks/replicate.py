"""Test one claim of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

if TYPE_CHECKING:  # other flows have no use for the claims
    from reports.replicate import ClaimResult


@task(name="replicate", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def replicate_topic(name: str, test: Callable[[], ClaimResult]) -> ClaimResult:  # noqa: ARG001 (the task run is named by it)
    return test()
