"""Two processes that ask one server keep to one limit, and both apply a complaint."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Clock
from tests.integration.models.openai.conftest import config_of
from tests.support.asking import ask, learn
from tests.support.fake_openai import CHAT, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from twothirds.models.openai import OpenAIOracle
from twothirds.models.openai.client import SharedLimit
from twothirds.store import Rate, Store
from twothirds.store.engine import sqlite_library


def ask_all(server: FakeOpenAI, store: str, memory: dict[str, Any], place: int) -> int:
    config = config_of(server, grouping="none", requests_per_minute=600, retry_delay=0.05)
    with Store.open(store) as opened, OpenAIOracle(config, memory, opened.rates) as oracle:
        answers = list(ask(oracle, labels(WORDS[place : place + 1], texts(10))))
    assert wrong(answers) == []
    return len(answers)


def test_the_requests_of_both_are_spaced_as_those_of_one(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.sqlite'}"
    with FakeOpenAI(FakeModel(WORDS)) as server:
        memory: dict[str, Any] = {}
        ask_all(server, store, memory, 2)  # also finds out about the server
        before, started = server.count(CHAT), time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda place: ask_all(server, store, memory, place), (0, 1))) == [10, 10]
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
        asyncio.run(SharedLimit(one.rates, "name", Rate(), clock=clock).pause(0.6))
        asyncio.run(SharedLimit(other.rates, "name", Rate(), clock=clock, sleep=sleep).admit(0))
    assert slept == pytest.approx([0.6])


def test_a_longer_pause_is_reported(tmp_path: Path) -> None:
    told: list[tuple[str, ...]] = []
    with Store.open(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        limit = SharedLimit(store.rates, "openai:m@host", Rate(), notice=lambda *said: told.append(said))
        asyncio.run(limit.pause(2.0))
        asyncio.run(limit.pause(60.0))
    assert told == [("openai:m@host", "openai:m@host asked for a pause: waiting 60 s")]


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
    config = config_of(server, grouping="none")
    with Store.open(f"sqlite:///{path}") as store, OpenAIOracle(config, {}, store.rates) as oracle:
        learn(oracle)
        server.abilities = replace(server.abilities, latency=0.2)
        server.script(CHAT, ["429 with time"])
        answers = ask(oracle, labels(["cat"], texts(6)))
        pool = ThreadPoolExecutor(1)
        with locked(path):
            assert wrong(pool.submit(lambda: [next(answers) for _ in range(5)]).result(5)) == []
        assert wrong(pool.submit(list, answers).result(60)) == []
        pool.shutdown()
