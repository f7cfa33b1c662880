"""Pages that runs have written as files, shown as they are, without any of the rights of the studio's own pages."""

from __future__ import annotations

from pathlib import Path

from fastapi.responses import Response
from starlette.exceptions import HTTPException

from reports.compare import COMPARISON_JSON
from reports.run import RUN_JSON
from studio.pages import Key, StudioPages, for_staff
from studio.review import Visitor

# A document without an origin: its scripts see no cookie and reach no address, whatever the file holds.
POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; img-src data: blob:; media-src data:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
REPORT, COMPARISON = "report.html", "compare.html"


class ReportPages(StudioPages):
    @for_staff("GET /runs/{key}/report")
    def report(self, visitor: Visitor, key: Key) -> Response:
        del visitor
        return self._file(self._run_catalog.folder(key, RUN_JSON), REPORT)

    @for_staff("GET /comparisons/{key}")
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
