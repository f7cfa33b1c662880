"""What a run says, in the log of its flow run: an operator reads there what the one who started it sees."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context

from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger

from flows.prefect_api.endings import clean
from flows.progress import Display

MINUTE = 60.0  # between two lines on how far the run is


class RunLog(Display):
    """Shows everything on another display, and logs it: what is said at once, how far the run is once a minute."""

    def __init__(self, shown: Display, is_lost: Callable[[], bool] = lambda: False) -> None:
        self._shown, self._is_lost = shown, is_lost
        try:
            self._log: logging.Logger | logging.LoggerAdapter[logging.Logger] | None = get_run_logger()
        except MissingContextError:  # no flow run
            self._log = None
        self._context = copy_context()  # other threads do not know where Prefect's server is
        self._counted, self._last = "", time.monotonic()

    def log(self, *lines: str) -> None:
        self._shown.log(*map(clean, lines))
        self._write(*lines)

    def _write(self, *lines: str) -> None:
        if self._log is None or self._is_lost():
            return
        for line in lines:
            self._context.copy().run(self._log.info, "%s", clean(line))

    def say(self, message: str) -> None:
        self._shown.say(message)
        self._write(message)

    @contextmanager
    def waiting(self, message: str) -> Iterator[None]:
        self._write(f"{message} …")
        with self._shown.waiting(message):
            yield

    @contextmanager
    def counting(self, total: int | None, unit: str) -> Iterator[None]:
        self._counted = f"{'' if total is None else f'/{total:,}'} {unit}"
        with self._shown.counting(total, unit):
            yield

    def update(self, done: int, detail: str) -> None:
        self._shown.update(done, detail)
        self._log_now_and_then(f"{done:,}{self._counted}: {detail}")

    def note(self, detail: str) -> None:
        self._shown.note(detail)
        self._log_now_and_then(detail)

    def confirm(self, lines: Sequence[str]) -> bool:
        return self._shown.confirm(lines)

    def _log_now_and_then(self, line: str) -> None:
        if time.monotonic() - self._last >= MINUTE:
            self._last = time.monotonic()
            self._write(line)
