"""Oracles that ask the server of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from tests.support.asking import learn
from tests.support.fake_openai import FakeOpenAI
from twothirds.models.openai import OpenAIConfig, OpenAIOracle
from twothirds.models.prices import Price
from twothirds.store import Store

PRICE = Price(Decimal("0.15"), Decimal("0.60"))
KEY = "sk-marked-secret"
Build = Callable[..., OpenAIOracle]


def config_of(server: FakeOpenAI, **changes: Any) -> OpenAIConfig:
    usual: dict[str, Any] = {
        "model": "gpt-4o-mini",
        "base_url": server.base_url,
        "api_key": SecretStr(KEY),
        "price": PRICE,
    }
    return OpenAIConfig(**usual | {"retry_delay": 0.01} | changes)


def begin(store: Store, run_id: str, scope: str = "scope") -> None:
    store.runs.begin(run_id, scope, name=run_id, flow="f", dataset="d", oracle="o", settings={})


@pytest.fixture
def oracle_of(server: FakeOpenAI) -> Iterator[Build]:
    """Builds oracles that know what their server can do, so that it can misbehave from then on."""
    opened: list[OpenAIOracle] = []

    def build(memory: dict[str, Any] | None = None, **changes: Any) -> OpenAIOracle:
        opened.append(OpenAIOracle(config_of(server, **changes), memory))
        learn(opened[-1])
        return opened[-1]

    yield build
    for oracle in opened:
        oracle.close()
