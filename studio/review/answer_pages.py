"""The pages of a reviewer: the invitation, the current question, and answering, skipping or undoing it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from fastapi.responses import RedirectResponse, Response

from twothirds.store.review import ADMIN, FINISHED, PAUSED, LeasedQuestion, QueueOutlook
from twothirds.studio.review.access import (
    ANSWERING,
    NO_LINK,
    PUBLIC,
    Authenticator,
    RequestContext,
    Visitor,
    ended,
    for_role,
)
from twothirds.studio.review.media import Digest, Size, StaticFiles, picture_of
from twothirds.studio.review.questions import TYPED, Unclear, comparison, is_comparison, labels, reason
from twothirds.studio.review.views import (
    Cards,
    Review,
    ReviewPages,
    digests_of,
    is_training,
    page_context,
    problem_of,
    progress_of,
    suggestions,
)
from twothirds.studio.views import html_response
from twothirds.studio.web import CATALOGUES, STATIC

NOTES = ("again", "late", "nothing", "used")
WAITING = {"others": "others", "working": "discovery", "unasked": "none"}  # why there is nothing to answer


class AnswerPages(ReviewPages):
    def __init__(self, review: Review, authenticator: Authenticator) -> None:
        super().__init__(review)
        self._authenticator, self._files = authenticator, StaticFiles(STATIC.iterdir())

    @for_role("GET /i/{token}", PUBLIC)
    def open_link(self, token: str, visitor: Visitor) -> Response:
        invitation = self._authenticator.invitation_of(token)
        if invitation is None:
            raise NO_LINK
        if invitation.ended:
            raise ended(invitation)
        person = invitation.person
        page = html_response(
            "review/welcome.html",
            language=visitor.language,
            name=person.name,
            by=invitation.by,
            until=invitation.expires_at,
            admin=invitation.role == ADMIN,
        )
        return self._authenticator.start_session(invitation, page)

    @for_role("GET /static/{name}", PUBLIC)
    def static_file(self, name: str) -> Response:
        return self._files.response(name)

    @for_role("GET /media/{digest}/{size}", *ANSWERING)
    def media(self, visitor: Visitor, digest: Digest, size: Size) -> Response:
        del visitor
        return picture_of(self._queue, self._pictures, digest, size)

    @for_role("GET /", *ANSWERING)
    def question(self, visitor: Visitor, note: str = "") -> Response:
        person, terms = visitor.who.id, self._config.terms
        training = self._queue.quality.training_page(person, terms) if terms.training else []
        shown = training or self._queue.leases.next_page(person, terms)
        return self._page(visitor, shown, note=note if note in NOTES else "")

    @for_role("GET /ready", *ANSWERING)
    def ready(self, visitor: Visitor) -> Response:
        queue = self._config.terms.queue
        left = self._queue.records.progress(visitor.who.id, queue).left
        now = {"left": left, "state": self._queue.records.outlook(queue).state}
        return Response(json.dumps(now), media_type="application/json")

    @for_role("GET /training", *ANSWERING)
    def feedback(self, visitor: Visitor) -> Response:
        """What was right and what was wrong in the training round."""
        results, say = self._queue.quality.training_results(visitor.who.id), CATALOGUES[visitor.language]
        if not results:
            return _home()
        examples = self._queue.questions.examples([result.question["example"] for result in results])
        cards = Cards(say, examples, self._pictures.is_moving)
        shown = [
            {
                "card": cards.numbered(place, place, result.question["example"]),
                "feature": result.question["feature"][0],
                "answer": result.right,
                "right": result.said == result.right,
            }
            for place, result in enumerate(results)
        ]
        right = sum(result.said == result.right for result in results)
        return html_response("review/training.html", language=visitor.language, results=shown, right=right)

    @for_role("POST /touch", *ANSWERING)
    def touch(self, visitor: Visitor) -> Response:
        """Somebody is at work on the page: it is kept for them."""
        self._queue.leases.touch(visitor.who.id, self._config.terms)
        return Response(status_code=204)

    @for_role("POST /answer", *ANSWERING)
    def answer(self, visitor: Visitor) -> Response:
        """Save the answers to the current questions; questions answered before keep their answer."""
        if not is_comparison(visitor.form):
            return self._save_labels(visitor)
        shown = self._queue.leases.unanswered(visitor.who.id, visitor.form.numbers("lease"))
        compared = [leased for leased in shown if leased.kind != "label"]
        return self._save_comparison(visitor, compared[0]) if compared else _home("again")

    def _save_labels(self, visitor: RequestContext) -> Response:
        has, unsure = labels(visitor.form)
        in_training = self._config.terms.training and is_training(
            self._queue.leases.unanswered(visitor.who.id, [*has, *unsure])
        )
        together = self._signer.stamp(str(sorted([*has, *unsure])), "submission")
        counted = self._queue.votes.give_labels(visitor.who.id, has, unsure, submission=together)
        if in_training and counted.given:
            return RedirectResponse("/training", 303)
        if counted.late:
            return _home("late")
        return _home("" if counted.given or counted.skipped or "lease" not in visitor.form else "again")

    def _save_comparison(self, visitor: RequestContext, shown: LeasedQuestion) -> Response:
        form = visitor.form
        try:
            examples = self._queue.questions.examples(digests_of([shown]))
            answer = comparison(shown, form, self._config.clean, self._config.name_problem, examples)
        except Unclear as unclear:
            typed = {key: form.value(key)[:600] for key in TYPED}
            marked = replace(shown, answer={"shown": form.numbers("shown")})
            problem = problem_of(unclear, CATALOGUES[visitor.language])
            return self._page(visitor, [marked], status=422, given=typed, problem=problem)
        counted = self._queue.votes.give(visitor.who.id, {shown.id: answer})
        return _home("late" if counted.late else "")

    @for_role("POST /skip", *ANSWERING)
    def skip(self, visitor: Visitor) -> Response:
        why = reason(visitor.form, self._config.clean)
        self._queue.votes.skip(visitor.who.id, visitor.form.numbers("lease"), why)
        return _home()

    @for_role("POST /undo", *ANSWERING)
    def undo(self, visitor: Visitor) -> Response:
        return _home(self._queue.votes.undo(visitor.who.id, self._config.terms))

    def _page(
        self, visitor: RequestContext, shown: list[LeasedQuestion], *, note: str = "", status: int = 200, **given: Any
    ) -> Response:
        queue, say = self._config.terms.queue, CATALOGUES[visitor.language]
        outlook = self._queue.records.outlook(queue, fresh=not shown)
        progress = progress_of(self._queue.records.progress(visitor.who.id, queue), outlook, len(shown), say)
        context: dict[str, Any] = {
            "name": visitor.who.name,
            "csrf": visitor.csrf,
            "progress": progress,
            "note": note,
        }
        if shown:
            examples = self._queue.questions.examples(digests_of(shown))
            context |= page_context(shown, examples, say, self._pictures.is_moving) | given
        else:
            context |= self._nothing_to_answer(visitor, outlook)
        if context["template"] == "review/compare.html":
            context["suggestions"] = suggestions(self._queue, shown[0], self._config.name_problem)
        return html_response(context.pop("template"), status, language=visitor.language, **context)

    def _nothing_to_answer(self, visitor: RequestContext, outlook: QueueOutlook) -> dict[str, Any]:
        state = outlook.state if outlook.state in (PAUSED, FINISHED) else "waiting"
        found = self._queue.records.found(self._config.terms.queue) if state == FINISHED else []
        why = WAITING.get(outlook.state, "")
        return {
            "template": "review/idle.html",
            "state": state,
            "outlook": outlook.state,
            "why": why,
            "by": visitor.admitted.by,
            "found": found,
        }


def _home(note: str = "") -> Response:
    return RedirectResponse(f"/?note={note}" if note else "/", 303)
