"""The page of the browser, what its script asks for, and the export of what is selected."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote

import numpy as np
from fastapi import Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from twothirds.discovery import UNKNOWN
from twothirds.reports.browse import BrowseChoice, BrowsedColumn
from twothirds.reports.export import Marks, of_run, wide_parquet
from twothirds.reports.run import LIVE, FoundFeature, LiveRun, RunError
from twothirds.studio.browse.browsed import BrowsedRun, BrowsedRuns
from twothirds.studio.pages import Key, Studio, StudioPages, for_staff
from twothirds.studio.review import BrowserPictures, Visitor, film_kind
from twothirds.studio.runs import finished_place, unfinished_place, votes_on
from twothirds.studio.views import json_response

TILE_LETTERS = 2_000
WORDS = {1: "yes", 0: "no", UNKNOWN: "unknown"}


def about_of(browsed: BrowsedRun) -> dict[str, Any]:
    catalogue = browsed.catalogue
    everything = catalogue.find(BrowseChoice())
    return {
        "total": everything["total"],
        "pictured": browsed.pictured,
        "texts": browsed.textual,
        "embedded": catalogue.embedded,
        "features": [
            {"name": feature.name, "definition": feature.definition, "marks": counts}
            for feature, counts in zip(catalogue.features, everything["features"], strict=True)
        ],
        "any": everything["any"],
        "columns": [_column(column) for column in catalogue.columns.values()],
        "media": browsed.media,
        "finished": browsed.run is not None,
    }


def _column(column: BrowsedColumn) -> dict[str, Any]:
    if column.numbers is None:
        return {"name": column.name, "distinct": len(column.values)}
    low, high = column.span
    return {"name": column.name, "low": low, "high": high}


def tiles_of(
    browsed: BrowsedRun, choice: BrowseChoice, places: Sequence[int], notes: Sequence[str]
) -> list[dict[str, Any]]:
    """Predicted is what was chosen by a predicted label."""
    catalogue = browsed.catalogue
    chosen = {name for mark, name in choice.features if mark in ("yes", "no")}
    predicted = [feature.by_name["predicted"] for feature in catalogue.features if feature.name in chosen]
    return [
        {
            "place": row,
            "id": catalogue.ids[row],
            "text": (catalogue.texts[row] or "")[:TILE_LETTERS],
            "note": note,
            "predicted": any(bool(predictions[row]) for predictions in predicted),
        }
        for row, note in zip(places, notes, strict=True)
    ]


def example_of(browsed: BrowsedRun, row: int, pictures: BrowserPictures) -> dict[str, Any]:
    catalogue, example = browsed.catalogue, browsed.examples[row]
    image = example.image if example is not None else None
    stored = {"id": example.id, "text": example.text, "image": image, "home": example.home} if example else {}
    return {
        "place": row,
        "id": catalogue.ids[row],
        "text": catalogue.texts[row] or "",
        "pictured": image is not None,
        "film": film_kind(image) is not None,
        "moves": example is not None and image is not None and pictures.is_moving(example.digest, stored),
        "labels": [
            {
                "label": WORDS[int(found.labels[row])],
                "words": words_on(found, row),
                "doubtful": bool(marks.by_name["doubtful"][row]),
                "contradicted": bool(marks.by_name["contradicted"][row]),
            }
            for found, marks in zip(browsed.findings.found, catalogue.features, strict=True)
        ],
        "columns": [[column.name, column.text(row)] for column in catalogue.columns.values()],
    }


def words_on(found: FoundFeature, row: int) -> str:
    """Where a label comes from."""
    if (corrected := found.corrected.get(row)) is not None:
        return f"corrected by {corrected.by}"
    return votes_on(found, row)


MOST_AT_ONCE = 500  # tiles of one answer
MOST_FIELDS = 1_000  # of a question
MOST_NAMED = 200  # selected examples whose ids the page gets, for its address


class BrowsePages(StudioPages):
    def __init__(self, studio: Studio) -> None:
        super().__init__(studio)
        self._runs = BrowsedRuns(studio.run_catalog, studio.config.vectors)

    @for_staff("GET /runs/{key}/browse")
    def page(self, visitor: Visitor, key: Key) -> Response:
        """Without the run, which may take a while to read: the page's script asks for it."""
        folder = self._run_catalog.folder(key)
        if folder is None:
            raise HTTPException(404)
        opened = self._run_catalog.open(key)
        try:
            if opened is not None:
                place = finished_place(opened)
            else:
                live = LiveRun(folder / LIVE)
                place = unfinished_place(key, folder.name, live.begun, live.state, "images")
        except RunError as error:
            raise HTTPException(422, str(error)) from None
        return self.render("browse_run.html", visitor, place=place)

    @for_staff("GET /runs/{key}/browse/about")
    def facts(self, visitor: Visitor, key: Key) -> Response:
        del visitor
        browsed = self._run(key)
        return json_response(about_of(browsed))

    @for_staff("GET /runs/{key}/browse/found")
    def found(self, visitor: Visitor, key: Key, request: Request) -> Response:
        """What matches, a page of it, and how many would match otherwise."""
        del visitor
        browsed, asked = self._run(key), _asked(request)
        choice, plain = BrowseChoice.of(asked), dict(asked)
        start, count = (_number(plain.get(name, "")) or 0 for name in ("start", "count"))
        answer = browsed.catalogue.find(choice, start, min(count, MOST_AT_ONCE))
        answer["tiles"] = tiles_of(browsed, choice, answer.pop("places"), answer.pop("notes"))
        return json_response(answer | {"live": self._runs.live(key)})

    @for_staff("GET /runs/{key}/browse/all")
    def all(self, visitor: Visitor, key: Key, request: Request) -> Response:
        """The places of all that match, with their ids where these are few; or of those that an address names."""
        del visitor
        browsed, asked = self._run(key), _asked(request)
        names = [value for name, value in asked if name == "selected"]
        if names:
            rows = [row for name in names if (row := browsed.catalogue.row(name)) is not None]
        else:
            rows = browsed.catalogue.matching(BrowseChoice.of(asked))
        ids = [browsed.findings.ids[row] for row in rows] if len(rows) <= MOST_NAMED else None
        return json_response({"places": rows, "ids": ids})

    @for_staff("GET /runs/{key}/browse/example")
    def example(self, visitor: Visitor, key: Key, row: str = "", id: str | None = None) -> Response:
        """By its place or by its id; null where there is none."""
        del visitor
        browsed = self._run(key)
        place = browsed.catalogue.row(id) if id is not None else _number(row)
        if place is None or place >= len(browsed.findings.ids):
            return json_response(None)
        return json_response(example_of(browsed, place, self._pictures))

    @for_staff("POST /runs/{key}/browse/export")
    def export(self, visitor: Visitor, key: Key) -> Response:
        """The ids of the selected examples, a line each, or all that is known of them as Parquet."""
        browsed, kind = self._run(key), visitor.form.value("kind")
        rows = rows_of(visitor.form.value("rows"), len(browsed.findings.ids))
        if not rows:
            raise HTTPException(422, "Nothing is selected: select some examples first.")
        name = self._catalog_name(key)
        if kind == "parquet" and browsed.run is not None:
            export = of_run(browsed.run, marks=Marks(with_=["doubtful"]))
            content = wide_parquet(replace(export, metadata=browsed.own), rows)
            return _download(content, "application/vnd.apache.parquet", f"{name}.parquet")
        if kind != "ids":
            raise HTTPException(422, "Ids can be exported, and Parquet of a run that has finished.")
        lines = "".join(f"{browsed.findings.ids[row]}\n" for row in rows)
        return _download(lines.encode("utf-8", "replace"), "text/plain; charset=utf-8", f"{name}-ids.txt")

    def _catalog_name(self, key: str) -> str:
        folder = self._run_catalog.folder(key)
        return folder.name if folder is not None else key

    def _run(self, key: str) -> BrowsedRun:
        try:
            browsed = self._runs.get(key)
        except RunError as error:
            raise HTTPException(422, str(error)) from None
        if browsed is None:
            raise HTTPException(404)
        return browsed


def rows_of(text: str, count: int) -> list[int]:
    """Of a set of places as a bit string in base64; what is beyond the last example is ignored."""
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (ValueError, binascii.Error, UnicodeError):
        raise HTTPException(422, "This is no selection: reload the page.") from None
    bits = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")
    return [int(row) for row in np.flatnonzero(bits[:count])]


def _asked(request: Request) -> list[tuple[str, str]]:
    try:
        return parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise HTTPException(422, "Too much is chosen at once.") from None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _download(content: bytes, kind: str, name: str) -> Response:
    plain = quote(name.encode("utf-8", "replace"), safe="")
    return Response(content, media_type=kind, headers={"Content-Disposition": f"attachment; filename*=UTF-8''{plain}"})
