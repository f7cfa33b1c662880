"""Many people who answer on the review page over HTTP, in another process: `python -m tests.support.review_crowd`.

They share one thread and a client of a few lines, so that what is measured is the page and not they. The task comes as
JSON on stdin; each page that the server has acknowledged is a line on stdout, the times of requests are the last."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import urlencode, urlsplit

FORM = "Content-Type: application/x-www-form-urlencoded\r\n"
_LEASES = re.compile(r'name="has" value="(\d+)"')
_CSRF = re.compile(r'name="csrf" value="([^"]*)"')
TRIES = 2400
LOOKS = 5  # at a page without questions
PAUSE = 0.1  # before a person whose page did not load tries again


@dataclass
class Times:
    """Seconds of each request, and of each page from sending the answers until the next one is there."""

    requests: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)


class Person:
    def __init__(self, name: str, link: str, think: float, come_within: float, times: Times) -> None:
        parts = urlsplit(link)
        self._host, self._port, self._link = parts.hostname or "", parts.port or 80, parts.path
        self._name, self._think, self._come_within, self._times = name, think, come_within, times
        self._cookie = ""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def work(self) -> None:
        chance = Random(self._name)
        await asyncio.sleep(self._come_within * chance.random())
        await self._ask("GET", self._link)
        page = await self._next_page()
        while leases := _LEASES.findall(page):
            if self._think:
                await asyncio.sleep(self._think * (0.5 + chance.random()))
            has = [lease for lease in leases if chance.random() < 0.3]
            (csrf, *_) = _CSRF.findall(page)
            began = time.monotonic()
            await self._ask("POST", "/answer", {"csrf": csrf, "lease": leases, "has": has})
            print(json.dumps([self._name, leases, has]), flush=True)
            page = await self._ask("GET", "/")
            self._times.pages.append(time.monotonic() - began)
            if not _LEASES.search(page):
                page = await self._next_page()

    async def _next_page(self) -> str:
        """Who is shown no question looks again: others may hand some back."""
        for _ in range(LOOKS):
            page = await self._ask("GET", "/")
            if _LEASES.search(page):
                break
            await asyncio.sleep(PAUSE)
        return page

    async def _ask(self, method: str, address: str, form: dict[str, Any] | None = None) -> str:
        """As a person does whose page did not load: try again."""
        body = urlencode(form or {}, doseq=True)
        head = f"{method} {address} HTTP/1.1\r\nHost: {self._host}\r\nCookie: {self._cookie}\r\n{FORM if form else ''}"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        for _ in range(TRIES):
            began = time.monotonic()
            try:
                status, text = await self._exchange(request)
            except (OSError, EOFError):
                self._streams = None
                await asyncio.sleep(PAUSE)
                continue
            assert status in (200, 303), text
            self._times.requests.append(time.monotonic() - began)
            return text
        raise AssertionError("the page did not come back")

    async def _exchange(self, request: bytes) -> tuple[int, str]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:-2])
        if cookie := fields.get("set-cookie"):
            self._cookie = cookie.partition(";")[0]
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        return int(head.split(" ", 2)[1]), body.decode()


async def _work(links: dict[str, str], think: float, come_within: float) -> Times:
    times = Times()
    await asyncio.gather(*(Person(name, link, think, come_within, times).work() for name, link in links.items()))
    return times


class Crowd:
    """The process, and what it has reported so far. Its people think for so long over a page, half more or less, and
    come within so many seconds, or all at the same moment."""

    def __init__(self, links: dict[str, str], think: float, come_within: float = 0.0) -> None:
        command = [sys.executable, "-m", "tests.support.review_crowd"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.acknowledged: list[tuple[str, str, str]] = []  # who, which lease, what
        self.times = Times()
        self._reading = threading.Thread(target=self._read)
        self._reading.start()
        assert self._process.stdin is not None
        with self._process.stdin as task:
            json.dump([links, think, come_within], task)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                said = json.loads(line)
                if isinstance(said, dict):
                    self.times = Times(**said)
                    continue
                name, leases, has = said
                self.acknowledged += [(name, lease, "yes" if lease in has else "no") for lease in leases]

    def wait(self) -> None:
        status = self._process.wait()
        self._reading.join()
        assert status == 0, "a person gave up"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reading.join()


if __name__ == "__main__":
    print(json.dumps(vars(asyncio.run(_work(*json.load(sys.stdin))))))
