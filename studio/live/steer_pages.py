"""Commands for a running discovery, which it applies between two questions; the choice of three examples to ask about;
and a discovery that goes on with another budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import RedirectResponse, Response

from reports.run import LiveRun
from sources import Example
from studio.config import EditRefused, StartPlan
from studio.live.pages import After, LiveRuns
from studio.pages import OWNER, Key, Studio, StudioPages, for_staff
from studio.review import RequestContext, Visitor, for_role
from studio.views import json_response

FIELDS = ("name", "definition", "usd")  # of commands, beside examples
SPENDS = "budget"  # the command of the owner alone
PER_PAGE = 60
MAX_TEXT = 400
Words = Annotated[str, Query(max_length=200)]


class SteerPages(StudioPages):
    def __init__(self, studio: Studio, watched: LiveRuns) -> None:
        super().__init__(studio)
        self._watched = watched

    @for_staff("POST /live/{key}/steer")
    def steer(self, visitor: Visitor, key: Key) -> Response:
        """From the page's script, which wants JSON, or from a form."""
        live, form = self._watched.live(key), visitor.form
        fields: dict[str, Any] = {name: form.value(name) for name in FIELDS if name in form}
        if "examples" in form:
            fields["examples"] = form.all("examples")
        fields["action"] = form.value("action")

        def ids() -> set[str] | None:
            examples = self._watched.examples(live.begun)
            return {example.id for example in examples} if examples is not None else None

        try:
            if fields["action"] == SPENDS and self.roles.of(visitor.who) != OWNER:
                raise EditRefused("only the owner of the studio changes what may be spent", field="usd")
            response, status = {"said": self._config.steer(live.path.parent, fields, visitor.who.name, ids)}, 200
        except EditRefused as refused:
            response, status = {"problem": str(refused), "field": refused.field}, 409 if refused.stale else 422
        if form.value("json") == "1" or status != 200:
            return json_response(response, status)
        return RedirectResponse(f"/live/{key}", 303)

    @for_staff("GET /live/{key}/examples")
    def examples(self, visitor: Visitor, key: Key, q: Words = "", after: After = 0) -> Response:
        """Some of those that the run compares, for the picker: whose ids or texts hold all the words."""
        del visitor
        begun = self._watched.live(key).begun
        examples, compared = self._watched.examples(begun) or (), begun.get("compared_ids")
        chosen = None if compared is None else set(compared)
        found = [
            (row, example)
            for row, example in enumerate(examples)
            if (chosen is None or example.id in chosen) and _matches(example, q.casefold().split())
        ]
        page = found[after : after + PER_PAGE]
        listed = [
            {"id": example.id, "row": row, "text": example.text and example.text[:MAX_TEXT]} for row, example in page
        ]
        return json_response({"examples": listed, "total": len(found)})

    @for_role("GET /live/{key}/again", OWNER)
    def again(self, visitor: Visitor, key: Key) -> Response:
        live = self._watched.live(key)
        begun = live.begun
        budget = begun.get("settings", {}).get("budget")
        values = {"queries": str(begun.get("queries", "")), "budget": _allowed(live) or str(budget or "")}
        return self._again(visitor, key, live, values)

    @for_role("POST /live/{key}/again", OWNER)
    def begin_again(self, visitor: Visitor, key: Key) -> Response:
        """The estimate; or the run, once somebody has seen that and agreed."""
        live, form, starter = self._watched.live(key), visitor.form, self._config.starter
        values = {"queries": form.value("queries"), "budget": form.value("budget") or form.value("agreed")}
        try:
            if live.goes_on:
                raise EditRefused("it is running: stop it first, or change its budget on its page")
            if form.value("confirmed") == "1":
                starter.begin_again(live.path.parent, values)
                return RedirectResponse(f"/live/{key}", 303)
            return self._again(visitor, key, live, values, starter.plan_again(live.path.parent, values))
        except EditRefused as refused:
            return self._again(visitor, key, live, values, problem=str(refused), status=422)

    def _again(
        self,
        visitor: RequestContext,
        key: str,
        live: LiveRun,
        values: dict[str, str],
        plan: StartPlan | None = None,
        *,
        problem: str = "",
        status: int = 200,
    ) -> Response:
        return self._templates.page(
            "again.html",
            status,
            who=visitor.who,
            csrf=visitor.csrf,
            key=key,
            begun=live.begun,
            folder=live.path.parent.name,
            values=values,
            plan=plan,
            problem=problem,
        )


def _matches(example: Example, words: Sequence[str]) -> bool:
    searched = f"{example.id} {example.text or ''}".casefold()
    return all(word in searched for word in words)


def _allowed(live: LiveRun) -> str:
    """The budget that somebody has set while it ran."""
    return next((str(event["usd"]) for event in reversed(live.events()) if event.get("action") == SPENDS), "")
