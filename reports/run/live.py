"""What a discovery has written about itself so far."""

from __future__ import annotations

import fcntl
import json
from itertools import islice
from os import SEEK_END
from pathlib import Path
from typing import IO, Any

MOST_EVENTS = 100_000
TAIL = 4096  # bytes in which the last event is looked for first


class LiveRun:
    """The file of a run that goes on, or has. Whoever follows it keeps one of these: it remembers how far it has read,
    so that a look reads what is new."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = self._end = 0  # events that were read, and where the last of them ends
        self._last = b""

    def events(self, after: int = 0, most: int = MOST_EVENTS) -> list[dict[str, Any]]:
        """Those after the first `after`; a line that is not finished is left for the next look."""
        with self.path.open("rb") as file:
            if not self._goes_to(file, after):
                return []
            new = [line for line in islice(file, most) if line.endswith(b"\n")]
        self._read, self._end, self._last = after + len(new), self._end + sum(map(len, new)), [self._last, *new][-1]
        return [json.loads(line) for line in new]

    def _goes_to(self, file: IO[bytes], after: int) -> bool:
        """To the end of the first `after` events, if there are as many. A run that goes on after a kill writes its file
        anew: it is read from the start unless the event that was read last is still where it was."""
        if after == self._read:
            file.seek(self._end - len(self._last))
            if file.read(len(self._last)) == self._last:
                return True
        file.seek(0)
        self._read, self._end, self._last = 0, 0, b""
        for line in islice(file, after):
            if not line.endswith(b"\n"):
                break
            self._read, self._end, self._last = self._read + 1, self._end + len(line), line
        return self._read == after

    @property
    def begun(self) -> dict[str, Any]:
        with self.path.open("rb") as file:
            line = file.readline()
        return dict(json.loads(line)) if line.endswith(b"\n") else {}

    @property
    def last(self) -> dict[str, Any]:
        """The latest event that is written whole."""
        with self.path.open("rb") as file:
            size, length = file.seek(0, SEEK_END), TAIL
            while True:
                file.seek(max(size - length, 0))
                lines = file.read(length).split(b"\n")[0 if length >= size else 1 : -1]
                if lines or length >= size:
                    return dict(json.loads(lines[-1])) if lines else {}
                length *= 8

    @property
    def state(self) -> str:
        """In words: it is running, waits for people or for other answers, has ended with its results, or is not running
        any more, because it was killed or has failed."""
        last = self.last
        if whom := last.get("whom"):
            return f"waiting for {whom}"
        if self.goes_on:
            return "running"
        return "ended" if last.get("reason", "interrupted") != "interrupted" else "not running"

    @property
    def goes_on(self) -> bool:
        """Whether a process holds the lock of who writes it."""
        with self.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return True
            return False

    def budget(self) -> str:
        """What it may cost in all, in USD: as somebody has set it while it ran, or as it began. Empty: no limit."""
        changed = (str(event["usd"]) for event in reversed(self.events()) if event.get("action") == "budget")
        return next(changed, str(self.begun.get("settings", {}).get("budget") or ""))

    def names(self) -> list[str]:
        """Of its features, without those that were vetoed."""
        found: dict[str, None] = {}
        for event in self.events():
            if event["kind"] == "FeatureLabelled":
                found[str(event["name"])] = None
            elif event["kind"] == "FeatureRejected":
                found.pop(str(event["name"]), None)
        return list(found)

    def vetoed(self) -> list[str]:
        return [str(event["name"]) for event in self.events() if event["kind"] == "FeatureRejected"]

    def reached(self, scope: str) -> int:
        """How many questions it has asked, the one that was being asked included: what was wanted since is applied
        after these, so that no answer is paid for twice. 0 of another run, or where the file cannot be read."""
        try:
            events = self.events()
            if not events or events[0].get("scope") != scope:
                return 0
            queries = asking = 0
            for event in events:
                if event["kind"] == "Progressed" and event["figures"]:
                    queries, asking = int(event["done"]), 0
                elif event["kind"] == "QuestionAsked" and event["questions"]:
                    asking = 1
            return max(queries + asking, int(events[0].get("reached", 0)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return 0
