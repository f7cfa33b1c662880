"""A discovery as it happens: the question with its pictures, the answer, the features, what it has cost so far.

All of it comes from the file that the run writes, so that a reload, or joining late, shows the same."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any

from cachetools import LRUCache
from fastapi import APIRouter, Query
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from reports.curation import append_events, now
from reports.live import LiveRun
from reports.run import LIVE, STEER
from sources import Columns, Dataset, DatasetError, load_dataset
from studio.config import StudioConfig
from studio.review import BrowserPictures, Size, Visiting
from studio.roles import Roles, for_staff
from studio.runs import Key, Row, Shelf, picture_response
from studio.views import StudioTemplates

LOOK_SECONDS = 0.5
KEEP_ALIVE_LOOKS = 30  # after which a line is sent that says nothing, so that proxies keep the connection
OPEN_DATASETS = 4
WISHES: dict[str, tuple[str, ...]] = {"stop": (), "veto": ("name",), "rename": ("name", "to")}  # and what each names
MAX_NAME = 200
After = Annotated[int, Query(ge=0, le=10**9)]


class LivePages:
    def __init__(self, config: StudioConfig, templates: StudioTemplates, shelf: Shelf, roles: Roles) -> None:
        self._config, self._templates, self._shelf, self.roles = config, templates, shelf, roles
        self._pictures = BrowserPictures()
        self._datasets: LRUCache[str, Dataset | None] = LRUCache(OPEN_DATASETS)
        self._lock = threading.Lock()

    def router(self) -> APIRouter:
        router = APIRouter(default_response_class=Response)
        router.add_api_route("/live/{key}", self.page, methods=["GET"])
        router.add_api_route("/live/{key}/events", self.events, methods=["GET"])
        router.add_api_route("/live/{key}/steer", self.steer, methods=["POST"])
        router.add_api_route("/live/{key}/media/{row}/{size}", self.media, methods=["GET"])
        return router

    @for_staff
    def page(self, visiting: Visiting, key: Key) -> Response:
        if (started := self._shelf.folder(key, "start.json")) is not None and not (started / LIVE).is_file():
            said = self._config.starter.said(started)
            return self._templates.page("starting.html", who=visiting.who, folder=started.name, said=said)
        live = self._live(key)
        begun = live.begun
        texts = self._dataset(begun)
        pictured = any(one.image is not None for one in texts.examples) if texts else False
        return self._templates.page(
            "live.html",
            who=visiting.who,
            key=key,
            csrf=visiting.csrf,
            begun=begun,
            folder=live.path.parent.name,
            finished=(live.path.parent / "run.json").exists() and not live.goes_on,
            kind="images" if pictured else "texts",
        )

    @for_staff
    def events(self, visiting: Visiting, key: Key, after: After = 0) -> Response:
        """As server-sent events; each says how many came before it, so that a lost connection goes on from there."""
        del visiting
        live = self._live(key)
        begun = live.begun
        dataset = self._dataset(begun)
        rows = {one.id: row for row, one in enumerate(dataset.examples)} if dataset else {}
        texts = {one.id: one.text[:400] for one in dataset.examples if one.text} if dataset else {}

        def shown(event: dict[str, Any]) -> dict[str, Any]:
            named = [*event.get("examples", []), *event.get("without", [])]
            named += [one for asked in event.get("questions", ()) for one in (*asked["examples"], *asked["without"])]
            event.pop("settings", None)
            return event | {
                "rows": {one: rows[one] for one in named if one in rows},
                "texts": {one: texts[one] for one in named if one in texts},
            }

        async def stream() -> AsyncIterator[str]:
            place, looks = after, 0
            while True:
                new = await asyncio.to_thread(live.events, place)
                for event in new:
                    place += 1
                    yield f"id: {place}\ndata: {json.dumps(shown(event))}\n\n"
                if not new and not await asyncio.to_thread(lambda: live.goes_on):
                    yield f"event: over\ndata: {json.dumps({'finished': (live.path.parent / 'run.json').exists()})}\n\n"
                    return
                looks = 0 if new else looks + 1
                if looks == KEEP_ALIVE_LOOKS:
                    looks = 0
                    yield ": still here\n\n"
                await asyncio.sleep(LOOK_SECONDS)

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    @for_staff
    def steer(self, visiting: Visiting, key: Key) -> Response:
        """Enter what a person wants in the run's log; the run heeds it between two questions."""
        live, form = self._live(key), visiting.form
        wish = {"action": form.one("action"), "by": visiting.who.name, "at": now()}
        wish |= {name: " ".join(form.one(name).split()) for name in WISHES.get(wish["action"], ())}
        if wish["action"] not in WISHES or not all(0 < len(wish[name]) <= MAX_NAME for name in WISHES[wish["action"]]):
            raise HTTPException(422, "A discovery can be stopped, and features of it vetoed or renamed.")
        if not live.goes_on:
            raise HTTPException(409, "The discovery is not running any more: change its features in the run.")
        append_events(live.path.parent / STEER, lambda _: [wish])
        return RedirectResponse(f"/live/{key}", 303)

    @for_staff
    def media(self, visiting: Visiting, key: Key, row: Row, size: Size) -> Response:
        del visiting
        dataset = self._dataset(self._live(key).begun)
        examples = dataset.examples if dataset else ()
        return picture_response(self._pictures, examples[row] if row < len(examples) else None, size)

    def _live(self, key: str) -> LiveRun:
        folder = self._shelf.folder(key)
        if folder is None or not (folder / LIVE).is_file():
            raise HTTPException(404)
        return LiveRun(folder / LIVE)

    def _dataset(self, begun: dict[str, Any]) -> Dataset | None:
        """None where it cannot be read: the page does without pictures then."""
        settings = begun.get("settings", {})
        name = json.dumps(settings, sort_keys=True)
        with self._lock:
            if name not in self._datasets:
                try:
                    self._datasets[name] = load_dataset(str(settings["dataset"]), Columns.of(settings))
                except (DatasetError, KeyError):
                    self._datasets[name] = None
            found: Dataset | None = self._datasets[name]
            return found
