"""Prefect: servers of our own, and runs that go on when the server is lost."""

from flows.prefect_api.history import History
from flows.prefect_api.runs import WAITING, artifact_key, run_as_flow
from flows.prefect_api.servers import PASSWORD, ServerError, keep_server, kept_server, pointing_at
