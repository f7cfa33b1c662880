"""The pace of all processes that ask one server, kept in the store: each reserves its turn, a complaint slows all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from store import Rate, Store

LOOK_SECONDS = 1.0  # between two looks at whether another process was asked to pause


class SharedLimit:
    """As `RateLimit`, for whoever shares the store. Where nothing is limited, only pauses are shared."""

    def __init__(
        self,
        store: Store,
        name: str,
        rate: Rate,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store, self._name, self._rate = store, name, rate
        self._clock, self._sleep = clock, sleep
        self._not_before = 0.0
        self._looked = float("-inf")

    async def admit(self, tokens: int) -> None:
        """Return when a request of so many tokens may be sent."""
        if self._rate != Rate():
            wait = await asyncio.to_thread(self._store.reserve_turn, self._name, self._rate, tokens)
        else:
            wait = await self._pause_of_others()
        while wait > 0:
            await self._sleep(wait)
            wait = self._not_before - self._clock()

    def pause(self, seconds: float) -> None:
        self._not_before = max(self._not_before, self._clock() + seconds)
        self._store.pause(self._name, seconds)

    async def _pause_of_others(self) -> float:
        now = self._clock()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            paused = await asyncio.to_thread(self._store.paused_for, self._name)
            self._not_before = max(self._not_before, now + paused)
        return self._not_before - now
