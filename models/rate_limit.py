"""At most so many requests and tokens in any minute, and none while the server asks for a pause."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

MINUTE = 60.0


class RateLimit:
    """Exact over a sliding minute. A request with more tokens than a minute allows passes when it is alone in it."""

    def __init__(
        self,
        requests: int | None,
        tokens: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._requests = requests
        self._tokens = tokens
        self._clock = clock
        self._sleep = sleep
        self._recent: deque[tuple[float, int]] = deque()
        self._tokens_recent = 0
        self._not_before = 0.0
        self._turn = asyncio.Lock()

    async def admit(self, tokens: int) -> None:
        """Return when a request of so many tokens may be sent; first come, first served."""
        if self._requests is None and self._tokens is None and self._clock() >= self._not_before:
            return
        async with self._turn:
            while (wait := self._wait_for(tokens)) > 0:
                await self._sleep(wait)
            if self._requests is not None or self._tokens is not None:
                self._recent.append((self._clock(), tokens))
                self._tokens_recent += tokens

    def pause(self, seconds: float) -> None:
        """Nothing is sent for so long: the server said so to one request, and means all."""
        self._not_before = max(self._not_before, self._clock() + seconds)

    def _wait_for(self, tokens: int) -> float:
        now = self._clock()
        while self._recent and self._recent[0][0] <= now - MINUTE:
            self._tokens_recent -= self._recent.popleft()[1]
        if now < self._not_before:
            return self._not_before - now
        too_many = self._requests is not None and len(self._recent) >= self._requests
        too_much = self._tokens is not None and self._tokens_recent + tokens > self._tokens
        if self._recent and (too_many or too_much):
            return max(self._recent[0][0] + MINUTE - now, 0.001)
        return 0.0
