"""The examples that were not compared are labelled: how far that is, and what people want of it meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from flows.discover.live.log import LiveLog
from flows.discover.live.steered_loop import SteeredLoop
from flows.discover.live.steering import Steering
from models import Answer, Money

LOOK_SECONDS = 1.0


class WatchedRest:
    """Called with every answer; looks once a second at what is wanted."""

    def __init__(
        self, examples: int, steering: Steering, loop: SteeredLoop, live: LiveLog, cost: Callable[[], Money]
    ) -> None:
        self._examples, self._cost = examples, cost
        self._steering, self._loop, self._live = steering, loop, live
        self._answers, self._looked = 0, 0.0

    def __enter__(self) -> WatchedRest:
        self._look()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._live.rest(self._examples, self._answers, self._cost())
            self._steering.heed_in_rest(self._loop, self._live, over=True)

    def __call__(self, _answer: Answer) -> None:
        self._answers += 1
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._look()

    def _look(self) -> None:
        self._looked = time.monotonic()
        self._live.rest(self._examples, self._answers, self._cost())
        self._steering.heed_in_rest(self._loop, self._live)
