"""A page of another origin, open in the user's browser, can neither read from a Prefect server of ours nor start what
is deployed there."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.flows.cli.test_prefect_lost import server_of
from tests.e2e.flows.cli.test_signals import SLOW_CROWD, Command, started
from tests.support.chromium import opened
from tests.support.drive_by import PAGE, Target, basic, page_of_a_stranger
from tests.support.review_site import free_port

PARAMETERS = {"parameters": {"settings": {"dataset": "datasets/faces", "oracle": "openai:m"}}}
EVIL = "http://evil.example"


@pytest.fixture
def target(prefect_url: str) -> Target:
    return Target(prefect_url, os.environ["PREFECT_API_AUTH_STRING"])


def hostile(target: Target) -> dict[str, dict[str, str]]:
    """Headers that come with what pages of strangers can have a browser send."""
    host = target.url.removeprefix("http://").removesuffix("/api")
    return {
        "another origin": {"Origin": EVIL},
        "another port": {"Origin": "http://127.0.0.1:1"},
        "a sandboxed frame": {"Origin": "null"},
        "another name": {"Host": "evil.example", "Origin": EVIL},
        "another name with the port": {"Host": host.replace("127.0.0.1", "evil.example")},
        "a picture's address": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    }


def test_requests_of_strangers_are_refused_with_a_deployment_in_place(target: Target) -> None:
    deployment = target.deploy()
    before, start = target.started(), f"/deployments/{deployment}/create_flow_run"
    for name, headers in hostile(target).items():
        for method, path, content in (
            ("POST", start, PARAMETERS),
            ("GET", "/deployments/name/discover/discover", None),
        ):
            status, given, _ = target.send(method, path, content, headers)
            assert status == 401, (name, path)
            assert "access-control-allow-origin" not in given, name
        asked = {**headers, "Access-Control-Request-Method": "POST"}
        _, given, _ = target.send("OPTIONS", start, None, asked)
        assert "access-control-allow-origin" not in given, name
    for wrong in ({}, {"Authorization": basic("admin:admin")}, {"Content-Type": "text/plain"}):
        assert target.send("POST", start, PARAMETERS, wrong)[0] == 401
    assert target.started() == before
    own = target.url.removesuffix("/api")
    status, given, _ = target.send("GET", "/health", None, {"Origin": own})
    assert (status, given["access-control-allow-origin"]) == (200, own)
    assert target.ask("POST", start, {})["deployment_id"] == deployment


@contextmanager
def kept_server(folder: Path) -> Iterator[tuple[Command, Target]]:
    port = free_port()
    with started(folder, "server", "--port", str(port), program=("-c", WITHOUT_STORE)) as command:
        command.wait_for_word("PREFECT_API_AUTH_STRING")  # the last that it says
        [path] = re.findall(r"password in (\S+);", (folder / "errors").read_text())
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
        yield command, Target(f"http://127.0.0.1:{port}/api", Path(path).read_text().strip())


# `started` gives every command a store, and `server` takes none.
WITHOUT_STORE = "import sys; from twothirds.flows.cli.app import main; sys.exit(main(sys.argv[1:-2]))"


@contextmanager
def server_of_a_run(folder: Path) -> Iterator[tuple[Command, Target]]:
    words = ["discover", "datasets/faces", "--oracle", SLOW_CROWD, "--yes", "--out", str(folder / "run")]
    with started(folder, *words) as command:
        command.wait_until(0)
        lines = Path(f"/proc/{server_of(command.folder)}/environ").read_bytes().decode().split("\0")
        given = dict(line.partition("=")[::2] for line in lines)
        yield command, Target(given["PREFECT_API_URL"], given["PREFECT_SERVER_API_AUTH_STRING"])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("serve", [kept_server, server_of_a_run])
def test_a_page_in_chromium_can_do_nothing(chromium: Browser, tmp_path: Path, serve: object) -> None:
    with serve(tmp_path) as (_, target):  # type: ignore[operator]
        deployment = target.deploy()
        assert target.started() == []
        with page_of_a_stranger(target.url, deployment) as address, opened(chromium, address) as seen:
            found = seen.page.evaluate("attack()")
            assert {way: what for way, what in found.items() if what is not None} == {}
            with seen.page.expect_navigation():
                seen.page.evaluate("document.forms[1].submit()")
            assert "Unauthorized" in seen.page.content()
        renamed = target.url.replace("127.0.0.1", "rebound.localhost")  # a name that leads here, as after rebinding
        origin = renamed.removesuffix("/api")
        with opened(chromium, "about:blank") as seen:
            html = PAGE % {"api": renamed, "deployment": deployment}
            seen.page.route(f"{origin}/attack", lambda route: route.fulfill(body=html, content_type="text/html"))
            seen.page.goto(f"{origin}/attack")
            found = seen.page.evaluate("attack()")
            read = {way: reply for way, reply in found.items() if reply is not None}
            assert {way for way, reply in read.items() if not reply.startswith("401")} <= {"health", "settings"}
            assert target.password not in str(read)
        assert target.started() == []
    found_in = [
        path for path in tmp_path.rglob("*") if path.is_file() and target.password.encode() in path.read_bytes()
    ]
    assert [path.name for path in found_in] in (["note.json"], ["server.auth"])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_people_log_in_with_the_password(chromium: Browser, tmp_path: Path) -> None:
    with kept_server(tmp_path) as (_, target):
        target.deploy()
        with opened(chromium, target.url.removesuffix("/api")) as seen:
            seen.page.get_by_placeholder("admin:pass").fill(target.password)
            seen.page.keyboard.press("Enter")
            expect(seen.page.get_by_role("button", name="Logout")).to_be_visible()
            seen.page.get_by_role("link", name="Deployments").click()
            expect(seen.page.get_by_text("discover").first).to_be_visible()
