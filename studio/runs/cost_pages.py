"""What all runs have cost so far, over time, by run and by oracle."""

from __future__ import annotations

import time

from fastapi import APIRouter
from fastapi.responses import Response

from studio.config import StudioConfig
from studio.review import Visiting
from studio.roles import Roles, for_staff
from studio.runs.shelf import Shelf
from studio.runs.spending import chart_of, spendings
from studio.views import StudioTemplates

MOST_LISTED = 300


class CostPages:
    def __init__(self, config: StudioConfig, templates: StudioTemplates, shelf: Shelf, roles: Roles) -> None:
        self._config, self._templates, self._shelf, self.roles = config, templates, shelf, roles

    def router(self) -> APIRouter:
        router = APIRouter(default_response_class=Response)
        router.add_api_route("/costs", self.costs, methods=["GET"])
        return router

    @for_staff
    def costs(self, visiting: Visiting) -> Response:
        spent = spendings(self._config.costs(), self._config.states(), self._shelf.entries())
        return self._templates.page(
            "costs.html",
            who=visiting.who,
            spent=spent[::-1][:MOST_LISTED],
            listed=len(spent),
            chart=chart_of(spent, time.time()) if spent else None,
            most=max((paid.usd for paid in spent), default=0.0),
        )
