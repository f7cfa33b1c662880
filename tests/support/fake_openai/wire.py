"""HTTP/1.1 over real sockets, small enough to misbehave on purpose: it can cut, hang and answer half."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        data = json.loads(self.body or b"{}")
        assert isinstance(data, dict)
        return data


@dataclass
class Response:
    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    sent: float = 1.0  # share of the body that is sent before the connection is cut
    silent: bool = False  # the connection is closed without a word
    raw: Iterable[bytes] = ()  # pieces that are sent instead of all the rest, head included, as long as they are read
    pace: float = 0.0  # seconds between two pieces

    @classmethod
    def of(cls, data: object, status: int = 200, **headers: str) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(json.dumps(data).encode(), status, {"content-type": "application/json", **named})


class Server:
    """Runs in a thread for as long as the `with` block."""

    def __init__(self, answer: Callable[[Request], Response], slots: Callable[[], int] = lambda: 0) -> None:
        """Replies that take time wait for one of so many `slots`, where it is not 0."""
        self._answer = answer
        self._slots = slots
        self._at_work = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0
        self.most_at_once = 0
        self.together = 0  # replies wait until so many requests have been there at once
        self._at_once = 0

    def __enter__(self) -> Server:
        self._thread.start()
        assert self._ready.wait(120), "the server did not start"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)

    def _run(self) -> None:
        self._loop.run_until_complete(self._listen())
        self._loop.call_soon(self._ready.set)
        self._loop.run_forever()
        self._loop.run_until_complete(self._close())
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**26, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (request := await _read(reader)) is not None and await self._respond(request, writer):
                pass
        except (ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection is still good afterwards."""
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            response = self._answer(request)
            while self.most_at_once < self.together:
                await asyncio.sleep(0.002)
            if response.delay:
                await self._work(response.delay)
        finally:
            self._at_once -= 1
        if response.silent:
            return False
        for number, piece in enumerate(response.raw):
            await asyncio.sleep(response.pace if number else 0)
            writer.write(piece)
            await writer.drain()
        if response.raw:
            return False
        head = [f"HTTP/1.1 {response.status} {REASONS.get(response.status, 'Status')}"]
        head += [f"{name}: {value}" for name, value in response.headers.items()]
        head.append(f"content-length: {len(response.body)}")
        body = response.body[: int(len(response.body) * response.sent)]
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        return response.sent == 1.0

    async def _work(self, seconds: float) -> None:
        while self._slots() and self._at_work >= self._slots():
            await asyncio.sleep(0.002)
        self._at_work += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._at_work -= 1


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    return Request(method, parts.path, dict(parse_qsl(parts.query)), headers, body)
