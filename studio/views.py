"""Renders the studio's templates. Everything is escaped, and an undefined name is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from twothirds.reports.drawing import ASSETS, FILTERS
from twothirds.reports.page import BROWSER_SCRIPTS

HERE = Path(__file__).parent
OF_THE_REPORT = ("report.css", *BROWSER_SCRIPTS)  # its look, and its browser


class StudioTemplates:
    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader([HERE / "templates", ASSETS]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(FILTERS)
        self._environment.globals["browser_scripts"] = BROWSER_SCRIPTS

    def page(self, template: str, status: int = 200, /, **context: Any) -> HTMLResponse:
        text = self._environment.get_template(template).render(context)
        return HTMLResponse(text.encode("utf-8", "replace"), status)


def json_response(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value, separators=(",", ":")), status, media_type="application/json")


def static_paths() -> list[Path]:
    """Of the files that pages need."""
    return [*(HERE / "static").iterdir(), *(ASSETS / name for name in OF_THE_REPORT)]
