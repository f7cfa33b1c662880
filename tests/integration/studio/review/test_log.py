"""What the server of the review page logs may quote visitors and files: nothing of it reaches the terminal as it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.support.review_site import free_port
from twothirds.flows.cli.terminal import print_traceback
from twothirds.sources.printable import printable

ROOT = Path(__file__).parents[4]
HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202e\r"
SHOWN = "\\x1b[2J\\x1b]0;owned\\x07\\u202e\\r"
SERVING = """
import sys
from twothirds.flows.reviewing import page as reviewing
from twothirds.studio.review.access import PUBLIC, for_role
from twothirds.store import Store

made = reviewing.make_app

def failing(store, settings):
    app = made(store, settings)

    @for_role("GET /fail", PUBLIC)
    def fail(said: str):
        raise RuntimeError(f"cannot use {said}")

    app.add_api_route("/fail", fail, methods=["GET"])
    return app

reviewing.make_app = failing
reviewing.serve(Store.open(sys.argv[1]), reviewing.PageSettings(port=int(sys.argv[2])))
"""


def test_a_request_that_fails_is_logged_with_escapes(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-c", SERVING, str(tmp_path / "store.sqlite"), str(port)]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ, stderr=subprocess.PIPE) as server:
        try:
            reply = _reply(f"http://127.0.0.1:{port}/fail")
        finally:
            server.terminate()
        assert server.stderr is not None
        logged = server.stderr.read().decode()
    assert (reply.status_code, "owned" in reply.text) == (500, False)
    assert f"RuntimeError: cannot use {SHOWN}" in logged
    assert "Traceback" in logged
    assert all(printable(line) == line for line in logged.split("\n"))


def test_a_traceback_of_debug_is_printed_with_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise RuntimeError(f"cannot use {HOSTILE}")
    except RuntimeError as error:
        print_traceback(type(error), error, error.__traceback__)
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith(f"RuntimeError: cannot use {SHOWN}\n")


def _reply(address: str) -> httpx.Response:
    for _ in range(600):
        try:
            return httpx.get(address, params={"said": HOSTILE}, timeout=10)
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the page did not start")
