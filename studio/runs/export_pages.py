"""The labels of a run as a file, written as `python -m flows export` writes it."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from reports.export import FILES
from studio.config import EditRefused, StudioConfig
from studio.review import Visiting
from studio.roles import Roles, for_staff
from studio.runs.run_pages import Key, opened_run
from studio.runs.shelf import Shelf


class ExportPages:
    def __init__(self, config: StudioConfig, shelf: Shelf, roles: Roles) -> None:
        self._config, self._shelf, self.roles = config, shelf, roles

    def router(self) -> APIRouter:
        router = APIRouter(default_response_class=Response)
        router.add_api_route("/runs/{key}/export", self.export, methods=["POST"])
        return router

    @for_staff
    def export(self, visiting: Visiting, key: Key) -> Response:
        """Into the run's folder of exports, and to the browser."""
        opened, wanted = opened_run(self._shelf, key), visiting.form.one("format")
        if wanted not in FILES:
            raise HTTPException(422, f"Choose one of {', '.join(FILES)}.")
        try:
            path = self._config.export(opened.run, wanted)
        except EditRefused as refused:
            raise HTTPException(422, str(refused)) from None
        headers = {"Content-Disposition": f'attachment; filename="{path.name}"'}
        return Response(path.read_bytes(), media_type="application/octet-stream", headers=headers)
