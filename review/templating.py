"""HTML from templates: everything is escaped, and a name that is not given is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from review.views import FILTERS


class Templates:
    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,  # else every page looks whether its templates have changed
        )
        self._environment.filters.update(FILTERS)

    def page(self, template: str, status: int = 200, /, **context: Any) -> HTMLResponse:
        text = self._environment.get_template(template).render(context)
        return HTMLResponse(text.encode("utf-8", "replace"), status)
