"""A discovery as it happens: the question with its pictures, the answer, the features, what it has cost so far. All of
it comes from the file that the run writes, so that a reload, or joining late, shows the same.

Commands for a running discovery, which it applies between two questions; the choice of three examples to ask about;
and a discovery that goes on with another budget."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from cachetools import LRUCache
from fastapi import Query
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from twothirds.reports.run import LIVE, LiveRun, RunError, RunSummary
from twothirds.sources import Columns, Dataset, DatasetError, Example, load_dataset
from twothirds.studio.catalog import RunCatalog
from twothirds.studio.config import EditRefused, StartPlan
from twothirds.studio.pages import OWNER, Key, Row, Studio, StudioPages, for_staff
from twothirds.studio.review import RequestContext, Size, Visitor, for_role
from twothirds.studio.views import json_response

LOOK_SECONDS = 0.5
ADMITTED_SECONDS = 2.0  # after which a stream looks again whether who reads it was revoked
KEEP_ALIVE_LOOKS = 30  # after which a line is sent that says nothing, so that proxies keep the connection
STARTED = "start.json"  # the studio has started it
OPEN_DATASETS = 4
SOURCE_SETTINGS = ("dataset", "id_column", "text_column", "image_column")
FIELDS = ("name", "definition", "usd")  # of commands, beside examples
PER_PAGE = 60
MAX_TEXT = 400
After = Annotated[int, Query(ge=0, le=10**9)]
Words = Annotated[str, Query(max_length=200)]


class LiveRuns:
    """The discoveries that can be watched, with the examples that they show."""

    def __init__(self, run_catalog: RunCatalog) -> None:
        self._run_catalog = run_catalog
        self._datasets: LRUCache[str, Dataset | None] = LRUCache(OPEN_DATASETS)
        self._lock = threading.Lock()

    def live(self, key: str) -> LiveRun:
        folder = self._run_catalog.folder(key)
        if folder is None or not (folder / LIVE).is_file():
            raise HTTPException(404)
        return LiveRun(folder / LIVE)

    def examples(self, begun: dict[str, Any]) -> Sequence[Example] | None:
        """None where the data set cannot be read: pages do without pictures then."""
        settings = {name: begun.get("settings", {}).get(name) for name in SOURCE_SETTINGS}
        name = json.dumps(settings, sort_keys=True)
        with self._lock:
            if name not in self._datasets:
                try:
                    self._datasets[name] = load_dataset(str(settings["dataset"]), Columns.of(settings))
                except DatasetError:
                    self._datasets[name] = None
            found: Dataset | None = self._datasets[name]
        return found.examples if found else None


class LivePages(StudioPages):
    def __init__(self, studio: Studio) -> None:
        super().__init__(studio)
        self._watched = LiveRuns(studio.run_catalog)

    @for_staff("GET /live/{key}")
    def page(self, visitor: Visitor, key: Key) -> Response:
        folder, starter = self._run_catalog.folder(key, STARTED, LIVE), self._config.starter
        starts = folder is not None and _is_newer(folder / STARTED, folder / LIVE)
        if folder is not None and starts and (starter.goes_on(folder) or not (folder / LIVE).is_file()):
            printed, runs = starter.printed(folder), starter.goes_on(folder)
            name = "starting.html" if runs else "started.html"
            return self.render(name, visitor, folder=folder.name, printed=printed, runs=runs)
        live = self._watched.live(key)
        begun, goes_on = live.begun, live.goes_on
        examples = self._watched.examples(begun) or ()
        pictured = any(example.image is not None for example in examples)
        return self.render(
            "live.html",
            visitor,
            key=key,
            begun=begun,
            folder=live.path.parent.name,
            finished=_has_results(live) and not goes_on,
            failed=starter.printed(live.path.parent) if starts and not goes_on else "",
            kind="images" if pictured else "texts",
        )

    @for_staff("GET /live/{key}/events")
    def events(self, visitor: Visitor, key: Key, after: After = 0) -> Response:
        """As server-sent events; each says how many came before it, so that a lost connection goes on from there. The
        stream ends with the invitation."""
        live = self._watched.live(key)
        examples = self._watched.examples(live.begun) or ()
        rows = {example.id: row for row, example in enumerate(examples)}
        texts = {example.id: example.text[:400] for example in examples if example.text}

        def shown(event: dict[str, Any]) -> dict[str, Any]:
            named = [*event.get("examples", []), *event.get("without", [])]
            named += [name for asked in event.get("questions", ()) for name in (*asked["examples"], *asked["without"])]
            for private in ("settings", "compared_ids"):
                event.pop(private, None)
            return event | {
                "rows": {name: rows[name] for name in named if name in rows},
                "texts": {name: texts[name] for name in named if name in texts},
            }

        async def stream() -> AsyncIterator[str]:
            place, looks, checked = after, 0, time.monotonic()
            while True:
                if time.monotonic() - checked >= ADMITTED_SECONDS:
                    if not await asyncio.to_thread(visitor.still_admitted):
                        return
                    checked = time.monotonic()
                new = await asyncio.to_thread(live.events, place)
                for event in new:
                    place += 1
                    yield f"id: {place}\ndata: {json.dumps(shown(event))}\n\n"
                if not new and not await asyncio.to_thread(lambda: live.goes_on):
                    runs = self._config.starter.goes_on(live.path.parent)
                    over = {"finished": _has_results(live), "runs": runs, "state": live.state}
                    yield f"event: over\ndata: {json.dumps(over)}\n\n"
                    return
                looks = 0 if new else looks + 1
                if looks == KEEP_ALIVE_LOOKS:
                    looks = 0
                    yield ": still here\n\n"
                await asyncio.sleep(LOOK_SECONDS)

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    @for_staff("GET /live/{key}/media/{row}/{size}")
    def media(self, visitor: Visitor, key: Key, row: Row, size: Size) -> Response:
        del visitor
        examples = self._watched.examples(self._watched.live(key).begun) or ()
        return self.picture(examples[row] if row < len(examples) else None, size)

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
            entered = self._config.steer(live.path.parent, fields, visitor.who.name, ids, visitor.role == OWNER)
            response, status = {"said": entered}, 200
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
        values = {"queries": str(live.begun.get("queries", "")), "budget": live.budget()}
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
        return self.render(
            "again.html",
            visitor,
            status,
            key=key,
            begun=live.begun,
            folder=live.path.parent.name,
            values=values,
            plan=plan,
            problem=problem,
        )


def _has_results(live: LiveRun) -> bool:
    """Whether this execution has written its results: those of an earlier one may lie there."""
    try:
        return RunSummary.read(live.path.parent).run_id == live.begun.get("run_id")
    except RunError:
        return False


def _is_newer(path: Path, other: Path) -> bool:
    try:
        return path.stat().st_mtime > other.stat().st_mtime
    except FileNotFoundError:
        return path.is_file()


def _matches(example: Example, words: Sequence[str]) -> bool:
    searched = f"{example.id} {example.text or ''}".casefold()
    return all(word in searched for word in words)
