"""What Prefect hears of a flow run: log lines, in which an operator reads what the one who started it sees, a progress
artifact, and an event for every feature that was found."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger

from twothirds.flows.endings import clean
from twothirds.flows.events import Event, FeatureLabelled, Notice, Progressed, RunStarted, StepStarted, Waiting
from twothirds.tasks import ProgressArtifact

MINUTE = 60.0  # between two lines on how far the run is


class PrefectLog:
    """Made by the thread that runs the flow; other threads tell it of events as well."""

    def __init__(self) -> None:
        self._context = copy_context()  # other threads do not know where Prefect's server is
        self._last = time.monotonic()
        try:
            self._log: logging.Logger | logging.LoggerAdapter[logging.Logger] | None = get_run_logger()
        except MissingContextError:  # no flow run
            self._log = None

    def __call__(self, event: Event) -> None:
        match event:
            case Notice(message):
                self._write(message)
            case StepStarted(step, counted=False):
                self._write(f"{step} …")
            case Progressed(done, unit, detail, total) if self._is_due():
                self._write(f"{done:,}{'' if total is None else f'/{total:,}'} {unit}: {detail}")
            case Waiting(message=message) if message and self._is_due():
                self._write(message)

    def _write(self, line: str) -> None:
        if self._log is not None:
            self._context.copy().run(self._log.info, "%s", clean(line))

    def _is_due(self) -> bool:
        due = time.monotonic() - self._last >= MINUTE
        if due:
            self._last = time.monotonic()
        return due


class PrefectProgress:
    """The share of the questions that are asked as one artifact of the flow run, and an event for every feature. `send`
    calls a function of Prefect's while its API answers."""

    def __init__(self, send: Callable[..., Any], emit: Callable[..., None]) -> None:
        self._send, self._emit = send, emit
        self._artifact: ProgressArtifact | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted(name=name, queries=queries):
                self._artifact = self._send(ProgressArtifact, f"{queries} queries on {name}")
            case Progressed(done, _, detail, total) if self._artifact is not None and event.figures and total:
                self._send(self._artifact.update, done / total, detail)
            case FeatureLabelled(name, yes=yes, given=""):
                self._emit("twothirds.feature.found", f"found {name}", feature=name, positives=yes)
