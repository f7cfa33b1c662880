"""Put one batch of comparisons to the oracle."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import task_run

from models import Compare, Elicited, Panel


def _run_name() -> str:
    count = len(task_run.parameters["questions"])
    return f"elicit by {count} comparison{'' if count == 1 else 's'}"


@task(name="elicit", task_run_name=_run_name, cache_policy=NO_CACHE, persist_result=False)
def elicit(panel: Panel, questions: list[Compare]) -> Elicited:
    return panel.compare(questions)
