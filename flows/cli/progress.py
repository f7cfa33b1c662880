"""What a person sees while a run works, on stderr: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.status import Status
from rich.text import Text

from twothirds.flows.cli.errors import log_line
from twothirds.flows.progress import Display
from twothirds.sources import printable

LINE_SECONDS = 10.0  # between two lines where there is no terminal


class TerminalDisplay(Display):
    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._total: int | None = None
        self._unit, self._last = "", 0.0

    def say(self, message: str) -> None:
        self.shown += 1
        self._console.print(printable(message), soft_wrap=True)

    @contextmanager
    def waiting(self, message: str) -> Iterator[None]:
        if not self._console.is_terminal:
            self.say(f"{message} …")
            yield
            return
        with Status(Text(printable(message)), console=self._console):
            yield

    @contextmanager
    def counting(self, total: int | None, unit: str) -> Iterator[None]:
        self._total, self._unit, self._last = total, unit, time.monotonic()
        if not self._console.is_terminal:
            yield
            return
        with Progress(
            SpinnerColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            BarColumn(bar_width=24),
            TextColumn("{task.description}", markup=False),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        ) as self._progress:
            self._progress.add_task("", total=total)
            yield
        self._progress = None

    def update(self, done: int, detail: str) -> None:
        if self._progress is not None:
            self.shown += 1
            self._progress.update(self._progress.task_ids[0], completed=done, description=printable(detail))
        elif time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            self.say(f"{done if self._total is None else f'{done}/{self._total}'} {self._unit}: {detail}")

    def confirm(self, lines: Sequence[str]) -> bool:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        for line in lines:
            self.say(line)
        self._console.print("go on? [y/N] ", end="")
        return input().strip().casefold() in ("y", "yes")

    def note(self, detail: str) -> None:
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], description=printable(detail))
        elif time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            self.say(detail)


class JsonDisplay(Display):
    """Every line is a JSON object with time, level and message; progress has its numbers beside. What is for the log of
    a run alone is said too."""

    def __init__(self) -> None:
        self._total: int | None = None
        self._unit, self._last = "", 0.0

    def say(self, message: str) -> None:
        self.shown += 1
        log_line("info", message)

    @contextmanager
    def waiting(self, message: str) -> Iterator[None]:
        log_line("info", message)
        yield

    @contextmanager
    def counting(self, total: int | None, unit: str) -> Iterator[None]:
        self._total, self._unit, self._last = total, unit, time.monotonic()
        yield

    def update(self, done: int, detail: str) -> None:
        if time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            self.shown += 1
            log_line("info", detail, done=done, total=self._total, unit=self._unit)

    def note(self, detail: str) -> None:
        if time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            log_line("info", detail)

    def log(self, *lines: str) -> None:
        for line in lines:
            log_line("info", line)
