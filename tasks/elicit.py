"""Put one batch of comparisons to the oracle: of examples, or of features that may mean the same."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import task_run

from models import Compare, Elicited, Panel, Same


def _run_name() -> str:
    questions = task_run.parameters["questions"]
    if isinstance(questions[0], Same):
        return f"tell features apart, pairs: {len(questions)}"
    return f"elicit by {len(questions)} comparison{'' if len(questions) == 1 else 's'}"


@task(name="elicit", task_run_name=_run_name, cache_policy=NO_CACHE, persist_result=False)
def elicit(panel: Panel, questions: list[Compare] | list[Same]) -> Elicited:
    return panel.compare(questions)
