"""The list of runs, one run with its features, and changes to them: shown with their price first, then made. Two runs
side by side. The pages that runs have written as files, without any of the rights of the studio's own pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from twothirds.reports.compare import COMPARISON_JSON, side_by_side
from twothirds.reports.curation import checked_by_people, unused_corrections
from twothirds.reports.export import FILES
from twothirds.reports.run import RUN_JSON, FoundFeature, RunError, without_paths
from twothirds.studio.catalog import SORTS, OpenRun, listed
from twothirds.studio.config import CurationCommand, EditRefused
from twothirds.studio.pages import OWNER, Key, Row, StudioPages, for_staff
from twothirds.studio.review import RequestContext, Size, Visitor
from twothirds.studio.web import share_bar

OF_THE_PLACE = {"store", "out", "replace", "retry_unusable", "wait"}  # settings that change no result
Chosen = Annotated[list[str], Query(alias="run", max_length=100)]
# A document without an origin: its scripts see no cookie and reach no address, whatever the file holds.
POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; img-src data: blob:; media-src data:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
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

    @for_staff("GET /runs/{key}")
    def run(self, visitor: Visitor, key: str) -> Response:
        """By its key, or by the name of its folder, as links from elsewhere name it: the latest run of that name, else
        a table or a comparison."""
        if self._run_catalog.folder(key) is not None:
            return self._run(visitor, key)
        named = next((entry for entry in self._run_catalog.entries() if entry.name == key), None)
        address = f"/runs/{named.key}" if named else self._others.address_of(key)
        if address is None:
            raise HTTPException(404)
        return RedirectResponse(address, 303)

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

    @for_staff("POST /runs/{key}/change")
    def change(self, visitor: Visitor, key: Key) -> Response:
        """Show what a change keeps, asks and costs; or make it, where that was confirmed."""
        opened, command = self.opened(key), command_of(visitor)
        try:
            step = self._config.curate(opened.run, command)
        except EditRefused as refused:
            return self._run(visitor, key, problem=str(refused), status=409 if refused.stale else 422)
        if step.done:
            return RedirectResponse(f"/runs/{key}", 303)
        return self.render("change.html", visitor, run=opened, command=command, step=step)

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

    def _run(self, visitor: RequestContext, key: str, *, problem: str = "", status: int = 200) -> Response:
        opened = self.opened(key)
        try:
            findings = opened.run.findings
        except RunError as error:
            raise HTTPException(422, str(error)) from None
        marked = zip(findings.found, findings.marks, strict=True)
        return self.render(
            "run.html",
            visitor,
            status,
            run=opened,
            summary=opened.run.summary,
            features=[
                {
                    "found": feature,
                    "interesting": interesting,
                    "distinct": distinct,
                    "sample": findings.sample_of(feature),
                    "bar": share_bar(
                        feature.positives, feature.labelled - feature.positives, len(findings.ids) - feature.labelled
                    ),
                    "doubtful": int(feature.doubtful.sum()),
                }
                for feature, (interesting, distinct) in marked
            ],
            counting=findings.counting,
            doubtful=sum(feature.is_doubtful for feature in findings.found),
            checked=checked_by_people(findings.found).sentences(),
            unused=len(unused_corrections(findings, opened.run.corrections)),
            log=opened.run.log[::-1],
            formats=FILES,
            problem=problem,
            archived=(opened.folder / "archived.json").exists(),
            reported=(opened.folder / "report.html").is_file(),
        )

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


def command_of(visitor: RequestContext) -> CurationCommand:
    """The form of a change; what is missing or wrong is reported by whoever plans it."""
    form = visitor.form
    action = form.value("action")
    texts: dict[str, Callable[[], list[str]]] = {
        "rename": lambda: [form.value("name"), form.value("to")],
        "split": lambda: [form.value("name"), *(line for line in form.value("parts").splitlines() if line.strip())],
        "define": lambda: [form.value("name"), form.value("definition")],
        "undo": list,
    }
    return CurationCommand(
        action=action,
        names=[text.strip() for text in texts.get(action, lambda: form.all("name"))()],
        by=visitor.who.name,
        seen=(form.numbers("seen") or [0])[0],
        into=form.value("into").strip() or None,
        keep=form.value("keep") == "1",
        ask=form.value("ask") != "0",
        budget=form.value("budget").strip() or None,
        may_spend=visitor.role == OWNER,
        confirmed=form.value("confirmed") == "1",
    )


def keys_of(opened: OpenRun, other: OpenRun) -> list[str]:
    """By which examples of two runs are known as the same: their ids in one data set, else their contents."""
    if opened.run.summary.dataset.digest == other.run.summary.dataset.digest:
        return list(opened.run.findings.ids)
    return [example.digest if example else "" for example in opened.examples]


def differing(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, str, str]]:
    names = [name for name in dict.fromkeys([*a, *b]) if name not in OF_THE_PLACE and a.get(name) != b.get(name)]
    return [(name, _written(a.get(name)), _written(b.get(name))) for name in names]


def _written(value: Any) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return without_paths(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _bar(feature: FoundFeature) -> str:
    return share_bar(feature.positives, feature.labelled - feature.positives, len(feature.labels) - feature.labelled)
