"""A discovery as it happens: the question with its pictures, the answer, the features, what it has cost so far.

All of it comes from the file that the run writes, so that a reload, or joining late, shows the same."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from cachetools import LRUCache
from fastapi import Query
from fastapi.responses import Response, StreamingResponse
from starlette.exceptions import HTTPException

from reports.run import LIVE, LiveRun, RunError, RunSummary
from sources import Columns, Dataset, DatasetError, Example, load_dataset
from studio.catalog import RunCatalog
from studio.pages import OWNER, Key, Row, Studio, StudioPages, for_staff
from studio.review import Size, Visitor

LOOK_SECONDS = 0.5
KEEP_ALIVE_LOOKS = 30  # after which a line is sent that says nothing, so that proxies keep the connection
STARTED = "start.json"  # the studio has started it
OPEN_DATASETS = 4
SOURCE_SETTINGS = ("dataset", "id_column", "text_column", "image_column")
After = Annotated[int, Query(ge=0, le=10**9)]


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
    def __init__(self, studio: Studio, watched: LiveRuns) -> None:
        super().__init__(studio)
        self._watched = watched

    @for_staff("GET /live/{key}")
    def page(self, visitor: Visitor, key: Key) -> Response:
        folder, starter = self._run_catalog.folder(key, STARTED, LIVE), self._config.starter
        starts = folder is not None and _is_newer(folder / STARTED, folder / LIVE)
        if folder is not None and starts and (starter.goes_on(folder) or not (folder / LIVE).is_file()):
            printed, runs = starter.printed(folder), starter.goes_on(folder)
            name = "starting.html" if runs else "started.html"
            return self._templates.page(name, who=visitor.who, folder=folder.name, printed=printed, runs=runs)
        live = self._watched.live(key)
        begun, goes_on = live.begun, live.goes_on
        examples = self._watched.examples(begun) or ()
        pictured = any(example.image is not None for example in examples)
        return self._templates.page(
            "live.html",
            who=visitor.who,
            owner=self.roles.of(visitor.who) == OWNER,
            key=key,
            csrf=visitor.csrf,
            begun=begun,
            folder=live.path.parent.name,
            finished=_has_results(live) and not goes_on,
            failed=starter.printed(live.path.parent) if starts and not goes_on else "",
            kind="images" if pictured else "texts",
        )

    @for_staff("GET /live/{key}/events")
    def events(self, visitor: Visitor, key: Key, after: After = 0) -> Response:
        """As server-sent events; each says how many came before it, so that a lost connection goes on from there."""
        del visitor
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
            place, looks = after, 0
            while True:
                new = await asyncio.to_thread(live.events, place)
                for event in new:
                    place += 1
                    yield f"id: {place}\ndata: {json.dumps(shown(event))}\n\n"
                if not new and not await asyncio.to_thread(lambda: live.goes_on):
                    over = {"finished": _has_results(live), "runs": self._config.starter.goes_on(live.path.parent)}
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
