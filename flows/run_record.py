"""The entry of a run in the store: begun before its first question, ended however the run ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

from models.oracle import AnswersPending, Money, OracleIdentity
from store import Store


class Spent(Protocol):
    @property
    def paid_calls(self) -> int: ...
    @property
    def cost(self) -> Money: ...


@dataclass
class RunRecord:
    """What the store records at the end of a run."""

    status: str = "failed"
    spent: Spent | None = None


@contextmanager
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
) -> Iterator[RunRecord]:
    """Enter a run in the store. Its status is "failed", or "waiting" for people, unless the block sets another."""
    kept = settings.model_dump(mode="json")
    store.begin_run(run_id, scope, name=name, flow=flow, dataset=dataset, oracle=str(oracle), settings=kept)
    record = RunRecord()
    try:
        yield record
    except AnswersPending:
        record.status = "waiting"
        raise
    finally:
        spent = record.spent
        store.end_run(run_id, record.status, {"paid_calls": spent.paid_calls, "cost": spent.cost} if spent else {})
