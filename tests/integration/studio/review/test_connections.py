"""Visitors who open connections and say little or nothing keep nobody else out, and the log stays short."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.support.review_site import free_port, wait_for_page
from twothirds.flows.errors import UsageError
from twothirds.flows.reviewing import page as review_page

ROOT = Path(__file__).parents[4]
HEAD_SECONDS, BODY_SECONDS = 1.0, 2.0
FILES = 512  # that the server may open
PARTS = (b"GET / HTTP/1.1\r\n", b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", b"")
SERVING = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[3]),) * 2)
try:
    from twothirds.flows.reviewing import connections
    connections.HEAD_SECONDS, connections.BODY_SECONDS, connections.STALL_SECONDS = map(float, sys.argv[4:])
    connections.TICK_SECONDS = 0.1
except ImportError:
    pass
from twothirds.flows.reviewing import page
from twothirds.store import Store
page.serve(Store.open(sys.argv[1]), page.PageSettings(port=int(sys.argv[2])))
"""


class Page:
    def __init__(self, port: int, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.port, self.log, self.process = port, log, process

    def connect(self, sent: bytes, **options: int) -> socket.socket:
        visitor = socket.socket()
        for option, value in options.items():
            visitor.setsockopt(socket.SOL_SOCKET, getattr(socket, option), value)
        visitor.settimeout(20)
        visitor.connect(("127.0.0.1", self.port))
        visitor.sendall(sent)
        return visitor

    def seconds_to_answer(self) -> float:
        before = time.monotonic()
        assert httpx.get(f"http://127.0.0.1:{self.port}/static/review.css", timeout=10).status_code == 200
        return time.monotonic() - before

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@contextmanager
def serving(folder: Path, *, head: float = 600, body: float = 600, stall: float = 600) -> Iterator[Page]:
    port, log = free_port(), folder / "log"
    arguments = [str(folder / "store.sqlite"), str(port), str(FILES), str(head), str(body), str(stall)]
    with log.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-c", SERVING, *arguments], cwd=ROOT, stderr=stderr)
    try:
        wait_for_page(process, port)
        yield Page(port, log, process)
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with serving(tmp_path_factory.mktemp("page"), head=HEAD_SECONDS, body=BODY_SECONDS, stall=1.0) as page:
        yield page


def is_closed_within(visitor: socket.socket, seconds: float) -> bool:
    visitor.settimeout(seconds)
    try:
        while visitor.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
        b"POST /answer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"GET /static/review.css HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n",
    ],
)
def test_a_request_that_is_sent_in_part_is_dropped(page: Page, sent: bytes) -> None:
    with page.connect(sent) as visitor:
        assert is_closed_within(visitor, HEAD_SECONDS + BODY_SECONDS + 3)


@pytest.mark.parametrize(
    ("sent", "more"),
    [(b"GET / HTTP/1.1\r\n", b"a"), (b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n", b"a")],
)
def test_nor_do_single_bytes_prolong_it(page: Page, sent: bytes, more: bytes) -> None:
    with page.connect(sent) as visitor:
        deadline = time.monotonic() + HEAD_SECONDS + BODY_SECONDS + 3
        with suppress(ConnectionError):
            while time.monotonic() < deadline:
                visitor.sendall(more)
                if is_closed_within(visitor, 0.1):
                    return
            raise AssertionError("the connection is still open")


def test_a_response_that_nobody_takes_is_dropped(page: Page) -> None:
    asked = b"GET /static/review.css HTTP/1.1\r\nHost: x\r\n\r\n" * 1000
    before = page.open_files()
    with page.connect(b"", SO_RCVBUF=4096) as visitor:
        visitor.setblocking(False)
        deadline = time.monotonic() + 20
        with suppress(BlockingIOError, ConnectionError):
            while time.monotonic() < deadline:
                visitor.sendall(asked)
        while page.open_files() > before and time.monotonic() < deadline:
            time.sleep(0.1)
        assert page.open_files() <= before


def test_a_form_that_is_cut_off_leaves_nothing_in_the_log(page: Page) -> None:
    logged = page.log.stat().st_size
    for _ in range(20):
        page.connect(b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc").close()
    page.seconds_to_answer()
    time.sleep(0.3)
    assert page.log.read_bytes()[logged:] == b""


def test_more_connections_than_files_keep_nobody_out_and_the_log_short(tmp_path: Path) -> None:
    with serving(tmp_path) as page, ExitStack() as visitors:
        for number in range(FILES + 100):
            visitors.enter_context(page.connect(PARTS[number % len(PARTS)]))
        assert max(page.seconds_to_answer() for _ in range(5)) < 3
        assert page.open_files() < FILES
        time.sleep(1)
        assert page.log.stat().st_size < 5_000, page.log.read_text()[:2000]


def test_a_page_that_may_open_too_few_files_says_so() -> None:
    from twothirds.flows.reviewing.connections import bounded_protocol

    with pytest.raises(UsageError, match="only 64 files may be open, too few to serve the page: raise it with ulimit"):
        bounded_protocol(64)


def test_the_log_takes_a_few_lines_of_a_kind_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("twothirds.flows.reviewing.page.time.monotonic", lambda: now[0])
    few = review_page.FewOfAKind()

    def logged(message: str, *arguments: object, error: BaseException | None = None) -> str | None:
        raised = (type(error), error, None) if error else None
        record = logging.LogRecord("asyncio", logging.ERROR, "", 0, message, arguments, raised)
        return record.getMessage() if few.filter(record) else None

    lines = [logged("socket.accept() out of system resource %s", number) for number in range(1000)]
    assert [line for line in lines if line] == [
        *(f"socket.accept() out of system resource {number}" for number in range(4)),
        "socket.accept() out of system resource 4 (others like this one are not logged for up to a minute)",
    ]
    assert logged("a request failed", error=ValueError()) == "a request failed"
    assert logged("a request failed", error=KeyError()) == "a request failed"
    now[0] = 61.0
    assert logged("socket.accept() out of system resource %s", 7) == "socket.accept() out of system resource 7"
