"""A server of a run's own is stopped only after the history of the run has reached its database."""

from __future__ import annotations

import time
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker

PATIENCE_SECONDS = 20.0  # a busy machine may take so long; where history is there, nobody waits
HURRIED_SECONDS = 1.0  # where somebody waits for the end


def send_history(patience: float = PATIENCE_SECONDS) -> None:
    """Hand over the events and log lines that Prefect's client still holds back."""
    EventsWorker.drain_all(timeout=patience, at_exit=False)
    APILogWorker.drain_all(timeout=patience, at_exit=False)


def wait_for_history(flow_run_id: UUID, last_task: str) -> None:
    """Wait until the server knows that the run's last task has ended, and with it all the others."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    this_run = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id]))
    with get_client(sync_client=True) as client:
        while time.monotonic() < deadline:
            runs = client.read_task_runs(flow_run_filter=this_run)
            ended = all(run.state is not None and run.state.is_final() for run in runs)
            if ended and any(run.name.startswith(last_task) for run in runs):
                return
            time.sleep(0.1)
