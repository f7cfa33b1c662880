"""The entry of a run in the store: begun before its first question, ended however the run ends.

What a run reports while it works. The terminal's display is flows.cli.progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import BaseModel

from models import AnswersPending, OracleIdentity

if TYPE_CHECKING:
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


class Display:
    """Silent: for callers from Python and for deployments."""

    def say(self, message: str) -> None:
        pass

    @contextmanager
    def waiting(self, message: str) -> Iterator[None]:  # noqa: ARG002
        yield

    @contextmanager
    def counting(self, total: int | None, unit: str) -> Iterator[None]:  # noqa: ARG002
        """`total` is None where it is not known."""
        yield

    def update(self, done: int, detail: str) -> None:
        pass

    def note(self, detail: str) -> None:
        """Say what is being waited for while nothing is counted."""


SILENT = Display()
