"""The pages of an administrator: the queue, the reviewers, the export, withdrawing answers, revoking invitations."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response, StreamingResponse

from store.review import Queue
from studio.review.access import ADMIN, Visitor, for_role
from studio.review.config import ReviewConfig
from studio.review.views import Templates


class AdminPages:
    def __init__(self, queue: Queue, config: ReviewConfig, templates: Templates) -> None:
        self._queue = queue
        self._config = config
        self._templates = templates

    def router(self) -> APIRouter:
        router = APIRouter(default_response_class=Response)
        router.add_api_route("/admin", self.overview, methods=["GET"])
        router.add_api_route("/admin/export.csv", self.export, methods=["GET"])
        router.add_api_route("/admin/withdraw", self.preview, methods=["GET"])
        router.add_api_route("/admin/withdraw", self.withdraw, methods=["POST"])
        router.add_api_route("/admin/release", self.release, methods=["POST"])
        router.add_api_route("/admin/revoke", self.revoke, methods=["POST"])
        return router

    @for_role(ADMIN)
    def overview(self, visitor: Visitor) -> Response:
        return self._templates.page(
            "admin.html",
            language=visitor.language,
            csrf=visitor.csrf,
            states=self._queue.records.states(),
            held=self._queue.leases.held(),
            disputed=self._queue.rulings.count(self._config.terms.queue),
            untouched=self._config.terms.first_seconds,
            quality=self._config.quality(self._queue.records.answers(), self._queue.records.consensus()),
            invitations=self._queue.people.invitations(),
        )

    @for_role(ADMIN)
    def export(self, visitor: Visitor) -> Response:
        del visitor
        headers = {"Content-Disposition": 'attachment; filename="answers.csv"'}
        return StreamingResponse(
            self._config.export(self._queue.records.answers()), media_type="text/csv; charset=utf-8", headers=headers
        )

    @for_role(ADMIN)
    def preview(self, visitor: Visitor, name: str = "") -> Response:
        """What withdrawing a reviewer would do."""
        person = self._queue.people.find(name)
        if person is None:
            return RedirectResponse("/admin", 303)
        effect = self._queue.withdrawals.preview(person.id)
        return self._templates.page(
            "withdraw.html", language=visitor.language, csrf=visitor.csrf, name=person.name, effect=effect
        )

    @for_role(ADMIN)
    def withdraw(self, visitor: Visitor) -> Response:
        """Discard a reviewer's answers and revoke their invitations: they would only give the same answers again."""
        person = self._queue.people.find(visitor.form.value("name"))
        if person is not None:
            self._queue.people.revoke(person.name)
            self._queue.withdrawals.withdraw(person.id)
        return RedirectResponse("/admin", 303)

    @for_role(ADMIN)
    def release(self, visitor: Visitor) -> Response:
        """End a reviewer's leases, so that others get the questions."""
        person = self._queue.people.find(visitor.form.value("name"))
        if person is not None:
            self._queue.leases.release(person.id)
        return RedirectResponse("/admin", 303)

    @for_role(ADMIN)
    def revoke(self, visitor: Visitor) -> Response:
        self._queue.people.revoke(visitor.form.value("name"))
        return RedirectResponse("/admin", 303)
