"""What the page gets to know of a run, of tiles and of one example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discovery import UNKNOWN
from reports.browse import BrowseChoice, BrowsedColumn
from reports.run import FoundFeature
from studio.browse.browsed import BrowsedRun
from studio.review import BrowserPictures, film_kind
from studio.runs import votes_on

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
