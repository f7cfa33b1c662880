"""The files that pages need, such as scripts and style sheets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fastapi.responses import Response

from studio.review.access import Refusal

KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


class StaticFiles:
    """Read once; nothing that an address says is taken for a path."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._files = {path.name: (path.read_bytes(), KINDS[path.suffix]) for path in paths}

    def response(self, name: str) -> Response:
        if name not in self._files:
            raise Refusal(404, "refused.page")
        content, kind = self._files[name]
        return Response(content, media_type=kind, headers={"Cache-Control": "public, max-age=300"})
