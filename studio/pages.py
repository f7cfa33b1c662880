"""What the pages of the studio share, and who may do what: its owner everything, editors all that concerns runs,
reviewers only the review.

The owner is an administrator of the review; an editor may answer as a reviewer too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fastapi import Path
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from twothirds.reports.run import RunError
from twothirds.sources import Example
from twothirds.store.review import ADMIN, EDITOR
from twothirds.studio.catalog import OpenRun, RunCatalog, TableCatalog
from twothirds.studio.config import StudioConfig
from twothirds.studio.review import BrowserPictures, Pages, RequestContext, for_role
from twothirds.studio.views import html_response

OWNER = ADMIN
Key = Annotated[str, Path(pattern="^[0-9a-f]{12}$")]
Row = Annotated[int, Path(ge=0, le=10**9)]
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True)
class Studio:
    """What all pages use."""

    config: StudioConfig
    run_catalog: RunCatalog
    others: TableCatalog
    pictures: BrowserPictures = field(default_factory=BrowserPictures)


class StudioPages(Pages):
    def __init__(self, studio: Studio) -> None:
        self._config, self._pictures = studio.config, studio.pictures
        self._run_catalog, self._others = studio.run_catalog, studio.others

    def render(self, template: str, visitor: RequestContext, status: int = 200, /, **context: Any) -> Response:
        owner = visitor.role == OWNER
        return html_response(f"studio/{template}", status, who=visitor.who, owner=owner, csrf=visitor.csrf, **context)

    def opened(self, key: str) -> OpenRun:
        try:
            found = self._run_catalog.open(key)
            if found is not None:
                found.run.findings  # noqa: B018 - read now: files that cannot be read are reported here
        except RunError as error:
            raise HTTPException(422, str(error)) from None
        if found is None:
            raise HTTPException(404)
        return found

    def picture(self, example: Example | None, size: str) -> Response:
        if example is None:
            raise HTTPException(404)
        stored = {"id": example.id, "text": example.text, "image": example.image, "home": example.home}
        found = self._pictures.get(example.digest, stored, size)
        if found is None:
            raise HTTPException(404)
        cache = {"Cache-Control": "private, max-age=3600"}
        return Response(found.content, media_type=found.kind, headers=cache)


def for_staff(route: str) -> Callable[[Endpoint], Endpoint]:
    """An endpoint for the owner and for editors."""
    return for_role(route, OWNER, EDITOR)
