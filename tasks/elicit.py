"""Put one batch of comparisons to the oracle."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from models.oracle import Compare
from models.voting import Elicited, Panel


@task(name="elicit", cache_policy=NO_CACHE, persist_result=False)
def elicit(panel: Panel, questions: list[Compare]) -> Elicited:
    return panel.compare(questions)
