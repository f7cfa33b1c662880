"""The log lines of task runs. What is a state of the world has one line, and no traceback."""

from __future__ import annotations

import logging

from prefect.context import TaskRunContext
from prefect.logging import get_run_logger

from models import OracleError
from reports.run import RunError
from sources import DatasetError
from store import StoreError

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
