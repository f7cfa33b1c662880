"""What a flow does while answers are yet to come: wait in the terminal, suspend in a deployment, or end."""

from __future__ import annotations

import time

from prefect.flow_runs import suspend_flow_run
from prefect.runtime import deployment

from twothirds.flows.endings import WAITING
from twothirds.flows.prefect_api.runs import FlowRun
from twothirds.models import AnswersPending, digest_of
from twothirds.store import Store
from twothirds.store.review import Queue

UUID_CHARS = 36


def suspend(run: FlowRun, store: Store, run_id: str, pending: AnswersPending) -> None:
    """In a deployment, end this process until the page resumes the run. Elsewhere return: the run ends, and waits to be
    started again. `run_id` is that of the store, and begins with that of the flow run."""
    in_deployment = bool(pending.items) and run.executor.tell(lambda: deployment.id) is not None
    store.queue.waits.begin(run_id, pending.items, suspended=in_deployment)
    run.end(WAITING, str(pending))
    if in_deployment:
        key = f"{digest_of(sorted(pending.items))[:16]}-{time.time_ns()}"  # never taken for an earlier one
        run.executor.tell(suspend_flow_run, key=key)
        store.queue.waits.begin(run_id, pending.items)  # not suspended, since Prefect is lost: to be run again


def resume_ready_runs(queue: Queue) -> list[str]:
    """Resume every suspended run all of whose questions are answered; which they were."""
    from uuid import UUID

    from prefect.exceptions import FlowPauseTimeout, NotPausedError, ObjectNotFound
    from prefect.flow_runs import resume_flow_run

    resumed = []
    for run_id in queue.waits.ready_runs():
        try:
            resume_flow_run(UUID(run_id[:UUID_CHARS]))
        except NotPausedError:  # it is just about to suspend, or someone has resumed it
            continue
        except (FlowPauseTimeout, ObjectNotFound):
            queue.waits.end(run_id)
            continue
        queue.waits.end(run_id)
        resumed.append(run_id)
    return resumed
