"""How Prefect is set up for our runs, by variables. Imports next to nothing, as it is needed first."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from twothirds.flows import APP
from twothirds.flows.errors import UsageError

SERVER_MINUTES = "TWOTHIRDS_SERVER_MINUTES"
DEFAULT_MINUTES = 5.0


def state_folder() -> Path:
    return Path(platformdirs.user_state_dir(APP))


def server_idle_seconds() -> float:
    """How long the Prefect server that runs share goes on when none uses it."""
    text = os.environ.get(SERVER_MINUTES) or str(DEFAULT_MINUTES)
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0
    if not 0 < minutes <= 1440:
        raise UsageError(f"{SERVER_MINUTES} {text!r}: give minutes above 0, at most 1440")
    return minutes * 60


def prefect_environment() -> dict[str, str]:
    """Write history promptly, forget it after 90 days and send no analytics; variables that the user has set win."""
    wanted = {
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    return {name: value for name, value in wanted.items() if name not in os.environ}
