"""Pages that runs have written as files, shown as they are, without any of the rights of the studio's own pages."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from reports.compare import COMPARISON_JSON
from reports.run import RUN_JSON
from studio.review import Visitor
from studio.roles import Roles, for_staff
from studio.runs.catalog import RunCatalog
from studio.runs.run_pages import Key

# A document without an origin: its scripts see no cookie and reach no address, whatever the file holds.
POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; img-src data: blob:; media-src data:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
REPORT, COMPARISON = "report.html", "compare.html"


class ReportPages:
    def __init__(self, run_catalog: RunCatalog, roles: Roles) -> None:
        self._run_catalog, self.roles = run_catalog, roles

    def router(self) -> APIRouter:
        router = APIRouter(default_response_class=Response)
        router.add_api_route("/runs/{key}/report", self.report, methods=["GET"])
        router.add_api_route("/comparisons/{key}", self.comparison, methods=["GET"])
        return router

    @for_staff
    def report(self, visitor: Visitor, key: Key) -> Response:
        del visitor
        return self._file(self._run_catalog.folder(key, RUN_JSON), REPORT)

    @for_staff
    def comparison(self, visitor: Visitor, key: Key) -> Response:
        del visitor
        return self._file(self._run_catalog.folder(key, COMPARISON_JSON), COMPARISON)

    def _file(self, folder: Path | None, name: str) -> Response:
        try:
            content = (folder / name).read_bytes() if folder else None
        except OSError:
            content = None
        if content is None:
            raise HTTPException(404)
        return Response(content, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": POLICY})
