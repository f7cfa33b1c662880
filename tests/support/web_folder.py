"""A folder behind HTTP, for those who know the token; whoever does not is told what they asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


class _Guarded(SimpleHTTPRequestHandler):
    def __init__(self, *arguments: Any, token: str, **named: Any) -> None:
        self._token = token
        super().__init__(*arguments, **named)

    def do_GET(self) -> None:
        if self._admitted():
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._admitted():
            super().do_HEAD()

    def _admitted(self) -> bool:
        query = parse_qs(urlsplit(self.path).query)
        if [self._token] in query.values():
            return True
        self.send_error(403, f"not with {query}")
        return False

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def web_folder(folder: Path, token: str) -> Iterator[str]:
    """Its address, for as long as the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Guarded, directory=str(folder), token=token))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
