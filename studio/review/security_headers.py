"""Middleware around every request: security headers, a limit on the size of the body, a plain page for errors."""

from __future__ import annotations

import logging

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from twothirds.studio.web import CATALOGUES, language_of

MAX_BODY_BYTES = 128 * 1024  # forms are small
POLICY = (
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'{submit}; frame-ancestors {frames}; base-uri 'none'"
)
HEADERS = {
    "Referrer-Policy": "no-referrer",  # a link grants access: it must not leak to other sites
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_log = logging.getLogger(__name__)
MTURK_WORKER_SITE = "https://worker.mturk.com"  # shows a task to workers; it is submitted to another address
TASK_PATH = "/task/"  # pages that a marketplace shows in an iframe


class TooLarge(Exception):
    pass


class SecurityHeaders:
    def __init__(self, app: ASGIApp, submit_addresses: tuple[str, ...] = ()) -> None:
        self._app = app
        self._own = POLICY.format(submit="", frames="'none'")
        where = " ".join(submit_addresses)
        frames = " ".join((*submit_addresses, MTURK_WORKER_SITE)) if where else "'none'"
        self._framed = POLICY.format(submit=f" {where}" if where else "", frames=frames)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False
        policy = self._framed if scope["path"].startswith(TASK_PATH) else self._own

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", policy)  # a page that needs another says so itself
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                headers.add_vary_header("Accept-Language")
            await send(message)

        try:
            await self._app(scope, _limited(scope, receive), guarded)
        except TooLarge:
            if not started:
                await _plain(guarded, scope, 413, "title.413", "error.large")
        except ClientDisconnect:
            pass  # nobody is there to be answered, and nothing has failed
        except Exception:
            _log.exception("a request failed")
            if not started:
                await _plain(guarded, scope, 500, "title.error", "error.other")


def _limited(scope: Scope, receive: Receive) -> Receive:
    announced = dict(scope["headers"]).get(b"content-length", b"0")
    too_much = not announced.isdigit() or len(announced) > 12 or int(announced) > MAX_BODY_BYTES
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        if too_much:
            raise TooLarge
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MAX_BODY_BYTES:
            raise TooLarge
        return message

    return limited


async def _plain(send: Send, scope: Scope, status: int, title: str, message: str) -> None:
    language = language_of(dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1"))
    say = CATALOGUES[language]
    head, body = f"<title>{say(title)}</title>", f"<h1>{say(title)}</h1><p>{say(message)}</p>"
    text = f"<!doctype html><html lang={language}>{head}{body}</html>"
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
