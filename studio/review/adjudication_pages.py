"""Disputed labels in one view: who said what, the examples that define the feature, reasons, and the ruling."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

from store.review import EXEMPLARS, DisputedLabel, Queue, digests_shown
from studio.review.access import ADMIN, Visitor, for_role
from studio.review.config import ReviewConfig
from studio.review.languages import CATALOGUES, Catalogue
from studio.review.media import BrowserPictures, Digest, Size, picture_of
from studio.review.views import Cards, Templates


class AdjudicationPages:
    def __init__(self, queue: Queue, config: ReviewConfig, templates: Templates, pictures: BrowserPictures) -> None:
        self._queue = queue
        self._config = config
        self._templates = templates
        self._pictures = pictures

    def router(self) -> APIRouter:
        router = APIRouter(default_response_class=Response)
        router.add_api_route("/admin/disputed", self.disputed, methods=["GET"])
        router.add_api_route("/admin/rule", self.rule, methods=["POST"])
        router.add_api_route("/admin/media/{digest}/{size}", self.media, methods=["GET"])
        return router

    @for_role(ADMIN)
    def disputed(self, visitor: Visitor) -> Response:
        found = self._queue.rulings.disputed(self._config.terms.queue)
        digests = [digest for dispute in found for digest in digests_shown(dispute.question)]
        say = CATALOGUES[visitor.language]
        cards = Cards(say, self._queue.items.examples(digests), self._pictures.is_moving)
        return self._templates.page(
            "disputed.html",
            language=visitor.language,
            csrf=visitor.csrf,
            disputed=[_shown(number, dispute, cards, say) for number, dispute in enumerate(found)],
        )

    @for_role(ADMIN)
    def rule(self, visitor: Visitor) -> Response:
        """Rule on the labels that were decided; the others stay disputed."""
        form = visitor.form
        decided = {number: form.value(f"rule-{number}") for number in form.numbers("item")}
        verdicts = {number: verdict == "yes" for number, verdict in decided.items() if verdict in ("yes", "no")}
        self._queue.rulings.rule(visitor.who.id, verdicts)
        return RedirectResponse("/admin/disputed", 303)

    @for_role(ADMIN)
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
