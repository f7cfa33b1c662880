"""A discovery as it happens: the question with its pictures, the answer, the features, what it has cost so far. All of
it comes from the file that the run writes, so that a reload, or joining late, shows the same.

Commands for a running discovery, which it applies between two questions; the choice of three examples to ask about;
and a discovery that goes on with another budget."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cachetools import LRUCache
from fastapi import Header, Query
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from markupsafe import Markup
from starlette.exceptions import HTTPException

from twothirds.reports.page import curves_of, history_of
from twothirds.reports.run import LIVE, RUN_JSON, LiveRun, RunError, RunSummary
from twothirds.sources import Columns, Dataset, DatasetError, Example, load_dataset
from twothirds.studio.catalog import OpenRun, RunCatalog
from twothirds.studio.config import EditRefused, StartPlan
from twothirds.studio.live_view import LiveView, events_of
from twothirds.studio.pages import OWNER, Key, Row, Studio, StudioPages, for_staff
from twothirds.studio.review import RequestContext, Size, Visitor, for_role
from twothirds.studio.runs import finished_place, unfinished_place
from twothirds.studio.web import ExampleTile, render

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
Asked = Annotated[str, Query(max_length=4000)]
Chosen = Annotated[list[str], Query(max_length=20)]
RESULTS_SECONDS = 20.0  # in which results are awaited after the last question


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

    def tiles(self, key: str, examples: Sequence[Example]) -> Callable[[str], ExampleTile]:
        rows = {example.id: row for row, example in enumerate(examples)}
        media = f"/runs/{key}/pictures/"

        def tile(name: str) -> ExampleTile:
            row = rows.get(name, -1)
            return tile_of(name, row, examples[row] if row >= 0 else None, media)

        return tile


class LivePages(StudioPages):
    def __init__(self, studio: Studio) -> None:
        super().__init__(studio)
        self._watched = LiveRuns(studio.run_catalog)

    @for_staff("GET /runs/{key}/discovery")
    def page(self, visitor: Visitor, key: Key, ask: Asked = "") -> Response:
        """Of a run that goes on as it happens, of one that has ended as it was."""
        return self._page(visitor, key, [name for name in ask.split(",") if name])

    def _page(
        self, visitor: RequestContext, key: str, chosen: Sequence[str] = (), *, problem: str = "", status: int = 200
    ) -> Response:
        folder, starter = self._run_catalog.folder(key, STARTED, LIVE, RUN_JSON), self._config.starter
        if folder is None:
            raise HTTPException(404)
        starts = _is_newer(folder / STARTED, folder / LIVE)
        empty = not (folder / LIVE).is_file() or not self._watched.live(key).begun
        runs = starter.goes_on(folder)
        if (starts and (runs or not (folder / LIVE).is_file())) or (runs and empty):
            printed = starter.printed(folder)
            name = "starting.html" if runs else "started.html"
            return self.render(name, visitor, folder=folder.name, printed=printed, runs=runs)
        if not (folder / LIVE).is_file():
            return self._ended(visitor, self.opened(key))
        live = self._watched.live(key)
        events, examples = live.events(), self._watched.examples(live.begun) or ()
        view = LiveView(self._watched.tiles(key, examples)).fold(events)
        view.take_changes()
        goes_on = live.goes_on
        finished = _has_results(live) and not goes_on
        opened = self.opened(key) if finished else None
        kind = "images" if any(example.image is not None for example in examples) else "texts"
        place = (
            finished_place(opened)
            if opened
            else unfinished_place(key, folder.name, live.begun, _state(live, view), kind)
        )
        return self.render(
            "discovery.html",
            visitor,
            status,
            place=place,
            view=view,
            after=len(events),
            follows=not finished,
            finished=finished,
            state=live.state,
            steers=not finished and live.state != "ended",
            failed=starter.printed(folder) if starts and not goes_on else "",
            picker=self._picked(key, "", chosen),
            curves=_curves(opened),
            problem=problem,
        )

    def _ended(self, visitor: RequestContext, opened: OpenRun) -> Response:
        """Of a run that nobody could follow."""
        findings = opened.run.findings

        def tile(name: str) -> ExampleTile:
            row = opened.rows.get(name, -1)
            example = opened.examples[row] if row >= 0 else None
            return tile_of(name, row, example, opened.media)

        view = LiveView(tile).fold(events_of(opened.run.summary, findings))
        return self.render(
            "discovery.html",
            visitor,
            place=finished_place(opened),
            view=view,
            after=0,
            follows=False,
            finished=True,
            state="ended",
            steers=False,
            failed="",
            picker=None,
            curves=_curves(opened),
            problem="",
        )

    @for_staff("GET /runs/{key}/events")
    def events(
        self, visitor: Visitor, key: Key, after: After = 0, last_event_id: Annotated[str, Header()] = ""
    ) -> Response:
        """The HTML of what has changed, as server-sent events; each says how many events of the run came before it, so
        that a lost connection goes on from there. The stream ends with the invitation."""
        live = self._watched.live(key)
        examples = self._watched.examples(live.begun) or ()
        view = LiveView(self._watched.tiles(key, examples))
        start = int(last_event_id) if last_event_id.isascii() and last_event_id.isdigit() else after
        view.fold(live.events(0, start))
        view.take_changes()

        def shown(place: int, **more: Any) -> str:
            rows, features = view.take_changes()
            context = {"view": view, "key": key, "rows": rows, "features": features, "csrf": visitor.csrf}
            html = render("studio/live_changes.html", context | {"owner": visitor.role == OWNER} | more).decode()
            return f"id: {place}\ndata: {' '.join(html.splitlines())}\n\n"

        async def stream() -> AsyncIterator[str]:
            place, looks, checked, ending = start, 0, time.monotonic(), 0.0
            while True:
                if time.monotonic() - checked >= ADMITTED_SECONDS:
                    if not await asyncio.to_thread(visitor.still_admitted):
                        return
                    checked = time.monotonic()
                new = await asyncio.to_thread(live.events, place)
                if new:
                    place += len(new)
                    view.fold(new)
                    yield await asyncio.to_thread(shown, place, over=None)
                elif not await asyncio.to_thread(lambda: live.goes_on):
                    finished = await asyncio.to_thread(_has_results, live)
                    runs = self._config.starter.goes_on(live.path.parent)
                    writes = view.ended not in ("", "interrupted")
                    ending = ending or time.monotonic()
                    if finished or not (runs or writes) or time.monotonic() - ending > RESULTS_SECONDS:
                        yield await asyncio.to_thread(shown, place, over=finished)
                        yield "event: over\ndata: over\n\n"
                        return
                looks = 0 if new else looks + 1
                if looks == KEEP_ALIVE_LOOKS:
                    looks = 0
                    yield ": still here\n\n"
                await asyncio.sleep(LOOK_SECONDS)

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    @for_staff("GET /runs/{key}/pictures/{row}/{size}")
    def media(self, visitor: Visitor, key: Key, row: Row, size: Size) -> Response:
        """Of the data set as the discovery reads it."""
        del visitor
        examples = self._watched.examples(self._watched.live(key).begun) or ()
        return self.picture(examples[row] if row < len(examples) else None, size)

    @for_staff("GET /runs/{key}/thumbs/{row}")
    def thumb(self, visitor: Visitor, key: Key, row: Row) -> Response:
        """One of the first pictures of its data set, for the list of runs, which opens no run for it."""
        del visitor
        folder = self._run_catalog.folder(key)
        if folder is None:
            raise HTTPException(404)
        entry = next((entry for entry in self._run_catalog.entries() if entry.key == key), None)
        begun = {"settings": entry.summary.settings} if entry else self._watched.live(key).begun
        examples = self._watched.examples(begun) or ()
        if row >= len(examples) or examples[row].image is None:
            return Response(status_code=204)
        return self.picture(examples[row], "small-still")

    @for_staff("POST /runs/{key}/steer")
    def steer(self, visitor: Visitor, key: Key, hx_request: Annotated[str, Header()] = "") -> Response:
        """A script gets what is said beside the field."""
        live, form = self._watched.live(key), visitor.form
        fields: dict[str, Any] = {name: form.value(name) for name in FIELDS if name in form}
        if "examples" in form:
            fields["examples"] = form.all("examples")
        fields["action"] = form.value("action")

        def ids() -> set[str] | None:
            examples = self._watched.examples(live.begun)
            return {example.id for example in examples} if examples is not None else None

        try:
            said = self._config.steer(live.path.parent, fields, visitor.who.name, ids, visitor.role == OWNER)
            problem, status = "", 200
        except EditRefused as refused:
            said, problem, status = "", str(refused), 409 if refused.stale else 422
        if hx_request:
            return self.render("said.html", visitor, status, said=said, problem=problem)
        if problem:
            return self._page(visitor, key, problem=problem, status=status)
        return RedirectResponse(f"/runs/{key}/discovery", 303)

    @for_staff("GET /runs/{key}/choose")
    def choose(self, visitor: Visitor, key: Key, q: Words = "", examples: Chosen = []) -> Response:  # noqa: B006
        """Some examples that the run compares: those that are chosen, then those whose ids or texts hold all words."""
        self._watched.live(key)
        return self.render("picker.html", visitor, key=key, picker=self._picked(key, q, examples))

    def _picked(self, key: str, words: str, chosen: Sequence[str]) -> dict[str, Any]:
        begun = self._watched.live(key).begun
        examples, compared = self._watched.examples(begun) or (), begun.get("compared_ids")
        known = None if compared is None else set(compared)
        tiles = self._watched.tiles(key, examples)
        wanted = words.casefold().split()
        found = [
            example.id
            for example in examples
            if example.id not in chosen and (known is None or example.id in known) and _matches(example, wanted)
        ]
        there = {example.id for example in examples}
        first = [tiles(name) for name in chosen if name in there]
        return {
            "chosen": first,
            "tiles": [tiles(name) for name in found[:PER_PAGE]],
            "total": len(found) + len(first),
        }

    @for_role("GET /runs/{key}/again", OWNER)
    def again(self, visitor: Visitor, key: Key) -> Response:
        live = self._watched.live(key)
        values = {"queries": str(live.begun.get("queries", "")), "budget": live.budget()}
        return self._again(visitor, key, live, values)

    @for_role("POST /runs/{key}/again", OWNER)
    def begin_again(self, visitor: Visitor, key: Key) -> Response:
        """The estimate; or the run, once somebody has seen that and agreed."""
        live, form, starter = self._watched.live(key), visitor.form, self._config.starter
        values = {"queries": form.value("queries"), "budget": form.value("budget") or form.value("agreed")}
        try:
            if live.goes_on:
                raise EditRefused("it is running: stop it first, or change its budget on its page")
            if form.value("confirmed") == "1":
                starter.begin_again(live.path.parent, values)
                return RedirectResponse(f"/runs/{key}/discovery", 303)
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


def tile_of(name: str, row: int, example: Example | None, media: str) -> ExampleTile:
    text = (example.text if example else None) or ""
    pictured = example is not None and example.image is not None
    return ExampleTile(
        place=row if example else -1,
        name=name,
        text=text[:MAX_TEXT],
        pictured=pictured,
        src=f"{media}{row}/small-still",
    )


def _state(live: LiveRun, view: LiveView) -> str:
    """In one word or few. People who are asked are waited for, whatever the run says that it does."""
    return "waiting for people" if view.people and live.state == "running" else live.state


def _curves(opened: OpenRun | None) -> list[tuple[str, Markup]]:
    """Of a run that has ended, what each question has brought."""
    return curves_of(history_of(opened.run, opened.run.findings)) if opened else []


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
