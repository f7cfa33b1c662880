"""Pages and data as responses."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import HTMLResponse, Response

from twothirds.studio.web import render


def html_response(template: str, status: int = 200, /, *, language: str = "en", **context: Any) -> HTMLResponse:
    return HTMLResponse(render(template, context, language), status, {"Content-Language": language})


def json_response(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value, separators=(",", ":")), status, media_type="application/json")
