"""Two processes that ask one server keep to one limit, and both apply a complaint."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from tests.integration.conftest import Clock
from tests.support.fake_openai import CHAT, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from twothirds.models.openai.client import SharedLimit
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.prices import Price
from twothirds.store import Rate, Store
from twothirds.store.engine import sqlite_library

PRICE = Price(Decimal("0.15"), Decimal("0.60"))


def ask_all(url: str, store: str, memory: dict[str, object], place: int) -> int:
    config = OpenAIConfig("gpt-4o-mini", url, grouping="none", requests_per_minute=600, price=PRICE, retry_delay=0.05)
    with Store.open(store) as opened, OpenAIOracle(config, memory, opened) as oracle:
        answers = list(oracle.ask(labels(WORDS[place : place + 1], texts(10))))
    assert wrong(answers) == []
    return len(answers)


def test_the_requests_of_both_are_spaced_as_those_of_one(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.sqlite'}"
    with FakeOpenAI(FakeModel(WORDS)) as server:
        memory: dict[str, object] = {}
        ask_all(server.base_url, store, memory, 2)  # also finds out about the server
        before, started = server.count(CHAT), time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda place: ask_all(server.base_url, store, memory, place), (0, 1))) == [10, 10]
        took, sent = time.monotonic() - started, server.count(CHAT) - before
    assert sent == 20
    assert took > 1.5  # 19 spaces of a tenth of a second; two limits would take half of that


def test_a_pause_of_one_holds_the_other_back(tmp_path: Path) -> None:
    url, clock = f"sqlite:///{tmp_path / 'store.sqlite'}", Clock()
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.now += seconds

    with Store.open(url, clock=clock) as one, Store.open(url, clock=clock) as other:
        asyncio.run(SharedLimit(one, "name", Rate(), clock=clock).pause(0.6))
        asyncio.run(SharedLimit(other, "name", Rate(), clock=clock, sleep=sleep).admit(0))
    assert slept == pytest.approx([0.6])


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process writes, and takes its time."""
    other = sqlite_library().connect(path, isolation_level=None)  # with another, locks of one process do not hold
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def test_a_locked_store_holds_up_the_one_that_was_told_to_pause_and_nobody_else(
    server: FakeOpenAI, tmp_path: Path
) -> None:
    path = tmp_path / "store.sqlite"
    config = OpenAIConfig("gpt-4o-mini", server.base_url, grouping="none", price=PRICE, retry_delay=0.01)
    with Store.open(f"sqlite:///{path}") as store, OpenAIOracle(config, {}, store) as oracle:
        oracle.connect()
        server.abilities = replace(server.abilities, latency=0.2)
        server.script(CHAT, ["429 with time"])
        answers = oracle.ask(labels(["cat"], texts(6)))
        pool = ThreadPoolExecutor(1)
        with locked(path):
            assert wrong(pool.submit(lambda: [next(answers) for _ in range(5)]).result(5)) == []
        assert wrong(pool.submit(list, answers).result(60)) == []
        pool.shutdown()


def test_a_probe_that_waits_for_the_store_lets_the_event_loop_go_on(server: FakeOpenAI, tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    config = OpenAIConfig("gpt-4o-mini", server.base_url, price=PRICE)
    with Store.open(f"sqlite:///{path}") as store, OpenAIOracle(config, {}, store) as oracle:
        pool = ThreadPoolExecutor(1)
        with locked(path):
            connected = pool.submit(oracle.connect)
            while oracle._background is None:
                time.sleep(0.01)
            time.sleep(0.2)
            oracle._background.start(asyncio.sleep(0)).result(3)
            assert not connected.done()
            assert server.requests == []
        connected.result(60)
        pool.shutdown()
