"""The way in: personal links of the owner and of editors, invitations, and the files that pages need."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import Header
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from twothirds.store.review import EDITOR, REVIEWER, Queue
from twothirds.studio.config import METRICS_PASSWORD, EditRefused
from twothirds.studio.pages import OWNER, Studio, StudioPages, for_staff
from twothirds.studio.review import PUBLIC, Authenticator, ReviewConfig, Visitor, for_role, overview_of
from twothirds.studio.views import html_response


class LoginPages(StudioPages):
    def __init__(self, studio: Studio, queue: Queue, authenticator: Authenticator, review: ReviewConfig) -> None:
        super().__init__(studio)
        self._queue, self._authenticator, self._review = queue, authenticator, review

    @for_role("GET /s/{token}", PUBLIC)
    def open_link(self, token: str) -> Response:
        invitation = self._authenticator.invitation_of(token)
        if invitation is None or invitation.ended or invitation.role not in (OWNER, EDITOR):
            raise HTTPException(403, "This page opens only with a personal link. Ask for a new one.")
        page = html_response("studio/door.html", who=invitation.person.name)
        return self._authenticator.start_session(invitation, page)

    @for_role("GET /metrics", PUBLIC)
    def metrics(self, authorization: Annotated[str, Header()] = "") -> Response:
        """For a program, which has no session: it sends the password."""
        wanted = self._config.metrics_password.get_secret_value()
        if not wanted or not hmac.compare_digest(authorization.encode(), f"Bearer {wanted}".encode()):
            raise HTTPException(403, f"Figures are for who sends the password of {METRICS_PASSWORD}.")
        return Response(self._config.metrics(), media_type="text/plain; version=0.0.4")

    @for_staff("GET /components")
    def components(self, visitor: Visitor) -> Response:
        """What pages are made of, each in its states."""
        return self.render("components.html", visitor)

    @for_role("GET /people", OWNER)
    def people(self, visitor: Visitor) -> Response:
        return self._people(visitor)

    @for_role("POST /people/invite", OWNER)
    def invite(self, visitor: Visitor) -> Response:
        name, role = visitor.form.value("name"), visitor.form.value("role")
        try:
            link = self._config.invite(name, EDITOR if role == EDITOR else REVIEWER)
        except EditRefused as refused:
            return self._people(visitor, problem=str(refused), status=422)
        return self._people(visitor, invited=name, link=link)

    @for_role("POST /people/revoke", OWNER)
    def revoke(self, visitor: Visitor) -> Response:
        """Not an owner's, who would lose the way back."""
        self._queue.people.revoke(visitor.form.value("name"), keep=[OWNER])
        return RedirectResponse("/people", 303)

    def _people(
        self, visitor: Visitor, *, problem: str = "", invited: str = "", link: str = "", status: int = 200
    ) -> Response:
        return self.render(
            "people.html",
            visitor,
            status,
            problem=problem,
            invited=invited,
            link=link,
            **overview_of(self._queue, self._review),
        )
