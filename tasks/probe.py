"""Find out what the server of an oracle can do."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from models import Connects, Oracle
from tasks.run_log import log


@task(name="probe", task_run_name="probe {oracle}", cache_policy=NO_CACHE, persist_result=False)
def probe(oracle: Connects) -> None:
    oracle.connect()
    log(f"{oracle} answers")


def probed(oracle: Oracle) -> None:
    """`models.oracle.connect` as a task, which only oracles with a server need."""
    if isinstance(oracle, Connects):
        probe(oracle)
