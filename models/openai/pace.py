"""How fast a server answers, measured from its replies, so that a request ends within about a minute: how many labels
it carries, how many requests are in flight, and how long it is waited for. No answer depends on it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf

from twothirds.models.prices import Tokens

READING = 8  # tokens are read in the time in which one is written
REQUEST_SECONDS = 40.0  # that a request should take
LATENCY = 0.5  # seconds of a reply that are not the model's
SLOW_SECONDS = 5.0  # a server that is paid is taken for a slow one if a reply takes longer
UNITS_PER_LABEL = 15.0  # before the first labels
FIRST_LABELS, FIRST_WIDTH = 20, 1  # of a server of unknown speed where money is nothing
MOST_TIMEOUTS = 2  # in a row
SHORT = 75.0  # units of a first reply that tells nothing, unless it took long
RECENT = 5  # replies that tell the speed
TIMEOUT, LONGEST_TIMEOUT = 120.0, 600.0  # seconds


def units(tokens: Tokens) -> float:
    """The work of a request, in tokens written."""
    return tokens.output + max(tokens.input - tokens.cached, 0) / READING


def most_labels(rate: float, per_label: float = UNITS_PER_LABEL) -> int | None:
    """In one request to a server that writes at this rate; None where any number ends in time."""
    return max(1, int(rate * REQUEST_SECONDS / per_label)) if rate else None


class Pace:
    """`rate` is what one request has written a second, 0 where the server is fast or its speed is not known. Replies
    are noted and slots are taken in one event loop; any thread may look."""

    def __init__(self, concurrency: int, *, is_free: bool, rate: float = 0.0, width: int = 0) -> None:
        self._concurrency = concurrency
        self._shortest = LATENCY if is_free else SLOW_SECONDS
        self._replies: deque[float] = deque([rate] if rate else [], RECENT)  # rates; 0 of a fast reply
        self._per_label = UNITS_PER_LABEL
        self._best = rate
        self._adapts = is_free  # whoever is paid has room for many
        self._measured = bool(rate) or not is_free
        self.width = min(width or concurrency if self._measured else FIRST_WIDTH, concurrency)
        self._timeouts = 0  # since the last reply
        self._since = 0  # replies in a row that came while all slots were taken
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def rate(self) -> float:
        return max(self._replies, default=0.0)

    @property
    def most_labels(self) -> int | None:
        return most_labels(self.rate, self._per_label) if self._measured else FIRST_LABELS

    @property
    def is_alive(self) -> bool:
        """Whether a time-out tells of too much work rather than of a server that hangs."""
        return self._timeouts <= MOST_TIMEOUTS

    def timeout(self, most: Tokens) -> float:
        """Seconds to wait for a request of at most so many tokens."""
        return min(max(TIMEOUT, units(most) / (self.rate or inf)), LONGEST_TIMEOUT)

    def note(self, tokens: Tokens, seconds: float, labels: int = 0) -> None:
        """A reply has come after so long. Where others slow it down, fewer are sent at a time."""
        work = units(tokens)
        if not self._measured and not labels and work < SHORT and seconds < SLOW_SECONDS:
            return
        self._timeouts = 0
        self._measured = True
        if labels:
            self._per_label = work / labels
        rate = work / (seconds - LATENCY) if seconds > self._shortest else 0.0
        if rate and not self.rate:
            self._replies.clear()
        self._replies.append(rate)
        self._best = max(self._best, rate)
        if self._adapts:
            self._widen(rate)

    def _widen(self, rate: float) -> None:
        """By whether others that are in flight slow a request down: once all of them were sent since the last time."""
        if not self.rate:
            self.width = self._concurrency
        self._since = self._since + 1 if self._in_flight >= self.width else 0
        if not rate or self._since <= self.width:
            return
        self._since = 0
        if rate > 0.7 * self._best:
            self.width = min(self.width + 1, self._concurrency)
        elif rate < 0.6 * self._best:
            self.width = max(self.width - 1, FIRST_WIDTH)

    def note_timeout(self, most: Tokens, seconds: float) -> None:
        """A request of at most so many tokens has taken longer."""
        slower = min(self.rate or inf, units(most) / seconds) / 2
        self._replies.clear()
        self._replies.append(slower)
        self._timeouts += 1
        self._measured = True
        if self._adapts:
            self.width = min(self.width, FIRST_WIDTH)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Around a request: so many are in flight at a time."""
        try:
            while self._in_flight >= self.width:
                self._waiting.append(turn := asyncio.get_running_loop().create_future())
                await turn
        except BaseException:
            self._wake()
            raise
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1
            self._wake()

    def _wake(self) -> None:
        """As many as may go on now: each looks for itself."""
        free = self.width - self._in_flight
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
