"""What a discovery does as it happens, for pages that follow it: the events as lines of live.jsonl in the run folder.

Every execution starts it again. A run that goes on after a kill replays its questions, so that the file ends as if it
had never stopped. It is locked while it is written, by which readers tell whether the run goes on."""

from __future__ import annotations

import fcntl
import json
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from twothirds.flows.events import Event, Notice, StepEnded, StepStarted, to_json
from twothirds.reports.run import LIVE, LiveRun


class LiveLog:
    """A file that cannot be written is done without: nobody can follow the run then. Notices and steps are for whoever
    started the run: they may name paths of the machine."""

    def __init__(self, folder: Path | None, scope: str) -> None:
        """Without a folder nothing is written."""
        self._path = folder / LIVE if folder else None
        self._scope, self.reached = scope, 0
        self._file: IO[str] | None = None

    def __enter__(self) -> LiveLog:
        if self._path is None:
            return self
        self.reached = LiveRun(self._path).reached(self._scope)  # by earlier executions, which are forgotten now
        with suppress(OSError):
            file = self._path.open("a", encoding="utf-8", errors="backslashreplace")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.truncate(0)
                self._file = file
            except OSError:  # another execution in the same folder writes it
                file.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def __call__(self, event: Event) -> None:
        if self._file is None or isinstance(event, Notice | StepStarted | StepEnded):
            return
        with suppress(OSError):
            self._file.write(json.dumps(to_json(event), ensure_ascii=False) + "\n")
            self._file.flush()
