"""Two processes that ask one server keep to one limit, and both heed a complaint."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest

from models.openai.client import SharedLimit
from models.openai.config import OpenAIConfig
from models.openai.oracle import OpenAIOracle
from models.prices import Price
from store import Rate, Store
from tests.integration.conftest import Clock
from tests.support.fake_openai import CHAT, FakeOpenAI, Mind
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong

PRICE = Price(Decimal("0.15"), Decimal("0.60"))


def ask_all(url: str, store: str, memory: dict[str, object], place: int) -> int:
    config = OpenAIConfig("gpt-4o-mini", url, grouping="none", requests_per_minute=600, price=PRICE, retry_delay=0.05)
    with Store.open(store) as opened, OpenAIOracle(config, memory, opened) as oracle:
        answers = list(oracle.ask(labels(WORDS[place : place + 1], texts(10))))
    assert wrong(answers) == []
    return len(answers)


def test_the_requests_of_both_are_spaced_as_those_of_one(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.sqlite'}"
    with FakeOpenAI(Mind(WORDS)) as server:
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
        SharedLimit(one, "name", Rate(), clock=clock).pause(0.6)
        asyncio.run(SharedLimit(other, "name", Rate(), clock=clock, sleep=sleep).admit(0))
    assert slept == pytest.approx([0.6])
