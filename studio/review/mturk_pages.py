"""The same questions inside the frame of a marketplace (Mechanical Turk's ExternalQuestion).

The query of the URL names worker and assignment but is not signed by Amazon, so answers are held, and do not count,
until the collected assignment confirms that this worker submitted it. Cookies are not used: a frame of another site
gets none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from fastapi.responses import Response

from twothirds.store.review import COLLECTED, Hit, LeasedQuestion, unconfirmed
from twothirds.studio.review.access import NO_LINK, PUBLIC, TASK, Refusal, RequestContext, Visitor, for_role
from twothirds.studio.review.media import Digest, Size
from twothirds.studio.review.questions import TYPED, Unclear, comparison, is_comparison, labels
from twothirds.studio.review.views import ReviewPages, digests_of, page_context, problem_of, suggestions
from twothirds.studio.views import html_response
from twothirds.studio.web import CATALOGUES

PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
ID_LIMIT = 128


@dataclass(frozen=True)
class Assignment:
    """A worker's assignment, as named by the query that the marketplace sends."""

    token: str
    assignment: str
    worker: str
    submit_to: str

    @property
    def worker_name(self) -> str:
        return f"mturk {self.worker}"

    @property
    def name(self) -> str:
        """Of whoever answers: the worker only once the marketplace has confirmed it."""
        return unconfirmed(self.worker_name, self.assignment)

    @property
    def stamped(self) -> str:
        return f"{self.token} {self.assignment} {self.worker} {self.submit_to}"


class MturkPages(ReviewPages):
    @for_role("GET /task/{token}", PUBLIC)
    def task(
        self,
        token: str,
        visitor: Visitor,
        assignmentId: str = PREVIEW,  # noqa: N803 - Amazon's names
        workerId: str = "",  # noqa: N803
        turkSubmitTo: str = "",  # noqa: N803
    ) -> Response:
        """The questions of a task: a preview before it is accepted, a form afterwards."""
        hit = self._hit(token)
        if assignmentId == PREVIEW:
            return html_response("review/task_preview.html", language=visitor.language, questions=len(hit.items))
        at = self._assignment(token, assignmentId, workerId, turkSubmitTo)
        worker = self._queue.people.add(at.name, is_worker=True)
        shown = self._queue.mturk.lease_items(worker.id, hit.items, at.worker_name)
        if not shown and not self._queue.mturk.submitted(hit.token, at.assignment, at.worker_name):
            raise Refusal(409, "refused.task.answered")
        return self._page(visitor, at, shown) if shown else self._done(visitor, at)

    @for_role("POST /task/{token}", PUBLIC)
    def answer(self, token: str, visitor: Visitor) -> Response:
        form = visitor.form
        self._hit(token)
        at = self._assignment(token, form.value("assignment"), form.value("worker"), form.value("submit_to"))
        if not self._signer.is_stamp(form.value("stamp"), at.stamped, TASK):
            raise Refusal(403, "refused.task.form")
        worker = self._queue.people.add(at.name, is_worker=True)
        if not is_comparison(form):
            has, unsure = labels(form)
            self._queue.votes.give_labels(worker.id, has, unsure, submission=at.assignment, held=True)
            return self._done(visitor, at)
        compared = [
            lease for lease in self._queue.leases.unanswered(worker.id, form.numbers("lease")) if lease.kind != "label"
        ]
        if compared:
            try:
                examples = self._queue.questions.examples(digests_of(compared[:1]))
                answer = comparison(compared[0], form, self._config.clean, self._config.name_problem, examples)
            except Unclear as unclear:
                return self._page(visitor, at, compared[:1], unclear=unclear)
            self._queue.votes.give(worker.id, {compared[0].id: answer}, submission=at.assignment, held=True)
        return self._done(visitor, at)

    @for_role("GET /task/{token}/media/{digest}/{size}", PUBLIC)
    def media(self, token: str, digest: Digest, size: Size) -> Response:
        """An example of this task; any other is not found."""
        hit = self._hit(token)
        shown = self._queue.questions.example(digest) if digest in self._queue.questions.digests_of(hit.items) else None
        found = self._pictures.get(digest, shown, size) if shown else None
        if found is None:
            raise Refusal(404, "refused.example")
        return Response(found.content, media_type=found.kind)

    def _hit(self, token: str) -> Hit:
        name = self._signer.read(token, TASK)
        hit = self._queue.mturk.hit(name) if isinstance(name, str) else None
        if hit is None:
            raise NO_LINK
        if hit.state == COLLECTED:
            raise Refusal(409, "refused.task.over")
        return hit

    def _assignment(self, token: str, assignment: str, worker: str, submit_to: str) -> Assignment:
        if not all(name.isascii() and name.isalnum() and len(name) <= ID_LIMIT for name in (assignment, worker)):
            raise Refusal(403, "refused.task.opened")
        url = urlsplit(submit_to)
        market = f"{url.scheme}://{url.netloc}"
        if market not in self._config.submit_addresses:
            raise Refusal(403, "refused.task.market")
        return Assignment(token=token, assignment=assignment, worker=worker, submit_to=market)

    def _page(
        self, visitor: RequestContext, at: Assignment, shown: list[LeasedQuestion], unclear: Unclear | None = None
    ) -> Response:
        say, form = CATALOGUES[visitor.language], visitor.form
        if unclear is not None:  # what was chosen and typed is put back
            shown = [replace(shown[0], answer={"shown": form.numbers("shown")})]
        context = page_context(shown, self._queue.questions.examples(digests_of(shown)), say, self._pictures.is_moving)
        if unclear is not None:
            context["problem"] = problem_of(unclear, say)
            context["given"] = {key: form.value(key)[:600] for key in TYPED}
        labelling = context.pop("template") == "review/label.html"
        used = [] if labelling else suggestions(self._queue, shown[0], self._config.name_problem)
        return html_response(
            "review/task_label.html" if labelling else "task_compare.html",
            200 if unclear is None else 422,
            language=visitor.language,
            **context,
            at=at,
            stamp=self._signer.stamp(at.stamped, TASK),
            media=f"/task/{at.token}/media",
            suggestions=used,
        )

    def _done(self, visitor: RequestContext, at: Assignment) -> Response:
        """A form that submits the assignment to the marketplace; answered questions are never shown again."""
        address = f"{at.submit_to}/mturk/externalSubmit"
        return html_response("review/task_done.html", language=visitor.language, at=at, address=address)
