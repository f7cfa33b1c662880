"""A server on loopback that passes every request on to another one, and keeps what was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

SECONDS = 600


class RecordingProxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, to: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.to = to
        self.bodies: list[dict[str, Any]] = []  # of what was posted and answered

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: RecordingProxy

    def do_GET(self) -> None:
        self._answer(httpx.get(self._there, timeout=SECONDS))

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        reply = httpx.post(self._there, content=content, headers={"Content-Type": "application/json"}, timeout=SECONDS)
        if reply.is_success:
            self.server.bodies.append(json.loads(content))
        self._answer(reply)

    def log_message(self, *_: object) -> None:
        pass

    @property
    def _there(self) -> str:
        return f"{self.server.to}{self.path.removeprefix('/v1')}"

    def _answer(self, reply: httpx.Response) -> None:
        self.send_response(reply.status_code)
        self.send_header("Content-Type", reply.headers.get("Content-Type", "application/json"))
        self.send_header("Content-Length", str(len(reply.content)))
        self.end_headers()
        self.wfile.write(reply.content)


@contextmanager
def recording_proxy(to: str) -> Iterator[RecordingProxy]:
    """Before a server whose base URL is `to`."""
    proxy = RecordingProxy(to)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
