"""Who may see what: a signed link opens a session, every request is checked, and the default is to refuse."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from itsdangerous import BadData, URLSafeSerializer

from twothirds.store.review import EDITOR, REVIEWER, REVOKED, Invitation, Person, Queue
from twothirds.studio.review.forms import Form, read_form
from twothirds.studio.web import Moment, language_of

PUBLIC = "public"
ANSWERING = (REVIEWER, EDITOR)
LINK, SESSION, CSRF, TASK = "invitation", "session", "csrf", "task"  # purposes of a signature
SECRET = "links"  # noqa: S105 - the name under which the store keeps it

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Refusal(Exception):
    """Ends a request with a plain page, whose text the catalogue has under `key`."""

    def __init__(self, status: int, key: str, **values: Any) -> None:
        super().__init__(key)
        self.status = status
        self.key = key
        self.values = values


NO_LINK = Refusal(403, "refused.link")


def ended(invitation: Invitation) -> Refusal:
    """Says that the link was revoked or has expired, and whom to ask for another."""
    when = invitation.revoked_at if invitation.ended == REVOKED else invitation.expires_at
    key = f"refused.{invitation.ended}{'.by' if invitation.by else ''}"
    return Refusal(403, key, when=Moment(when or 0.0), by=invitation.by)


def for_role(route: str, *roles: str) -> Callable[[Endpoint], Endpoint]:
    """Where an endpoint of `Pages` is served, as in `GET /admin`, and the roles that may use it; one without a role
    refuses everybody. Whether the invitation is still valid is checked in the endpoint's own thread, to save a second
    change of threads."""

    def mark(endpoint: Endpoint) -> Endpoint:
        @wraps(endpoint)
        def guarded(*arguments: Any, **named: Any) -> Any:
            if roles != (PUBLIC,):
                named["visitor"].admit(*roles)
            return endpoint(*arguments, **named)

        guarded.route, guarded.role = route, roles[0]  # type: ignore[attr-defined]
        return cast("Endpoint", guarded)

    return mark


class Pages:
    """Endpoints that `for_role` has marked, as methods: earlier ones go before later ones."""

    def router(self) -> APIRouter:
        router = APIRouter(default_response_class=Response)
        for name, method in vars(type(self)).items():
            if route := getattr(method, "route", ""):
                verb, path = route.split()
                router.add_api_route(path, getattr(self, name), methods=[verb])
        return router


class Signer:
    """Signs small values for one purpose each."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._serializers: dict[str, URLSafeSerializer] = {}

    def sign(self, value: Any, purpose: str) -> str:
        signed = self._serializer(purpose).dumps(value)
        return signed if isinstance(signed, str) else signed.decode()

    def read(self, token: str, purpose: str) -> Any:
        """The value, or None if the token is not exactly as it was signed."""
        try:
            value = self._serializer(purpose).loads(token)
        except (BadData, ValueError, UnicodeError):
            return None
        # Base64 can write the same bytes in several ways: only the one that was issued is accepted.
        return value if hmac.compare_digest(self.sign(value, purpose).encode(), token.encode()) else None

    def _serializer(self, purpose: str) -> URLSafeSerializer:
        if purpose not in self._serializers:
            self._serializers[purpose] = URLSafeSerializer(self._secret, salt=f"twothirds {purpose}")
        return self._serializers[purpose]

    def stamp(self, value: str, purpose: str) -> str:
        """An HMAC of the value."""
        return hmac.digest(self._secret.encode(), f"{purpose} {value}".encode(), "sha256").hex()

    def is_stamp(self, token: str, value: str, purpose: str) -> bool:
        return hmac.compare_digest(self.stamp(value, purpose).encode(), token.encode("utf-8", "replace"))


@dataclass
class RequestContext:
    """One request; `invitation` is set once it has been admitted."""

    form: Form
    language: str = "en"
    csrf: str = ""
    find: Callable[[], Invitation | None] = lambda: None
    invitation: Invitation | None = None

    def admit(self, *roles: str) -> None:
        """Refuse a visitor without an invitation for one of these roles."""
        invitation = self.find()
        if invitation is None:
            raise NO_LINK
        if invitation.ended:
            raise ended(invitation)
        if invitation.role not in roles:
            raise Refusal(403, "refused.role")
        self.invitation = invitation

    @property
    def admitted(self) -> Invitation:
        if self.invitation is None:
            raise NO_LINK
        return self.invitation

    @property
    def who(self) -> Person:
        return self.admitted.person

    @property
    def role(self) -> str:
        return self.admitted.role

    def still_admitted(self) -> bool:
        """Whether the invitation is still valid: asked again and again by what takes long, such as a stream."""
        invitation = self.find()
        return invitation is not None and not invitation.ended


class Authenticator:
    """Starts sessions, and checks every request before its endpoint runs."""

    def __init__(self, queue: Queue, signer: Signer, cookie: str, *, secure: bool) -> None:
        self._queue = queue
        self._signer = signer
        self._cookie, self._secure = cookie, secure

    async def __call__(self, request: Request) -> None:
        role = getattr(getattr(request.scope.get("route"), "endpoint", None), "role", None)
        form = await read_form(request) if request.method == "POST" else Form()
        language = language_of(request.headers.get("accept-language", ""))
        if role == PUBLIC:
            request.state.visit = RequestContext(form, language)
            return
        cookie = request.cookies.get(self._cookie, "")
        session = self._signer.read(cookie, SESSION)
        if role is None or not isinstance(session, list) or len(session) != 2:
            raise NO_LINK
        if request.method != "GET":
            self._refuse_foreign(request, form, cookie)
        find = partial(self._invitation, session[0])
        request.state.visit = RequestContext(form, language, self._signer.stamp(cookie, CSRF), find)

    def invitation_of(self, link: str) -> Invitation | None:
        """The invitation of a personal link, also one that has ended."""
        return self._invitation(self._signer.read(link, LINK))

    def start_session(self, invitation: Invitation, page: Response) -> Response:
        """The page with the cookie. The next click then comes from this site, so that it can be SameSite=strict."""
        session = self._signer.sign([invitation.id, secrets.token_hex(8)], SESSION)
        page.set_cookie(self._cookie, session, httponly=True, samesite="strict", secure=self._secure)
        return page

    def _invitation(self, value: Any) -> Invitation | None:
        return self._queue.people.invitation(value) if type(value) is int else None

    def _refuse_foreign(self, request: Request, form: Form, cookie: str) -> None:
        """Protection against CSRF: the form must be from this session and sent by a page of this site."""
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Refusal(403, "refused.elsewhere")
        if not self._signer.is_stamp(form.value("csrf"), cookie, CSRF):
            raise Refusal(403, "refused.session")


async def visit(request: Request) -> RequestContext:
    """The request as the authenticator admitted it. Async, because that is faster than a thread."""
    found: RequestContext = request.state.visit
    return found


Visitor = Annotated[RequestContext, Depends(visit)]
