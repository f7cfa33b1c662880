"""What a person sees while a run works, on stderr: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.status import Status
from rich.text import Text

from twothirds.flows.events import Event, Notice, Progressed, StepEnded, StepStarted, Waiting
from twothirds.sources import printable

LINE_SECONDS = 10.0  # between two lines where there is no terminal


class TerminalProgress:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: list[tuple[str, Progress | Status]] = []  # what moves on the terminal, the newest last
        self._told = 0.0

    def __call__(self, event: Event) -> None:
        match event:
            case Notice(message, quiet=False):
                self._print(message)
            case StepStarted(step, counted=True):
                self._told = time.monotonic()
                self._show(step, self._bar(event))
            case StepStarted(step):
                self._show(step, Status(Text(f"{printable(step)} …"), console=self._console))
                if not self._console.is_terminal:
                    self._print(f"{step} …")
            case StepEnded(step):
                self._hide(step)
            case Progressed(done, unit, detail, total):
                self._count(done, f"{done if total is None else f'{done}/{total}'} {unit}: {detail}", detail)
            case Waiting(message=message) if message:
                self._count(None, message, message)

    def _print(self, line: str) -> None:
        self._console.print(printable(line), soft_wrap=True)

    def _bar(self, started: StepStarted) -> Progress:
        bar = Progress(
            SpinnerColumn(),
            MofNCompleteColumn(),
            TextColumn(started.step),
            BarColumn(bar_width=24),
            TextColumn("{task.description}", markup=False),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        bar.add_task("", total=started.total)
        return bar

    def _show(self, step: str, live: Progress | Status) -> None:
        """A terminal has one thing that moves: what was there goes on when this has ended."""
        if not self._console.is_terminal:
            return
        if self._shown:
            self._shown[-1][1].stop()
        self._shown.append((step, live))
        live.start()

    def _hide(self, step: str) -> None:
        if self._shown and self._shown[-1][0] == step:
            self._shown.pop()[1].stop()
            if self._shown:
                self._shown[-1][1].start()

    def _count(self, done: int | None, line: str, detail: str) -> None:
        live = self._shown[-1][1] if self._shown else None
        if isinstance(live, Progress):
            live.update(live.task_ids[0], completed=done, description=printable(detail))
        elif time.monotonic() - self._told >= LINE_SECONDS:
            self._told = time.monotonic()
            self._print(line)
