"""Flows as they run once Prefect is lost: their function alone, in place of `run_flow`."""

from __future__ import annotations

from typing import Any

from twothirds.flows.prefect_api.runs import Caller
from twothirds.flows.settings import RunSettings


def run_without_prefect(flow: Any, settings: RunSettings, caller: Caller, *_labels: str) -> Any:
    caller.executor.lost = True
    flow.fn(settings.called_by(caller))
    if caller.error is not None:
        raise caller.error
    return caller.results[0]
