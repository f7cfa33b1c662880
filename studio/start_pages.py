"""Start a discovery: a form that the settings make, the estimate beside it, then the run, which can be watched."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

from studio.config import EditRefused, StartPlan, StudioConfig
from studio.review import Visit, Visiting, for_role
from studio.roles import OWNER
from studio.runs import Shelf, key_of
from studio.views import StudioTemplates

MOST_DATASETS = 50


class StartPages:
    """For the owner alone: a discovery reads files of this machine and spends money. The Enter key never starts one:
    the first button of the form estimates."""

    def __init__(self, config: StudioConfig, templates: StudioTemplates, shelf: Shelf) -> None:
        self._config, self._templates, self._shelf = config, templates, shelf
        self._fields = config.starter.fields()

    def router(self) -> APIRouter:
        router = APIRouter(default_response_class=Response)
        router.add_api_route("/start", self.form, methods=["GET"])
        router.add_api_route("/start", self.start, methods=["POST"])
        return router

    @for_role(OWNER)
    def form(self, visiting: Visiting) -> Response:
        return self._form(visiting, {one.name: one.default for one in self._fields})

    @for_role(OWNER)
    def start(self, visiting: Visiting) -> Response:
        """The estimate; or the run, once somebody has seen that and agreed."""
        values = {one.name: visiting.form.one(one.name) for one in self._fields}
        values["budget"] = values["budget"] or visiting.form.one("agreed")
        try:
            if visiting.form.one("confirmed") == "1":
                folder = self._config.starter.begin(values)
                return RedirectResponse(f"/live/{key_of(folder.resolve())}", 303)
            return self._form(visiting, values, plan=self._config.starter.plan(values))
        except EditRefused as refused:
            return self._form(visiting, values, problem=str(refused), status=422)

    def _form(
        self,
        visiting: Visit,
        values: dict[str, Any],
        *,
        plan: StartPlan | None = None,
        problem: str = "",
        status: int = 200,
    ) -> Response:
        known = [str(one.summary.settings["dataset"]) for one in self._shelf.entries()]
        return self._templates.page(
            "start.html",
            status,
            who=visiting.who,
            csrf=visiting.csrf,
            fields=self._fields,
            values=values,
            datasets=list(dict.fromkeys(known))[:MOST_DATASETS],
            oracles=list(dict.fromkeys(one.oracle for one in self._shelf.entries()))[:MOST_DATASETS],
            plan=plan,
            problem=problem,
        )
