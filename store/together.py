"""Writes that threads want at the same moment, in one transaction: a commit costs more than most of what is written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from sqlalchemy import Connection

T = TypeVar("T")
Work = Callable[[Connection], Any]
MOST = 64  # works in one transaction, so that nobody waits long for the others


@dataclass(eq=False)
class _Waiting:
    work: Work
    woken: threading.Event = field(default_factory=threading.Event)
    done: bool = False
    result: Any = None
    error: Exception | None = None


class Together:
    """The first thread that comes writes; those that come meanwhile wait, and one of them then writes for all of them.
    `transact` runs a work in a transaction and returns when it is committed, and a work may be run again."""

    def __init__(self, transact: Callable[[Work], Any]) -> None:
        self._transact = transact
        self._lock = threading.Lock()
        self._queue: list[_Waiting] = []
        self._is_led = False

    def write(self, work: Callable[[Connection], T]) -> T:
        mine = _Waiting(work)
        with self._lock:
            self._queue.append(mine)
            waits, self._is_led = self._is_led, True
        if waits:
            self._wait(mine)
        if not mine.done:
            self._lead(mine)
        if mine.error is not None:
            raise mine.error
        return cast("T", mine.result)

    def _wait(self, mine: _Waiting) -> None:
        try:
            mine.woken.wait()
        except BaseException:  # this thread is interrupted: the others go on without it
            with self._lock:
                self._queue = [one for one in self._queue if one is not mine]
                leads = mine.woken.is_set() and not mine.done
                self._is_led = bool(self._queue) if leads else self._is_led
                successor = self._queue[:1] if leads else []
            for one in successor:
                one.woken.set()
            raise

    def _lead(self, mine: _Waiting) -> None:
        with self._lock:
            batch, self._queue = self._queue[:MOST], self._queue[MOST:]
        try:
            self._commit(batch)
        finally:
            with self._lock:
                # Those that an interrupt of this thread left undone go first.
                self._queue = [one for one in batch if not one.done and one is not mine] + self._queue
                self._is_led = bool(self._queue)
                woken = [one for one in batch if one.done and one is not mine] + self._queue[:1]
            for one in woken:
                one.woken.set()

    def _commit(self, batch: list[_Waiting]) -> None:
        """One for all; where any of them fails, each alone, so that it alone fails."""
        try:
            results = self._transact(lambda connection: [one.work(connection) for one in batch])
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    self._commit([one])
            else:
                batch[0].error, batch[0].done = error, True
            return
        for one, result in zip(batch, results, strict=True):
            one.result, one.done = result, True
