"""The data that the page's own script reads: labels, votes, names, and thumbnails of the examples it holds."""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from twothirds.reports.browse import BrowsedColumn, ExampleCatalogue
from twothirds.reports.run import Findings, FoundFeature
from twothirds.sources import DatasetError, Example, open_image

MIME = "image/webp"
THUMBNAIL_SIDES = ((300, 224), (1000, 128))  # up to so many pictures, so many pixels on the longer side
SMALLEST_SIDE = 96
QUALITY, LEAST_QUALITY = 75, 50  # of WebP; the second where pictures are smallest, so that 2,000 take less than 8 MB


def side_for(count: int) -> int:
    """Large where there are few, so that the page stays small where there are many."""
    return next((side for limit, side in THUMBNAIL_SIDES if count <= limit), SMALLEST_SIDE)


def thumbnails(examples: Sequence[Example | None], side: int | None = None) -> list[str]:
    """One WebP picture each, in base64; empty where there is none or it cannot be read any more."""
    side = side or side_for(len(examples))
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda example: _thumbnail(example, side), examples))


def _thumbnail(example: Example | None, side: int) -> str:
    if example is None or example.image is None:
        return ""
    try:
        picture = open_image(example, longest_side=side)
    except DatasetError:
        return ""
    written = io.BytesIO()
    picture.save(written, "WEBP", quality=QUALITY if side > SMALLEST_SIDE else LEAST_QUALITY, method=2)
    return base64.b64encode(written.getvalue()).decode("ascii")


FIRST_CODE = 0x30  # votes are coded as one character each, from "0" on
TEXT_LIMIT = 4_000  # characters of one text; all texts together get TEXTS_LIMIT
TEXTS_LIMIT = 4_000_000
COLUMN_LIMIT = 1_000_000  # characters of the different values of one column
SPELLED = np.array(["0", "1", "-"])  # -1, unknown, is the last


def browser_data(
    catalogue: ExampleCatalogue, findings: Findings, rows: NDArray[np.intp], pictures: list[str]
) -> dict[str, Any]:
    """Labels, votes, scores and doubts of a feature are strings with one character per example: small, and quick to
    read."""
    codes: dict[tuple[int, int, int], str] = {}
    percents: list[int] = []
    votes = []
    for feature in findings.found:
        vote_counts = feature.vote_counts
        cast = zip(
            vote_counts.yes[rows].tolist(),
            vote_counts.no[rows].tolist(),
            vote_counts.abstained[rows].tolist(),
            strict=True,
        )
        votes.append("".join(codes.setdefault(counts, chr(_code(len(codes)))) for counts in cast))
    shown = [catalogue.texts[row] for row in rows]
    limit = min(TEXT_LIMIT, TEXTS_LIMIT // max(len(shown), 1))
    marks = catalogue.features
    return {
        "ids": [findings.ids[row] for row in rows],
        "order": np.argsort(np.argsort(catalogue.ranks[rows])).tolist(),
        "texts": [cut(text, limit) if text else "" for text in shown] if any(shown) else None,
        "features": [{"name": feature.name, "definition": feature.definition} for feature in findings.found],
        "labels": ["".join(SPELLED[feature.labels[rows]]) for feature in findings.found],
        "votes": votes,
        "tallies": {code: list(votes_cast) for votes_cast, code in codes.items()},
        "scores": [_coded(mark.scores[rows].tolist(), percents) for mark in marks],
        "doubts": [_coded(feature.doubts[rows].tolist(), percents) for feature in marks],
        "percents": percents,
        "doubtful": [np.flatnonzero(feature.by_name["doubtful"][rows]).tolist() for feature in marks],
        "contradicted": [np.flatnonzero(feature.by_name["contradicted"][rows]).tolist() for feature in marks],
        "corrected": [_correctors(feature, rows) for feature in findings.found],
        "predicted": [_percents(feature, rows) for feature in findings.found],
        "columns": [_column(column.among(rows)) for column in catalogue.columns.values()],
        "mime": MIME,
        "pictured": any(pictures),
    }


def _coded(percents: list[int], known: list[int]) -> str:
    """One character each, by the place among those that are known, which grow."""
    known.extend(sorted(set(percents) - set(known)))
    return "".join(chr(_code(known.index(percent))) for percent in percents)


def _column(column: BrowsedColumn) -> dict[str, Any]:
    if column.numbers is not None:
        numbers = [None if np.isnan(number) else number for number in column.numbers.tolist()]
        return {"name": column.name, "numbers": numbers}
    return {"name": column.name, "values": list(column.values), "codes": np.asarray(column.codes).tolist()}


def carried_columns(columns: Sequence[BrowsedColumn]) -> tuple[list[BrowsedColumn], list[str]]:
    """Those that the page can hold, and the names of those that are too large."""
    small = [sum(map(len, column.values)) <= COLUMN_LIMIT for column in columns]
    kept = [column for column, fits in zip(columns, small, strict=True) if fits]
    return kept, [column.name for column, fits in zip(columns, small, strict=True) if not fits]


def _percents(feature: FoundFeature, rows: NDArray[np.intp]) -> dict[int, int]:
    """Of the predicted labels how probable yes was, by place in the page."""
    places = np.flatnonzero(feature.predicted[rows])
    percents = (100 * feature.probability[rows[places]]).round().astype(int)
    return dict(zip(places.tolist(), percents.tolist(), strict=True))


def _correctors(feature: FoundFeature, rows: NDArray[np.intp]) -> dict[int, str]:
    """Of the corrected labels who corrected them, by place in the page."""
    return {place: feature.corrected[row].by for place, row in enumerate(rows.tolist()) if row in feature.corrected}


def script_json(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in, nor begin a comment or another element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)  # noqa: S704 - no character is left that HTML gives a meaning to


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _code(number: int) -> int:
    """Characters that JSON writes as they are: neither quotation mark nor backslash, and nothing below them."""
    code = FIRST_CODE + number
    return code if code < 0x5C else code + 1
