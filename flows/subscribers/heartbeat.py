"""Every minute a line: what is waited for where no answer came, or how many came and when the last one will."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from types import TracebackType
from typing import TYPE_CHECKING

from twothirds.flows.events import Event, Events, Notice
from twothirds.models import Crowd, OracleError, in_usd

if TYPE_CHECKING:
    from twothirds.store import Totals

BEAT_SECONDS = 60.0


class Heartbeat:
    """Tells `events` from a thread of its own, while it is entered. How many answers came is only logged where the run
    has told something since: so it is given to the stream of the run. `expected` is how many answers it takes."""

    def __init__(
        self, events: Events, totals: Callable[[], Totals], crowd: Crowd, expected: Callable[[], int] = lambda: 0
    ) -> None:
        self._events, self._totals, self._crowd, self._expected = events, totals, crowd, expected
        self._heard, self._over, self._began = False, threading.Event(), time.monotonic()
        context = copy_context()  # by which log lines find Prefect's server
        self._thread = threading.Thread(target=context.run, args=(self._beat,), name="heartbeat", daemon=True)

    def __call__(self, event: Event) -> None:
        if not (isinstance(event, Notice) and event.quiet):
            self._heard = True

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(BEAT_SECONDS)  # it may be reading the store, which is closed next

    def _beat(self) -> None:
        from twothirds.store import StoreError

        answers = still = 0
        while not self._over.wait(BEAT_SECONDS):
            with suppress(StoreError, OracleError):  # the run itself says what is wrong with it
                totals = self._totals()
                before, answers = answers, totals.paid_calls + totals.cached_calls
                still = still + 1 if answers == before else 0
                heard, self._heard = self._heard, False
                if still and not self._over.is_set():
                    self._events.say(self._waits_for(still))
                    continue
                line = f"{answers:,} answers so far{self._speed(totals)}, {in_usd(totals.paid)}"
                self._events.emit(Notice(line, quiet=heard or self._over.is_set()))

    def _speed(self, totals: Totals) -> str:
        """How many answers come in a minute, and when the last one will."""
        from twothirds.studio.web import duration

        rate = totals.paid_calls / (time.monotonic() - self._began)
        left = self._expected() - totals.paid_calls - totals.cached_calls
        end = f", about {duration(left / rate)} left" if rate and left > 0 else ""
        return f", {60 * rate:,.0f} a minute{end}" if rate else ""

    def _waits_for(self, still: int) -> str:
        waited = f"no answer for {still * BEAT_SECONDS / 60:.0f} min"
        return f"{waited}, waiting for {self._crowd.identity}: {self._crowd.ledger.traffic}"
