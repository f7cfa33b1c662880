"""Label every example with a batch of features.

Label one batch of an enrichment, wherever the task runner puts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from models.oracle import Feature, OracleUnavailable
from models.voting import Labelled, Panel
from store import StoreError


@task(name="label", cache_policy=NO_CACHE, persist_result=False)
def label(panel: Panel, features: list[Feature]) -> Labelled:
    return panel.label(features)


Batch = TypeVar("Batch")
Marks = TypeVar("Marks")


def _worth_a_retry(_task: Any, _run: TaskRun, state: State[Any]) -> bool:
    """A server or a store that is away may come back; nothing else gets better by waiting."""
    return isinstance(state.result(raise_on_failure=False), OracleUnavailable | StoreError)


@task(
    name="label batch",
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=[5, 30],
    retry_condition_fn=_worth_a_retry,
)
def label_batch(labeller: Callable[[Batch], Marks], batch: Batch) -> Marks:
    return labeller(batch)
