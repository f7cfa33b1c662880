"""The pages of an administrator: the queue, the reviewers, the export, withdrawing answers, revoking invitations, and
disputed labels in one view: who said what, the examples that define the feature, reasons, and the ruling."""

from __future__ import annotations

from typing import Any

from fastapi.responses import RedirectResponse, Response, StreamingResponse

from twothirds.store.review import ADMIN, EXEMPLARS, DisputedLabel, Queue, digests_shown
from twothirds.studio.review.access import Visitor, for_role
from twothirds.studio.review.config import OVERVIEW, ReviewConfig
from twothirds.studio.review.media import Digest, Size, picture_of
from twothirds.studio.review.views import Cards, ReviewPages
from twothirds.studio.views import html_response
from twothirds.studio.web import CATALOGUES, Catalogue


def overview_of(queue: Queue, config: ReviewConfig) -> dict[str, Any]:
    """The queue, who holds questions, how reviewers agree."""
    return {
        "states": queue.records.states(),
        "held": queue.leases.held(),
        "disputed": queue.quality.disputes(config.terms.queue),
        "untouched": config.terms.first_seconds,
        "quality": config.quality(queue.records.answers(), queue.quality.consensus()),
        "invitations": queue.people.invitations(),
    }


class AdminPages(ReviewPages):
    @for_role("GET /admin", ADMIN)
    def overview(self, visitor: Visitor) -> Response:
        if self._config.overview != OVERVIEW:
            return RedirectResponse(self._config.overview, 303)
        context = overview_of(self._queue, self._config)
        return html_response("review/admin.html", language=visitor.language, csrf=visitor.csrf, **context)

    @for_role("GET /admin/export.csv", ADMIN)
    def export(self, visitor: Visitor) -> Response:
        del visitor
        headers = {"Content-Disposition": 'attachment; filename="answers.csv"'}
        return StreamingResponse(
            self._config.export(self._queue.records.answers()), media_type="text/csv; charset=utf-8", headers=headers
        )

    @for_role("GET /admin/withdraw", ADMIN)
    def preview(self, visitor: Visitor, name: str = "") -> Response:
        """What withdrawing a reviewer would do."""
        person = self._queue.people.find(name)
        if person is None:
            return RedirectResponse(self._config.overview, 303)
        effect = self._queue.votes.preview_withdrawal(person.id)
        return html_response(
            "review/withdraw.html", language=visitor.language, csrf=visitor.csrf, name=person.name, effect=effect
        )

    @for_role("POST /admin/withdraw", ADMIN)
    def withdraw(self, visitor: Visitor) -> Response:
        """Discard a reviewer's answers and revoke their invitations: they would only give the same answers again."""
        person = self._queue.people.find(visitor.form.value("name"))
        if person is not None:
            self._queue.people.revoke(person.name)
            self._queue.votes.withdraw(person.id)
        return RedirectResponse(self._config.overview, 303)

    @for_role("POST /admin/release", ADMIN)
    def release(self, visitor: Visitor) -> Response:
        """End a reviewer's leases, so that others get the questions."""
        person = self._queue.people.find(visitor.form.value("name"))
        if person is not None:
            self._queue.leases.release(person.id)
        return RedirectResponse(self._config.overview, 303)

    @for_role("POST /admin/revoke", ADMIN)
    def revoke(self, visitor: Visitor) -> Response:
        self._queue.people.revoke(visitor.form.value("name"), keep=[ADMIN])
        return RedirectResponse(self._config.overview, 303)

    @for_role("GET /admin/disputed", ADMIN)
    def disputed(self, visitor: Visitor) -> Response:
        found = self._queue.quality.disputed(self._config.terms.queue)
        digests = [digest for dispute in found for digest in digests_shown(dispute.question)]
        say = CATALOGUES[visitor.language]
        cards = Cards(say, self._queue.questions.examples(digests), self._pictures.is_moving)
        return html_response(
            "review/disputed.html",
            language=visitor.language,
            csrf=visitor.csrf,
            disputed=[_shown(number, dispute, cards, say) for number, dispute in enumerate(found)],
        )

    @for_role("POST /admin/rule", ADMIN)
    def rule(self, visitor: Visitor) -> Response:
        """Rule on the labels that were decided; the others stay disputed."""
        form = visitor.form
        decided = {number: form.value(f"rule-{number}") for number in form.numbers("item")}
        verdicts = {number: verdict == "yes" for number, verdict in decided.items() if verdict in ("yes", "no")}
        self._queue.quality.rule(visitor.who.id, verdicts)
        return RedirectResponse("/admin/disputed", 303)

    @for_role("GET /admin/media/{digest}/{size}", ADMIN)
    def media(self, visitor: Visitor, digest: Digest, size: Size) -> Response:
        del visitor
        return picture_of(self._queue, self._pictures, digest, size)


def _shown(number: int, label: DisputedLabel, cards: Cards, say: Catalogue) -> dict[str, Any]:
    names = {True: say.plain("this has it"), False: say.plain("this lacks it")}
    known = [pair for pair in label.question.get(EXEMPLARS, ()) if pair[0] != label.question["example"]]
    return {
        "item": label.item,
        "feature": label.question["feature"][0],
        "definition": label.question["feature"][1],
        "card": cards.numbered(number, label.item, label.question["example"]),
        "exemplars": [
            cards.named(names[bool(has)], place, digest, marked=bool(has)) for place, (digest, has) in enumerate(known)
        ],
        "yes": label.yes,
        "no": label.no,
        "reasons": label.reasons,
    }
