"""The review page for tests: a real server on a port of its own, and people who use it without a browser."""

from __future__ import annotations

import asyncio
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from tests.support.asking import ask
from twothirds.flows.reviewing.connections import bounded_protocol
from twothirds.flows.reviewing.page import PageSettings, invite, make_app
from twothirds.models.oracle import AnswersPending, Question
from twothirds.models.people.human import HumanOracle
from twothirds.store import Store

START_SECONDS = 120.0  # a busy machine may take so long
PORTS_OF_ALL, PORTS_OF_ONE = 20_000, 1_000  # from here on, and so many for each test process


def free_port() -> int:
    """One that stays free until it is used: below those that the system gives out, and not of another test process."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10
    first = PORTS_OF_ALL + PORTS_OF_ONE * process
    for port in random.sample(range(first, first + PORTS_OF_ONE), PORTS_OF_ONE):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"no port from {first} on is free")


@dataclass
class Site:
    store: Store
    address: str
    visitors: list[Visitor] = field(default_factory=list)

    def link(self, name: str, **terms: Any) -> str:
        return invite(self.store, name, days=terms.pop("days", 1), address=self.address, **terms)

    def stranger(self) -> Visitor:
        """Somebody without a link."""
        self.visitors.append(Visitor(self.address))
        return self.visitors[-1]

    def visitor(self, name: str, **terms: Any) -> Visitor:
        return self.stranger().open(self.link(name, **terms))

    def ask(self, questions: Sequence[Question], queue: str = "") -> None:
        """Put questions to people: nobody has answered yet."""
        with pytest.raises(AnswersPending):
            list(ask(HumanOracle(self.store.queue, queue), questions))


HTMX = {"hx-request": "true"}  # of what the script of a page sends: it gets a part of a page


class Visitor:
    """A browser without a screen: keeps its cookie, reads forms, sends them."""

    def __init__(self, address: str) -> None:
        self.client = httpx.Client(base_url=address, timeout=START_SECONDS)
        self.page = ""

    def open(self, address: str) -> Visitor:
        self.get(address)
        return self

    def get(self, address: str = "/") -> httpx.Response:
        reply = self.client.get(address)
        self.page = reply.text
        return reply

    def hidden(self, name: str) -> list[str]:
        """Values of a field of the page's main form."""
        main = self.page.partition('id="answer"')[2].partition("</form>")[0]
        values = re.findall(rf'name="{name}" value="([^"]*)"', main) or re.findall(
            rf'name="{name}" value="([^"]*)"', self.page
        )
        return [unescape(value) for value in values]

    def post(self, address: str, fields: dict[str, Any], **options: Any) -> httpx.Response:
        fields = {"csrf": (self.hidden("csrf") or [""])[0], **fields}
        headers = {"content-type": "application/x-www-form-urlencoded", **options.pop("headers", {})}
        return self.client.post(address, content=urlencode(fields, doseq=True), headers=headers, **options)

    def answer(self, **fields: Any) -> httpx.Response:
        return self.post("/answer", {"lease": self.hidden("lease"), **fields})


class PromptServer(uvicorn.Server):
    """Looks ten times as often whether it is to end: there are many of them."""

    async def main_loop(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 1) % 864000
            await asyncio.sleep(0.01)


@contextmanager
def running_site(store: Store, **settings: Any) -> Iterator[Site]:
    """In a thread of this process."""
    with served(lambda page: make_app(store, page), **settings) as (address, visitors):
        yield Site(store, address, visitors)


@contextmanager
def served(app: Callable[[PageSettings], FastAPI], **settings: Any) -> Iterator[tuple[str, list[Visitor]]]:
    """An application at an address of its own; its visitors are sent home at the end."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as asyncio does for sockets of its own
    chosen = PageSettings(port=listening.getsockname()[1], **settings)
    config = uvicorn.Config(app(chosen), log_level="error", access_log=False, http=bounded_protocol(1024), ws="none")
    server = PromptServer(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the page did not start"
        time.sleep(0.01)
    visitors: list[Visitor] = []
    try:
        yield chosen.address, visitors
    finally:
        for visitor in visitors:
            visitor.client.close()
        server.should_exit = True
        thread.join()


def start_page(
    store_url: str, port: int, *options: str, command: Sequence[str] = ("review",)
) -> subprocess.Popen[bytes]:
    """As a person starts it, in a process of its own; returns when it answers."""
    process = subprocess.Popen(
        [sys.executable, "-m", "twothirds", *command, "--store", store_url, "--port", str(port), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ,
    )
    wait_for_page(process, port)
    return process


def wait_for_page(process: subprocess.Popen[Any], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(process.stderr.read() if process.stderr else "the page has ended")
        try:
            httpx.get(f"http://127.0.0.1:{port}/static/review.css", timeout=START_SECONDS)
            return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the page did not start")
