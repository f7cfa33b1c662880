"""The entry of a run in the store: begun before its first question, ended however the run ends."""

from __future__ import annotations

from pydantic import BaseModel

from models import AnswersPending, OracleIdentity
from store import ActiveRun, Store


def recorded_run(
    store: Store,
    run_id: str,
    scope: str,
    *,
    flow: str,
    name: str,
    dataset: str,
    oracle: OracleIdentity,
    settings: BaseModel,
) -> ActiveRun:
    """Begin a run in the store, to be used with `with`. What waits for people ends with the status "waiting"."""
    kept = settings.model_dump(mode="json")
    run = store.runs.begin(run_id, scope, name=name, flow=flow, dataset=dataset, oracle=str(oracle), settings=kept)
    run.pending = AnswersPending
    return run
