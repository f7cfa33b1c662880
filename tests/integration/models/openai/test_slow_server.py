"""A server that writes few tokens a second gets requests that it ends in time. The times are a hundredth of the real
ones, and so are those of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.models.openai.conftest import config_of
from tests.support.asking import ask, learn, planned
from tests.support.fake_openai import CHAT, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.openai import pace
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import Label
from twothirds.models.prices import parse_price
from twothirds.store import Store

SLOW = Abilities(tokens_per_second=300.0, slots=2, unsupported=("logprobs",))  # else labels go one by one
QUESTIONS = labels(WORDS, texts(12))


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUEST_SECONDS", "SLOW_SECONDS", "TIMEOUT", "LONGEST_TIMEOUT"):
        monkeypatch.setattr(pace, name, getattr(pace, name) / 100)
    monkeypatch.setattr(pace, "LATENCY", 0.05)  # this machine may be busy


def oracle_of(server: FakeOpenAI, memory: dict[str, Any] | None = None, price: str = "0,0") -> OpenAIOracle:
    return OpenAIOracle(config_of(server, price=parse_price(price), retry_delay=0.001), memory)


def sizes(server: FakeOpenAI) -> list[int]:
    """How many labels each request asked for."""
    formats = [body["response_format"] for body in server.bodies(CHAT) if "response_format" in body]
    schemas = [asked["json_schema"]["schema"] for asked in formats]
    return [_labels(schema) for schema in schemas if "word" not in schema["properties"]]


def _labels(schema: dict[str, Any]) -> int:
    row = schema.get("$defs", {}).get("row")
    return len(schema["required"]) * (len(row["required"]) if row else 1)


def test_requests_are_sized_by_the_time_that_they_take() -> None:
    with FakeOpenAI(FakeModel(WORDS), SLOW) as server, oracle_of(server) as oracle:
        learn(oracle)
        assert max(len(request.questions) for request in planned(oracle, QUESTIONS)) <= pace.FIRST_LABELS
        assert oracle.traits.width == 1
        answers = list(ask(oracle, QUESTIONS))
        assert len(answers) == len(QUESTIONS)
        assert not wrong(answers)
        assert server.longest < 2 * pace.REQUEST_SECONDS
        assert server.most_at_once <= 4


def test_a_request_that_does_not_end_in_time_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "TIMEOUT", 0.2)
    monkeypatch.setattr(pace, "SLOW_SECONDS", 5.0)
    with FakeOpenAI(FakeModel(WORDS), Abilities(tokens_per_second=400.0)) as server:
        with oracle_of(server, price="0.15,0.6") as oracle:
            learn(oracle)
            assert server.count(CHAT) == 1
            answers = list(ask(oracle, QUESTIONS))
        assert len(answers) == len(QUESTIONS)
        assert not wrong(answers)
        first, *later = sizes(server)
        assert first == len(QUESTIONS)
        assert len(QUESTIONS) // 2 in later


def test_stored_answers_are_found_whatever_the_sizes_of_requests(tmp_path: Path) -> None:
    memory: dict[str, Any] = {}

    def asked(oracle: OpenAIOracle, questions: list[Label]) -> int:
        recorded = CachedOracle(oracle, RunLedger(store, "run", "scope"))
        assert not wrong(recorded.ask(questions))
        return recorded.ledger.cached_calls

    with (
        Store.open(f"sqlite:///{tmp_path / 'store.sqlite'}") as store,
        FakeOpenAI(FakeModel(WORDS), SLOW) as server,
    ):
        store.runs.begin("run", "scope", name="n", flow="f", dataset="d", oracle="o", settings={})
        with oracle_of(server, memory) as slow:
            asked(slow, QUESTIONS[:30])
        [remembered] = memory.values()
        assert remembered["rate"] > 0
        server.abilities = Abilities()
        with oracle_of(server, memory) as fast:
            assert asked(fast, QUESTIONS) == 30
        assert sum(sizes(server)) == len(QUESTIONS)


def test_a_known_speed_tells_the_time_ahead_and_an_unknown_one_does_not() -> None:
    memory: dict[str, Any] = {}
    with FakeOpenAI(FakeModel(WORDS), SLOW) as server:
        with oracle_of(server, memory) as oracle:
            assert not any(request.seconds for request in planned(oracle, QUESTIONS))
            list(ask(oracle, QUESTIONS[:20]))
        assert all(request.seconds > 0 for request in planned(oracle_of(server, memory), QUESTIONS))
