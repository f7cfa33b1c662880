"""The list of runs, one run with its features, and changes to them: shown with their price first, then made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from reports.curation import checked_by_people, unused_corrections
from reports.drawing import share_bar
from reports.export import FILES
from reports.run import RunError
from sources import Example
from studio.config import CurationCommand, EditRefused, StudioConfig
from studio.review import BrowserPictures, RequestContext, Size, Visitor
from studio.roles import Roles, for_staff
from studio.runs.catalog import SORTS, OpenRun, RunCatalog, TableCatalog, listed
from studio.views import StudioTemplates

Key = Annotated[str, Path(pattern="^[0-9a-f]{12}$")]
Row = Annotated[int, Path(ge=0, le=10**9)]
LISTED_RUNNING = 20
RECENT_STATES = 1_000


class RunPages:
    def __init__(
        self,
        config: StudioConfig,
        templates: StudioTemplates,
        run_catalog: RunCatalog,
        roles: Roles,
        others: TableCatalog,
    ) -> None:
        self._config, self._templates, self._run_catalog, self.roles = config, templates, run_catalog, roles
        self._others = others
        self._pictures = BrowserPictures()

    def router(self) -> APIRouter:
        router = APIRouter(default_response_class=Response)
        router.add_api_route("/runs", self.runs, methods=["GET"])
        router.add_api_route("/runs/{key}", self.run, methods=["GET"])
        router.add_api_route("/runs/{key}/archive", self.archive, methods=["POST"])
        router.add_api_route("/runs/{key}/media/{row}/{size}", self.media, methods=["GET"])
        router.add_api_route("/runs/{key}/change", self.change, methods=["POST"])
        router.add_api_route("/runs/{key}/export", self.export, methods=["POST"])
        return router

    @for_staff
    def runs(self, visitor: Visitor, q: str = "", sort: str = "when", archived: bool = False) -> Response:
        entries = self._run_catalog.entries()
        known = {entry.summary.run_id for entry in entries}
        states = {state["run_id"]: state for state in self._config.states()[:RECENT_STATES]}
        going = [
            (key, begun) for key, begun, goes_on in self._run_catalog.live() if goes_on or begun["run_id"] not in known
        ]
        return self._templates.page(
            "runs.html",
            who=visitor.who,
            csrf=visitor.csrf,
            entries=listed(entries, q, sort, archived=archived),
            total=len(entries),
            going=[(key, begun, states.get(begun["run_id"], {}).get("status", "unknown")) for key, begun in going][
                :LISTED_RUNNING
            ],
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

    @for_staff
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

    @for_staff
    def archive(self, visitor: Visitor, key: Key) -> Response:
        opened_run(self._run_catalog, key)
        self._run_catalog.archive(key, visitor.who.name, back=visitor.form.value("back") == "1")
        return RedirectResponse("/runs", 303)

    @for_staff
    def media(self, visitor: Visitor, key: Key, row: Row, size: Size) -> Response:
        del visitor
        examples = opened_run(self._run_catalog, key).examples
        return picture_response(self._pictures, examples[row] if row < len(examples) else None, size)

    @for_staff
    def change(self, visitor: Visitor, key: Key) -> Response:
        """Show what a change keeps, asks and costs; or make it, where that was confirmed."""
        opened, command = opened_run(self._run_catalog, key), command_of(visitor)
        try:
            step = self._config.curate(opened.run, command)
        except EditRefused as refused:
            return self._run(visitor, key, problem=str(refused), status=409 if refused.stale else 422)
        if step.done:
            return RedirectResponse(f"/runs/{key}", 303)
        return self._templates.page(
            "change.html", who=visitor.who, csrf=visitor.csrf, run=opened, command=command, step=step
        )

    @for_staff
    def export(self, visitor: Visitor, key: Key) -> Response:
        """Into the run's folder of exports, and to the browser."""
        opened, wanted = opened_run(self._run_catalog, key), visitor.form.value("format")
        if wanted not in FILES:
            raise HTTPException(422, f"Choose one of {', '.join(FILES)}.")
        try:
            path = self._config.export(opened.run, wanted)
        except EditRefused as refused:
            raise HTTPException(422, str(refused)) from None
        headers = {"Content-Disposition": f'attachment; filename="{path.name}"'}
        return Response(path.read_bytes(), media_type="application/octet-stream", headers=headers)

    def _run(self, visitor: RequestContext, key: str, *, problem: str = "", status: int = 200) -> Response:
        opened = opened_run(self._run_catalog, key)
        try:
            findings = opened.run.findings
        except RunError as error:
            raise HTTPException(422, str(error)) from None
        marked = zip(findings.found, findings.marks, strict=True)
        return self._templates.page(
            "run.html",
            status,
            who=visitor.who,
            csrf=visitor.csrf,
            run=opened,
            summary=opened.run.summary,
            features=[
                {
                    "found": feature,
                    "interesting": interesting,
                    "distinct": distinct,
                    "bar": share_bar(
                        feature.positives, feature.labelled - feature.positives, len(findings.ids) - feature.labelled
                    ),
                    "doubtful": int(feature.doubtful.sum()),
                }
                for feature, (interesting, distinct) in marked
            ],
            checked=checked_by_people(findings.found).sentences(),
            unused=len(unused_corrections(findings, opened.run.corrections)),
            log=opened.run.log[::-1],
            formats=FILES,
            problem=problem,
            archived=(opened.folder / "archived.json").exists(),
            reported=(opened.folder / "report.html").is_file(),
        )


def picture_response(pictures: BrowserPictures, example: Example | None, size: str) -> Response:
    stored: dict[str, Any] = {}
    if example is not None:
        stored = {"id": example.id, "text": example.text, "image": example.image, "home": example.home}
    found = pictures.get(example.digest, stored, size) if example is not None else None
    if found is None:
        raise HTTPException(404)
    cache = {"Cache-Control": "private, max-age=3600"}
    return Response(found.content, media_type=found.kind, headers=cache)


def opened_run(run_catalog: RunCatalog, key: str) -> OpenRun:
    try:
        found = run_catalog.open(key)
    except RunError as error:
        raise HTTPException(422, str(error)) from None
    if found is None:
        raise HTTPException(404)
    return found


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
        confirmed=form.value("confirmed") == "1",
    )
