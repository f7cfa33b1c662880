"""Two runs side by side: what was asked differently, what both found and how far they agree, what only one has."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from reports.compare import side_by_side
from reports.drawing import share_bar
from reports.run import FoundFeature, RunError, without_paths
from studio.catalog import OpenRun
from studio.pages import StudioPages, for_staff
from studio.review import Visitor

OF_THE_PLACE = {"store", "out", "replace", "retry_unusable", "wait"}  # settings that change no result
Chosen = Annotated[list[str], Query(alias="run", max_length=100)]


class PairPages(StudioPages):
    @for_staff("GET /side-by-side")
    def pair(self, visitor: Visitor, chosen: Chosen = []) -> Response:  # noqa: B006 - FastAPI copies it
        keys = list(dict.fromkeys(chosen))
        if len(keys) != 2:
            message = "Two runs are shown side by side: tick two of them in the list."
            return self._templates.page(
                "notice.html", 422, who=visitor.who, title="Side by side", message=message, back="/runs"
            )
        a, b = (self.opened(key) for key in keys)
        try:
            found = side_by_side(a.run.findings, keys_of(a, b), b.run.findings, keys_of(b, a))
        except RunError as error:
            raise HTTPException(422, str(error)) from None
        return self._templates.page(
            "pair.html",
            who=visitor.who,
            runs=(a, b),
            settings=differing(a.run.summary.settings, b.run.summary.settings),
            found=found,
            bar=_bar,
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
