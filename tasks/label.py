"""Label examples: all of a discovery with a batch of features, or one batch of an enrichment on any worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.runtime import task_run

from models import Feature, Labelled, OracleError, OracleUnavailable, Panel, in_usd
from sources import Example, Quarantined
from store import StoreError
from tasks.run_log import log, stopped_by, without_tracebacks

NAME_CHARS = 80  # of the name of a task run


def _label_run_name() -> str:
    names = ", ".join(feature.name for feature in task_run.parameters["features"])
    return f"label {names}"[:NAME_CHARS]


@task(name="label", task_run_name=_label_run_name, cache_policy=NO_CACHE, persist_result=False)
def label(panel: Panel, features: list[Feature]) -> Labelled:
    labelled = panel.label(features)
    votes, unusable = (
        sum(int(ballot.cast.sum()) for ballot in labelled.ballots),
        sum(int(ballot.abstained.sum()) for ballot in labelled.ballots),
    )
    log(f"{votes:,} votes on {len(panel.examples):,} examples, of which {unusable:,} unusable")
    stopped_by(labelled.stopped)
    return labelled


class ExampleBatch(Protocol):
    examples: Sequence[Example]
    features: Sequence[Feature]


class CountedBatch(Protocol):
    """What came of a batch."""

    paid_calls: int
    cached_calls: int
    cost: int
    left_out: list[Quarantined]
    stopped: OracleError | None


Batch = TypeVar("Batch", bound=ExampleBatch)
Marks = TypeVar("Marks", bound=CountedBatch)


def _batch_run_name() -> str:
    batch: ExampleBatch = task_run.parameters["batch"]
    return f"label batch of {len(batch.examples)} examples, {len(batch.features)} features"


def _is_transient(_task: Any, _run: TaskRun, state: State[Any]) -> bool:
    """A server or a store that is down may come back; nothing else gets better by waiting."""
    return isinstance(state.result(raise_on_failure=False), OracleUnavailable | StoreError)


@task(
    name="label batch",
    task_run_name=_batch_run_name,
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=[5, 30],
    retry_condition_fn=_is_transient,
)
def label_batch(labeller: Callable[[Batch], Marks], batch: Batch) -> Marks:
    without_tracebacks()  # in this process, which may be a worker of a cluster
    found = labeller(batch)
    log(f"{found.paid_calls:,} labels asked, {found.cached_calls:,} from the store, {in_usd(found.cost)}")
    for left in found.left_out:
        log(f"skipped {left.id}: {left.reason}")
    stopped_by(found.stopped)
    return found
