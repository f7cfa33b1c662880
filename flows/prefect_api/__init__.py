"""Prefect: servers of our own, and runs that go on when the server is lost."""

from typing import TYPE_CHECKING

from flows import on_first_use

if TYPE_CHECKING:
    from flows.prefect_api.background import BackgroundServer, start_in_background, stop_background_servers
    from flows.prefect_api.connection import pointing_at, starting_prefect
    from flows.prefect_api.environment import prefect_environment, state_folder
    from flows.prefect_api.history import History
    from flows.prefect_api.runs import WAITING, artifact_key, run_as_flow
    from flows.prefect_api.servers import PASSWORD, ServerError, keep_server, kept_server

__getattr__ = on_first_use(
    __name__,
    {
        "background": "BackgroundServer start_in_background stop_background_servers",
        "connection": "pointing_at starting_prefect",
        "environment": "prefect_environment state_folder",
        "history": "History",
        "runs": "WAITING artifact_key run_as_flow",
        "servers": "PASSWORD ServerError keep_server kept_server",
    },
)
