"""Put batches of questions to an oracle: comparisons of examples or features, labels of a discovery, or a batch of an
enrichment on any worker; and find out what its server can do. What is a state of the world has one line in the log, and
no traceback."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import TaskRunContext
from prefect.logging import get_run_logger
from prefect.runtime import task_run

from twothirds.models import (
    Asks,
    Compare,
    Elicited,
    LabelBatch,
    OracleError,
    OracleUnavailable,
    Same,
    Votes,
    collect_answers,
    collect_votes,
    in_usd,
)
from twothirds.reports.run import RunError
from twothirds.sources import DatasetError, Quarantined
from twothirds.store import StoreError, StoreFull

NAME_CHARS = 80  # of the name of a task run
EXPECTED = (OracleError, StoreError, DatasetError, RunError)


class _Untraced(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], EXPECTED):
            record.exc_info = record.exc_text = None
        return True


_UNTRACED = _Untraced()


def without_tracebacks() -> None:
    """Prefect logs the traceback of whatever ends a run: from now on, in this process, only those of defects."""
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logging.getLogger(name).addFilter(_UNTRACED)  # one that is there already is not added again


def log(line: str) -> None:
    """In the log of the task run; nowhere where a task is called as a plain function."""
    if TaskRunContext.get() is not None:
        get_run_logger().info("%s", line)


def stopped_by(error: OracleError | None) -> None:
    """Say why a task run did not ask all of its questions."""
    if error is not None:
        log(f"stopped: {error}")


def _elicit_run_name() -> str:
    questions = task_run.parameters["questions"]
    if isinstance(questions[0], Same):
        return f"tell features apart, pairs: {len(questions)}"
    return f"elicit by {len(questions)} comparison{'' if len(questions) == 1 else 's'}"


@task(name="elicit", task_run_name=_elicit_run_name, cache_policy=NO_CACHE, persist_result=False)
def elicit(asked: Asks, questions: list[Compare] | list[Same]) -> Elicited:
    elicited = collect_answers(asked, questions)
    answered = [answer for answer in elicited.answers if answer is not None]
    stored, named = sum(answer.cached for answer in answered), sum(len(answer.features) for answer in answered)
    log(f"{len(answered)} of {len(questions)} answered ({stored} from the store), {named} features named")
    stopped_by(elicited.stopped)
    return elicited


def _label_run_name() -> str:
    names = ", ".join(feature.name for feature in task_run.parameters["batch"].features)
    return f"label {names}"[:NAME_CHARS]


@task(name="label", task_run_name=_label_run_name, cache_policy=NO_CACHE, persist_result=False)
def label(asked: Asks, batch: LabelBatch) -> Votes:
    votes = collect_votes(asked, batch)
    cast, unusable = int(votes.cast.sum()), int(votes.abstained.sum())
    log(f"{cast:,} votes on {len(batch.examples):,} examples, of which {unusable:,} unusable")
    stopped_by(votes.stopped)
    return votes


class CountedBatch(Protocol):
    """What came of a batch."""

    votes: Votes
    skipped: list[Quarantined]


Counted = TypeVar("Counted", bound=CountedBatch)


def _batch_run_name() -> str:
    batch: LabelBatch = task_run.parameters["batch"]
    return f"label batch of {len(batch.examples)} examples, {len(batch.features)} features"


def _is_transient(_task: Any, _run: TaskRun, state: State[Any]) -> bool:
    """A server or a store that is down may come back; nothing else gets better by waiting, not even a full disk."""
    error = state.result(raise_on_failure=False)
    if isinstance(error, OracleUnavailable):
        return error.may_pass
    return isinstance(error, StoreError) and not isinstance(error, StoreFull)


@task(
    name="label batch",
    task_run_name=_batch_run_name,
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=[5, 30],
    retry_condition_fn=_is_transient,
)
def label_batch(labeller: Callable[[LabelBatch], Counted], batch: LabelBatch) -> Counted:
    without_tracebacks()  # in this process, which may be a worker of a cluster
    found = labeller(batch)
    votes = found.votes
    log(f"{votes.asked:,} labels asked, {votes.stored:,} from the store, {in_usd(votes.cost)}")
    for left in found.skipped:
        log(f"skipped {left.id}: {left.reason}")
    stopped_by(votes.stopped)
    return found
