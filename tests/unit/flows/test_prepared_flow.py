"""A flow with what was prepared for it goes along with its tasks to the workers of a cluster."""

from __future__ import annotations

import threading
from functools import partial

import cloudpickle
from prefect import tags
from prefect.context import TagsContext

from twothirds.flows.enrich.flow import enrich_flow
from twothirds.flows.prefect_api.runs import PreparedFlow, run_name


def test_it_travels_as_the_flow_that_it_stands_for() -> None:
    display = threading.RLock()  # as a console holds one: it cannot travel
    prepared = PreparedFlow(enrich_flow, partial(str, display))
    arrived = cloudpickle.loads(cloudpickle.dumps(prepared))
    assert not isinstance(arrived, PreparedFlow)
    assert (arrived.name, arrived.flow_run_name) == (prepared.name, prepared.flow_run_name) == ("enrich", run_name)


def test_its_tags_are_not_those_of_its_tasks() -> None:
    """Of each task with tags the server would be asked whether it may run."""
    seen: list[set[str]] = []
    prepared = PreparedFlow(enrich_flow, lambda: seen.append(TagsContext.get().current_tags))
    with tags("twothirds"):
        prepared.fn(settings=None)
        assert TagsContext.get().current_tags == {"twothirds"}
    assert seen == [set()]
