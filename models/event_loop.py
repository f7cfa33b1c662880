"""An event loop in a thread of its own, for asynchronous work started from any thread or from inside another loop."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")
CLOSING_SECONDS = 3.0


class Background:
    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._last: list[Callable[[], Awaitable[None]]] = []
        thread = threading.Thread(target=_run, args=(self.loop, self._last), name=name, daemon=True)
        thread.start()
        # Runs at the latest when the interpreter exits: no thread, socket or warning is left behind.
        self._finish = weakref.finalize(self, _stop, self.loop, thread)

    def start(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def at_close(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run in the loop before it ends."""
        self._last.append(work)

    def close(self) -> None:
        self._finish()


def _run(loop: asyncio.AbstractEventLoop, last: list[Callable[[], Awaitable[None]]]) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(_cancel_all())
        for work in last:
            loop.run_until_complete(work())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def _cancel_all() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():  # garbage may be collected in that very thread
            thread.join(CLOSING_SECONDS)
