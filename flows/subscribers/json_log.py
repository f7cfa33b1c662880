"""Lines on stderr for programs: each is a JSON object with time, level and message, and progress has its numbers."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

from twothirds.flows.endings import clean
from twothirds.flows.events import Event, Notice, Progressed, StepStarted, Waiting

LINE_SECONDS = 10.0  # between two lines on how far something is


def log_line(level: str, message: str, **more: Any) -> None:
    """One JSON object on a line of stderr."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {"time": now, "level": level, "message": clean(message), **more}
    print(json.dumps(line, ensure_ascii=True), file=sys.stderr, flush=True)


class JsonLog:
    """What is for the log of a run alone is told too."""

    def __init__(self) -> None:
        self._told = 0.0

    def __call__(self, event: Event) -> None:
        match event:
            case Notice(message):
                log_line("info", message)
            case StepStarted(counted=True):
                self._told = time.monotonic()
            case StepStarted(step):
                log_line("info", step)
            case Progressed(done, unit, detail, total) if self._is_due():
                log_line("info", detail, done=done, total=total, unit=unit)
            case Waiting(message=message) if message and self._is_due():
                log_line("info", message)

    def _is_due(self) -> bool:
        due = time.monotonic() - self._told >= LINE_SECONDS
        if due:
            self._told = time.monotonic()
        return due
