"""Put one batch of comparisons to the oracle: of examples, or of features that may mean the same; and find out what its
server can do."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import task_run

from models import Compare, Connects, Elicited, Oracle, Panel, Same
from tasks.run_log import log, stopped_by


def _run_name() -> str:
    questions = task_run.parameters["questions"]
    if isinstance(questions[0], Same):
        return f"tell features apart, pairs: {len(questions)}"
    return f"elicit by {len(questions)} comparison{'' if len(questions) == 1 else 's'}"


@task(name="elicit", task_run_name=_run_name, cache_policy=NO_CACHE, persist_result=False)
def elicit(panel: Panel, questions: list[Compare] | list[Same]) -> Elicited:
    elicited = panel.compare(questions)
    answered = [answer for answer in elicited.answers if answer is not None]
    stored, named = sum(answer.cached for answer in answered), sum(len(answer.features) for answer in answered)
    log(f"{len(answered)} of {len(questions)} answered ({stored} from the store), {named} features named")
    stopped_by(elicited.stopped)
    return elicited


@task(name="probe", task_run_name="probe {oracle}", cache_policy=NO_CACHE, persist_result=False)
def probe(oracle: Connects) -> None:
    oracle.connect()
    log(f"{oracle} answers")


def probed(oracle: Oracle) -> None:
    """`models.oracle.connect` as a task, which only oracles with a server need."""
    if isinstance(oracle, Connects):
        probe(oracle)
