"""Connections of the review page: how long one may wait for its visitor, and how many there may be.

uvicorn waits without end for a request that was sent in part, and accepts connections until no file can be opened."""

from __future__ import annotations

import asyncio
import os
import resource
from collections import Counter
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from twothirds.flows.errors import UsageError

HEAD_SECONDS = 10.0  # for a request up to its body, counted from the connection or the last response
BODY_SECONDS = 30.0  # for the body: forms are small
STALL_SECONDS = 30.0  # for the next part of a response to be taken
MIN_STALL_BYTES = 16 * 1024  # that a visitor takes of a response in that time
TICK_SECONDS = 1.0
MAX_CONNECTIONS = 1000
MIN_CONNECTIONS = 8
MAX_BACKLOG = 128


class BoundedProtocol(H11Protocol):
    """Closes connections whose visitor keeps it waiting. With `most` connections open, a new one takes the place of the
    one that waits for the longest time at the address that has the most."""

    most: ClassVar[int] = MAX_CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._state: tuple[Any, float] = (None, 0.0)  # the request, and how long the visitor may take
        self._since = self._written = self.loop.time()
        self._unwritten = 0
        self._look()
        self._tick = self.loop.call_later(TICK_SECONDS, self._check)
        if len(self.connections) > self.most:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._tick.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """The time for a head or a body is counted from its beginning: single bytes do not prolong it."""
        state = self.cycle, self._patience()
        if state != self._state:
            self._state, self._since = state, self.loop.time()

    def _patience(self) -> float:
        """How long the visitor may take for what comes next; 0 where it is our turn."""
        if self.cycle is None or self.cycle.response_complete:
            return HEAD_SECONDS
        return BODY_SECONDS if self.cycle.more_body else 0.0

    def _check(self) -> None:
        now, patience = self.loop.time(), self._state[1]
        self._tick = self.loop.call_later(TICK_SECONDS, self._check)
        unwritten = self.transport.get_write_buffer_size()
        if unwritten == 0 or unwritten <= self._unwritten - MIN_STALL_BYTES:
            self._written, self._unwritten = now, unwritten
        elif unwritten > self._unwritten:
            self._unwritten = unwritten
        if now - self._written > STALL_SECONDS:
            self.transport.abort()
        elif patience and unwritten == 0 and now - self._since > patience:
            self.transport.close()

    def _make_room(self) -> None:
        open_ones = [connection for connection in self.connections if isinstance(connection, BoundedProtocol)]
        open_ones = [connection for connection in open_ones if not connection.transport.is_closing()]
        if len(open_ones) <= self.most:
            return
        held = Counter(connection._address() for connection in open_ones)
        waiting = [connection for connection in open_ones if connection._patience()]
        longest = max(waiting, key=lambda connection: (held[connection._address()], -connection._since), default=self)
        longest.transport.abort()

    def _address(self) -> str:
        return self.client[0] if self.client else ""


def bounded_protocol(open_files: int) -> type[BoundedProtocol]:
    """With room for as many connections as this process may open files for, beside those that it has open."""
    spare = 4 * backlog(open_files) + 32  # connections that are being accepted or closed; files and the store
    most = open_files - len(os.listdir("/dev/fd")) - spare
    if most < MIN_CONNECTIONS:
        raise UsageError(
            f"only {open_files} files may be open, too few to serve the page: raise it with ulimit -n 1024"
        )

    class ReviewProtocol(BoundedProtocol):
        pass

    ReviewProtocol.most = min(most, MAX_CONNECTIONS)
    return ReviewProtocol


def backlog(open_files: int) -> int:
    """asyncio accepts so many connections at a time, before it tells a protocol of the first."""
    return min(MAX_BACKLOG, open_files // 8)


def most_open_files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
