"""Who may see what. A signed link opens a session; every request is checked, and refusal is the default."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from itsdangerous import BadData, URLSafeSerializer

from review.forms import Form, read_form
from store.queue import Invitation, Person, Queue

COOKIE = "review"
PUBLIC, REVIEWER, ADMIN = "public", "reviewer", "admin"
LINK, SESSION, CSRF, TASK = "invitation", "session", "csrf", "task"  # what a signature is good for
SECRET = "links"  # noqa: S105 - the name under which the store keeps it

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Refusal(Exception):
    """Ends a request with a plain page."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


NO_LINK = Refusal(403, "This page opens only with a personal link. Ask whoever invited you for a new one.")


def for_role(role: str) -> Callable[[Endpoint], Endpoint]:
    """Say who may use an endpoint; one that does not say refuses everybody."""

    def mark(endpoint: Endpoint) -> Endpoint:
        endpoint.role = role  # type: ignore[attr-defined]
        return endpoint

    return mark


class Signer:
    """Signs small values for one purpose each."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def sign(self, value: Any, purpose: str) -> str:
        signed = URLSafeSerializer(self._secret, salt=f"twothirds {purpose}").dumps(value)
        return signed if isinstance(signed, str) else signed.decode()

    def read(self, token: str, purpose: str) -> Any:
        """The value, or None where a single character is not as it was signed."""
        try:
            value = URLSafeSerializer(self._secret, salt=f"twothirds {purpose}").loads(token)
        except (BadData, ValueError, UnicodeError):
            return None
        # Base64 has several spellings of the same bytes: only the one that was given out is accepted.
        return value if hmac.compare_digest(self.sign(value, purpose).encode(), token.encode()) else None

    def stamp(self, value: str, purpose: str) -> str:
        """A token that goes with the value and does not tell it."""
        return hmac.digest(self._secret.encode(), f"{purpose} {value}".encode(), "sha256").hex()

    def is_stamp(self, token: str, value: str, purpose: str) -> bool:
        return hmac.compare_digest(self.stamp(value, purpose).encode(), token.encode("utf-8", "replace"))


@dataclass(frozen=True)
class Visit:
    """One request by somebody who may make it."""

    person: Person | None
    csrf: str = ""
    form: Form = field(default_factory=Form)

    @property
    def who(self) -> Person:
        if self.person is None:
            raise NO_LINK
        return self.person


class Gate:
    """Checks every request before its endpoint runs."""

    def __init__(self, queue: Queue, signer: Signer) -> None:
        self._queue = queue
        self._signer = signer

    async def __call__(self, request: Request) -> None:
        role = getattr(getattr(request.scope.get("route"), "endpoint", None), "role", None)
        form = await read_form(request) if request.method == "POST" else Form()
        if role == PUBLIC:
            request.state.visit = Visit(None, form=form)
            return
        cookie = request.cookies.get(COOKIE, "")
        session = self._signer.read(cookie, SESSION)
        opened = session[0] if isinstance(session, list) and len(session) == 2 else None
        invitation = await run_in_threadpool(self.invitation, opened)
        if invitation is None:
            raise NO_LINK
        if role is None or invitation.person.role != role:
            raise Refusal(403, "Your link does not open this page.")
        csrf = self._signer.stamp(cookie, CSRF)
        if request.method != "GET":
            self._refuse_foreign(request, form, cookie)
        request.state.visit = Visit(invitation.person, csrf, form)

    def invitation(self, value: Any) -> Invitation | None:
        """The invitation that a signed value names, unless it is revoked or has expired."""
        return self._queue.invitation(value) if type(value) is int else None

    def _refuse_foreign(self, request: Request, form: Form, cookie: str) -> None:
        """A form counts only if it was made for this session, and was sent from a page of ours."""
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Refusal(403, "This form was sent from another site. Open your link again.")
        if not self._signer.is_stamp(form.one("csrf"), cookie, CSRF):
            raise Refusal(403, "This form is not from your session. Open your link again.")


def visit(request: Request) -> Visit:
    """What the gate let through."""
    found: Visit = request.state.visit
    return found
