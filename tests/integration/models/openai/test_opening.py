"""What can be wrong before the first question: each is one line that says what to do."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from decimal import Decimal

import pytest
from pydantic import SecretStr

from tests.support.fake_openai import Abilities, FakeOpenAI
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import OracleError
from twothirds.models.prices import Price, UnknownPrice

KEY = "sk-marked-secret"
CONFIG = OpenAIConfig(
    "gpt-4o-mini",
    "http://127.0.0.1:9/v1",
    SecretStr(KEY),
    price=Price(Decimal(1), Decimal(1)),
    retry_delay=0.01,
    attempts=2,
)


def line(config: OpenAIConfig) -> str:
    with OpenAIOracle(config) as oracle, pytest.raises(OracleError) as caught:
        oracle.connect()
    message = str(caught.value)
    assert "\n" not in message
    assert KEY not in message
    return message


def test_a_wrong_key() -> None:
    with FakeOpenAI(abilities=Abilities(key="sk-the-right-one")) as server:
        assert "does not accept the API key: set OPENAI_API_KEY" in line(replace(CONFIG, base_url=server.base_url))


def test_an_unknown_model() -> None:
    with FakeOpenAI() as server:
        message = line(replace(CONFIG, base_url=server.base_url, model="gpt-9-ultra"))
    assert "model 'gpt-9-ultra' is not known to 127.0.0.1" in message


def test_an_address_that_is_not_the_api() -> None:
    with FakeOpenAI() as server:
        address = server.base_url.removesuffix("/v1")
        assert "check the base URL, it often ends in /v1" in line(replace(CONFIG, base_url=address))


def test_decisions_that_the_server_does_not_have() -> None:
    with FakeOpenAI() as server:
        message = line(replace(CONFIG, base_url=server.base_url, output="decisions"))
    assert "has no decisions endpoint for 'gpt-4o-mini': use output=auto" in message


def test_a_model_without_a_price_is_reported_before_anything_is_sent() -> None:
    with FakeOpenAI() as server, pytest.raises(UnknownPrice, match=r"\?price="):
        OpenAIOracle(replace(CONFIG, base_url=server.base_url, model="my-own", price=None))
    assert server.requests == []


def test_a_closed_oracle_leaves_no_thread_behind() -> None:
    import threading

    with FakeOpenAI() as server:
        before = set(threading.enumerate())
        with OpenAIOracle(replace(CONFIG, base_url=server.base_url)) as oracle:
            oracle.connect()
            started = [thread for thread in threading.enumerate() if thread not in before]
            assert "openai" in [thread.name for thread in started]
        assert not [thread for thread in started if thread.is_alive()]


def test_an_oracle_that_nobody_closes_ends_with_the_program_and_without_a_word() -> None:
    program = """
from tests.support.fake_openai import FakeOpenAI
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.openai.config import OpenAIConfig
with FakeOpenAI() as server:
    oracle = OpenAIOracle(OpenAIConfig("gpt-4o-mini", server.base_url))
    oracle.connect()
    print(oracle.identity)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=500)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "openai:gpt-4o-mini", "")


def test_the_sdk_is_not_imported_until_it_is_used() -> None:
    program = (
        "import twothirds.models.openai.oracle, sys; print('openai' in sys.modules, 'genai_prices' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=500)
    assert done.stdout.strip() == "False False"
