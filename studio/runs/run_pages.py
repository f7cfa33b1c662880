"""The list of runs, one run with its features, and changes to them: shown with their price first, then made. Two runs
side by side. The pages that runs have written as files, without any of the rights of the studio's own pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from twothirds.reports.compare import COMPARISON_JSON, side_by_side
from twothirds.reports.export import FILES
from twothirds.reports.run import RUN_JSON, FoundFeature, RunError
from twothirds.studio.catalog import SORTS, OpenRun, listed
from twothirds.studio.config import EditRefused
from twothirds.studio.pages import Key, Row, StudioPages, for_staff
from twothirds.studio.review import Size, Visitor
from twothirds.studio.runs.place import written
from twothirds.studio.web import share_bar

OF_THE_PLACE = {"store", "out", "replace", "retry_unusable", "wait"}  # settings that change no result
Chosen = Annotated[list[str], Query(alias="run", max_length=100)]
# A document without an origin: its scripts see no cookie and reach no address, whatever the file holds.
POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; img-src data: blob:; media-src data:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
REPORT, COMPARISON = "report.html", "compare.html"
LISTED_UNFINISHED = 20


class RunPages(StudioPages):
    @for_staff("GET /runs")
    def runs(self, visitor: Visitor, q: str = "", sort: str = "when", archived: bool = False) -> Response:
        entries = self._run_catalog.entries()
        known = {entry.summary.run_id for entry in entries}
        return self.render(
            "runs.html",
            visitor,
            entries=listed(entries, q, sort, archived=archived),
            total=len(entries),
            unfinished=self._run_catalog.unfinished(known)[:LISTED_UNFINISHED],
            q=q[:200],
            sort=sort if sort in SORTS else "when",
            sorts=list(SORTS),
            archived=archived,
            some_archived=any(entry.archived for entry in entries),
            tables=[] if archived else [table for table in self._others.tables() if table.matches(q)],
            comparisons=[]
            if archived
            else [comparison for comparison in self._others.comparisons() if comparison.matches(q)],
        )

    @for_staff("POST /runs/{key}/archive")
    def archive(self, visitor: Visitor, key: Key) -> Response:
        self.opened(key)
        self._run_catalog.archive(key, visitor.who.name, back=visitor.form.value("back") == "1")
        return RedirectResponse("/runs", 303)

    @for_staff("GET /runs/{key}/media/{row}/{size}")
    def media(self, visitor: Visitor, key: Key, row: Row, size: Size) -> Response:
        del visitor
        examples = self.opened(key).examples
        return self.picture(examples[row] if row < len(examples) else None, size)

    @for_staff("POST /runs/{key}/export")
    def export(self, visitor: Visitor, key: Key) -> Response:
        """Into the run's folder of exports, and to the browser."""
        opened, wanted = self.opened(key), visitor.form.value("format")
        if wanted not in FILES:
            raise HTTPException(422, f"Choose one of {', '.join(FILES)}.")
        try:
            path = self._config.export(opened.run, wanted)
        except EditRefused as refused:
            raise HTTPException(422, str(refused)) from None
        headers = {"Content-Disposition": f'attachment; filename="{path.name}"'}
        return Response(path.read_bytes(), media_type="application/octet-stream", headers=headers)

    @for_staff("GET /side-by-side")
    def pair(self, visitor: Visitor, chosen: Chosen = []) -> Response:  # noqa: B006 - FastAPI copies it
        keys = list(dict.fromkeys(chosen))
        if len(keys) != 2:
            message = "Two runs are shown side by side: tick two of them in the list."
            return self.render("notice.html", visitor, 422, title="Side by side", message=message, back="/runs")
        a, b = (self.opened(key) for key in keys)
        try:
            found = side_by_side(a.run.findings, keys_of(a, b), b.run.findings, keys_of(b, a))
        except RunError as error:
            raise HTTPException(422, str(error)) from None
        return self.render(
            "pair.html",
            visitor,
            runs=(a, b),
            settings=differing(a.run.summary.settings, b.run.summary.settings),
            found=found,
            bar=_bar,
        )

    @for_staff("GET /runs/{key}/report")
    def report(self, visitor: Visitor, key: Key) -> Response:
        """In a frame below the studio's bar: nobody is led out of the studio."""
        opened = self.opened(key)
        if not (opened.folder / REPORT).is_file():
            raise HTTPException(404)
        summary, own = opened.run.summary, f"/runs/{key}"
        crumbs = [(summary.dataset.name, ""), (opened.folder.name, own), ("Report", "")]
        return self.render("framed.html", visitor, crumbs=crumbs, title="Report", address=f"{own}/report/file")

    @for_staff("GET /runs/{key}/report/file")
    def report_file(self, visitor: Visitor, key: Key) -> Response:
        del visitor
        return self._file(self._run_catalog.folder(key, RUN_JSON), REPORT)

    @for_staff("GET /comparisons/{key}")
    def comparison(self, visitor: Visitor, key: Key) -> Response:
        folder = self._run_catalog.folder(key, COMPARISON_JSON)
        if folder is None or not (folder / COMPARISON).is_file():
            raise HTTPException(404)
        address = f"/comparisons/{key}/file"
        return self.render("framed.html", visitor, crumbs=[(folder.name, "")], title="Comparison", address=address)

    @for_staff("GET /comparisons/{key}/file")
    def comparison_file(self, visitor: Visitor, key: Key) -> Response:
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


def keys_of(opened: OpenRun, other: OpenRun) -> list[str]:
    """By which examples of two runs are known as the same: their ids in one data set, else their contents."""
    if opened.run.summary.dataset.digest == other.run.summary.dataset.digest:
        return list(opened.run.findings.ids)
    return [example.digest if example else "" for example in opened.examples]


def differing(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, str, str]]:
    names = [name for name in dict.fromkeys([*a, *b]) if name not in OF_THE_PLACE and a.get(name) != b.get(name)]
    return [(name, written(a.get(name)), written(b.get(name))) for name in names]


def _bar(feature: FoundFeature) -> str:
    return share_bar(feature.positives, feature.labelled - feature.positives, len(feature.labels) - feature.labelled)
