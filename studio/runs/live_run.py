"""What a discovery has written about itself so far."""

from __future__ import annotations

import fcntl
import json
from itertools import islice
from pathlib import Path
from typing import Any

MOST_EVENTS = 100_000


class LiveRun:
    """The file of a run that goes on, or has."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def events(self, after: int = 0, most: int = MOST_EVENTS) -> list[dict[str, Any]]:
        """Those after the first `after`; a line that is not finished is left for the next look."""
        with self.path.open(encoding="utf-8") as file:
            lines = islice(file, after, after + most)
            return [json.loads(line) for line in lines if line.endswith("\n")]

    @property
    def begun(self) -> dict[str, Any]:
        return next(iter(self.events(most=1)), {})

    @property
    def goes_on(self) -> bool:
        """Whether a process holds the lock of who writes it."""
        with self.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return True
            return False
