"""Prefect: servers of our own, and runs that go on when the server is lost."""

from typing import TYPE_CHECKING

from flows import on_first_use

if TYPE_CHECKING:
    from flows.prefect_api.background import BackgroundServer, start_in_background, stop_background_servers
    from flows.prefect_api.connection import pointing_at, starting_prefect
    from flows.prefect_api.endings import BUDGET, WAITING, clean, ending_of, line_of
    from flows.prefect_api.environment import prefect_environment, state_folder
    from flows.prefect_api.history import History
    from flows.prefect_api.metrics_file import writing_metrics
    from flows.prefect_api.runs import artifact_key, run_as_flow, run_in_flow
    from flows.prefect_api.servers import PASSWORD, keep_server, kept_server

__getattr__ = on_first_use(
    __name__,
    {
        "background": "BackgroundServer start_in_background stop_background_servers",
        "connection": "pointing_at starting_prefect",
        "endings": "BUDGET WAITING clean ending_of line_of",
        "environment": "prefect_environment state_folder",
        "history": "History",
        "metrics_file": "writing_metrics",
        "runs": "artifact_key run_as_flow run_in_flow",
        "servers": "PASSWORD keep_server kept_server",
    },
)
