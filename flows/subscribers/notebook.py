"""What a notebook shows: one line below the cell that says how far the run is, and what it has to say above it."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

from twothirds.flows.events import SILENT, Event, Events, Notice, Progressed, StepEnded, StepStarted, Waiting
from twothirds.sources import printable

REFRESH_SECONDS = 0.5


class NotebookProgress:
    """What was counted stays."""

    def __init__(self) -> None:
        self._line: Any = None
        self._shown_at = 0.0
        self._counted = ""  # the newest count, whether it was shown or came too soon after another

    def __call__(self, event: Event) -> None:
        match event:
            case Notice(message, quiet=False):
                print(printable(message))
            case StepStarted(counted=True):
                self._shown_at, self._counted = 0.0, ""
            case StepStarted(step):
                self._show(f"{step} …")
            case Progressed(done, unit, detail, total):
                self._counted = f"{done}{'' if total is None else f'/{total}'} {unit}: {detail}"
                self._show_soon(self._counted)
            case Waiting(message=message) if message:
                self._show_soon(message)
            case StepEnded(step):
                self._end(step)

    def _end(self, step: str) -> None:
        if self._counted:
            self._show(self._counted)
            self._line, self._counted = None, ""
        else:
            self._show(f"{step}: done")

    def _show_soon(self, text: str) -> None:
        if time.monotonic() - self._shown_at >= REFRESH_SECONDS:
            self._shown_at = time.monotonic()
            self._show(text)

    def _show(self, text: str) -> None:
        ipython: Any = import_module("IPython.display")  # only a notebook has it
        line = ipython.Pretty(printable(text))
        if self._line is None:
            self._line = ipython.display(line, display_id=True)
        else:
            self._line.update(line)


def events_for_python() -> Events:
    """The stream of a caller from Python: a notebook shows progress, a script nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return Events(NotebookProgress()) if hasattr(shell, "kernel") else SILENT
