"""The program of a Prefect server of our own: `python guarded_server.py PARENT_PID SOCKET`. It ends with its parent.

Any page that is open in a browser can send requests to this machine. Prefect asks for the password of
PREFECT_SERVER_API_AUTH_STRING; before that, what does not come from one of the server's own origins is refused here,
also under a name that a stranger's DNS resolves to this machine (DNS rebinding).

Imports nothing of the project, so that it starts as fast as Prefect does."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
NO_FRAMES = [(b"x-frame-options", b"DENY"), (b"content-security-policy", b"frame-ancestors 'none'")]


class OwnOriginsOnly:
    """Refuses requests for another host, from a page of another origin, and those that another site's page makes."""

    def __init__(self, app: App, origins: Iterable[str]) -> None:
        self._app = app
        self._origins = {origin.strip().lower() for origin in origins}
        self._hosts = {urlsplit(origin).netloc for origin in self._origins}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif why := self.refusal(scope):
            await _refuse(scope, send, why)
        else:
            await self._app(scope, receive, _unframed(send))

    def refusal(self, scope: Message) -> str:
        """Why a request is refused; empty if it is not."""

        def values(name: bytes) -> list[str]:
            return [value.decode("latin-1").lower() for key, value in scope["headers"] if key == name]

        hosts, origins, sites = values(b"host"), values(b"origin"), values(b"sec-fetch-site")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return "this server answers at its own address only"
        if origins:
            return "" if set(origins) <= self._origins else "this server answers pages of its own only"
        if set(sites) <= {"same-origin", "none"}:  # browsers send it, other programs do not
            return ""
        asked = (values(b"sec-fetch-mode"), values(b"sec-fetch-dest"), scope.get("method"))
        followed = asked == (["navigate"], ["document"], "GET") and not scope["path"].startswith("/api")
        return "" if followed else "this server answers pages of its own only"  # a link to a page may be anywhere


async def _refuse(scope: Message, send: Send, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": why})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": why.encode()})


def _unframed(send: Send) -> Send:
    """No other page may show this one in a frame, and have people click in it."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *NO_FRAMES]
        await send(message)

    return sent


def create_app() -> App:
    from prefect.server.api.server import create_app as create_prefect
    from prefect.settings import get_current_settings

    return OwnOriginsOnly(create_prefect(), get_current_settings().server.api.cors_allowed_origins.split(","))


def end_with_parent(parent: int) -> None:
    """Linux only: the kernel ends this process when its parent dies, even by SIGKILL."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
        if os.getppid() != parent:  # it has died before it could be asked for
            sys.exit(1)


def main() -> None:
    parent, own = map(int, sys.argv[1:])
    end_with_parent(parent)
    import uvicorn

    uvicorn.run(create_app, factory=True, fd=own, log_level="error", timeout_graceful_shutdown=2)


if __name__ == "__main__":
    main()
