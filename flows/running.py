"""How every flow of the command line is run: against the API it is pointed at, a kept server, or one of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from prefect import tags
from prefect.client.schemas.objects import State

from flows.display import display
from flows.history import HURRIED_SECONDS, send_history, wait_for_history
from flows.local_server import prefect_api
from flows.settings import prefect_environment, state_folder


def run_with_api(start: Callable[[], State[Any]], last_task: str, *labels: str) -> State[Any]:
    """Start a flow (with `return_state=True`); a server of its own is kept until the run's history has reached it."""
    with (
        display().waiting("starting Prefect"),
        ExitStack() as opened,
    ):
        api = opened.enter_context(prefect_api(state_folder(), prefect_environment()))
        stack = opened.pop_all()
    with stack, tags("twothirds", *labels):
        try:
            state = start()
        except KeyboardInterrupt:
            send_history(HURRIED_SECONDS)  # what is not sent by now, Prefect would try to send to a server that is gone
            raise
        send_history()
        if api.own and state.is_completed() and state.state_details.flow_run_id:
            wait_for_history(state.state_details.flow_run_id, last_task)
    return state
