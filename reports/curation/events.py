"""Logs of events in a run folder: lines are appended by one writer at a time, and never changed.

A line that a crash has left unfinished is no event: readers pass over it, and the next writer removes it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from twothirds.reports.run import RunError

Event = dict[str, Any]


class StaleEdit(RunError):
    """Somebody else was quicker: what a person saw has changed since, so that the edit is refused."""

    def __init__(self, changed: list[str]) -> None:
        super().__init__(
            f"this has changed since it was shown ({'; '.join(changed)}): look at it again, then repeat it"
        )
        self.changed = changed


def read_events(path: Path) -> list[Event]:
    """Raises RunError for a file that holds anything but events."""
    try:
        return _parsed(path.read_bytes())[0]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, error) from None


def append_events(path: Path, make: Callable[[list[Event]], list[Event]]) -> list[Event]:
    """Append what `make` makes of the events so far, and return it. No other writer comes between."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            before, finished = _parsed(file.read())
        except (ValueError, RecursionError) as error:
            raise _unreadable(path, error) from None
        if new := make(before):
            file.seek(0)
            file.truncate(len(finished))
            file.seek(0, os.SEEK_END)
            file.write((b"\n" if finished and not finished.endswith(b"\n") else b"") + b"".join(map(_line, new)))
            file.flush()
            os.fsync(file.fileno())
        return new


def _line(event: Event) -> bytes:
    """Half a pair of surrogates is written as JSON escapes it."""
    return json.dumps(event, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _parsed(content: bytes) -> tuple[list[Event], bytes]:
    """The events, and the part of the file that holds them."""
    finished, end, rest = content.rpartition(b"\n")
    events = [json.loads(line) for line in finished.split(b"\n") if line.strip()]
    finished += end
    if rest.strip():
        with suppress(ValueError):  # written by hand without an end of line; else unfinished
            events.append(json.loads(rest))
            finished = content
    if not all(isinstance(event, dict) for event in events):
        raise ValueError("a line is not an object")
    return events, finished


def _unreadable(path: Path, error: Exception) -> RunError:
    return RunError(f"{path} cannot be read ({error}): correct the line, or move the file away")
