"""Only what a server has really said about itself is remembered: a fault of the moment is not."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_openai import CHAT, DECISIONS, Abilities, FakeOpenAI
from tests.support.fake_openai.examples import labels, texts
from tests.support.fake_openai.wire import Request, Response
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.openai.probe import Abilities as Known
from twothirds.models.openai.probe import Remembered, probe_key
from twothirds.models.oracle import OracleUnavailable
from twothirds.models.prices import Price
from twothirds.store import Store

PRICE = Price(Decimal("0.15"), Decimal("0.60"))
PASSING = ["429", "429 for an hour", "no quota", "500", "503", "hang", "cut", "silence", "malformed", "not JSON"]


def config_of(server: FakeOpenAI, *, timeout: float = 60.0) -> OpenAIConfig:
    return OpenAIConfig("gpt-4o-mini", server.base_url, price=PRICE, retry_delay=0.01, attempts=2, timeout=timeout)


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("path", [CHAT, DECISIONS])
def test_a_fault_of_the_moment_is_not_taken_for_what_the_server_cannot_do(
    server: FakeOpenAI, store: Store, path: str, fault: str
) -> None:
    server.abilities = Abilities(decisions=True)
    memory: dict[str, Any] = {}
    server.script(path, [fault] * 6)
    hasty = config_of(server, timeout=0.3 if fault == "hang" else 60.0)
    with OpenAIOracle(hasty, memory, store) as oracle, pytest.raises(OracleUnavailable) as caught:
        oracle.connect()
    assert "\n" not in str(caught.value)
    assert memory == {}
    server._scripts.clear()
    with OpenAIOracle(config_of(server), memory, store) as oracle:
        oracle.connect()
        assert dict(oracle.identity.parameters)["labels"] == "decisions"
        assert dict(oracle.identity.parameters)["format"] == "json_schema"


@pytest.mark.parametrize("fault", ["429", "503", "cut", "malformed"])
def test_one_fault_while_a_server_is_probed_makes_nobody_pay_again(
    server: FakeOpenAI, store: Store, tmp_path: Path, fault: str
) -> None:
    server.abilities = Abilities(decisions=True)
    for number, script in enumerate(([], [fault])):
        server.script(DECISIONS, script)
        run = str(number)
        store.runs.begin(run, "scope", name="n", flow="f", dataset="d", oracle="o", settings={})
        remembered = Remembered(tmp_path / run / "servers.json")  # a cache folder that is not kept
        with OpenAIOracle(config_of(server), remembered, store) as oracle:
            oracle.connect()
            recorded = CachedOracle(oracle, RunLedger(store, run, "scope"))
            answers = list(recorded.ask(labels(["cat"], texts(8))))
        assert all(answer.cached for answer in answers) == bool(number)


@pytest.mark.parametrize("status", [301, 307, 401, 403])
def test_who_is_turned_away_learns_nothing_about_the_server(
    server: FakeOpenAI, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, memory = server._answer, dict[str, Any]()

    def turned_away(request: Request) -> Response:
        return Response(b"{}", status, {"location": "/login"}) if request.path == DECISIONS else answer(request)

    monkeypatch.setattr(server._server, "_answer", turned_away)
    with OpenAIOracle(config_of(server), memory) as oracle, pytest.raises(OracleUnavailable):
        oracle.connect()
    assert memory == {}
    with OpenAIOracle(replace(config_of(server), output="schema"), memory) as oracle:
        oracle.connect()  # what the messages are about is not asked for


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"error": {"message": "Invalid URL (POST /v1/decisions)"}}),
        (404, {"error": {"message": "The model `gpt-4o-mini` does not support decisions"}}),
        (405, {}),
        (400, {"error": {"message": "unknown endpoint"}}),
        (501, {}),
        (200, {"message": "there is no such page"}),
    ],
)
def test_what_the_server_says_that_it_cannot_do_is_remembered(
    server: FakeOpenAI, status: int, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, memory = server._answer, dict[str, Any]()

    def has_none(request: Request) -> Response:
        return Response(json.dumps(body).encode(), status) if request.path == DECISIONS else answer(request)

    monkeypatch.setattr(server._server, "_answer", has_none)
    with OpenAIOracle(config_of(server), memory) as oracle:
        oracle.connect()
        assert dict(oracle.identity.parameters)["labels"] == "chat"
    assert Known.from_json(memory[probe_key(config_of(server))]) == Known(format="json_schema")


@pytest.mark.parametrize(("unsupported", "tells"), [((), True), (("logprobs",), False)])
def test_a_free_server_that_tells_the_next_word_is_asked_one_label_a_request(
    unsupported: tuple[str, ...], tells: bool
) -> None:
    able, memory = Abilities(decisions=False, unsupported=unsupported), dict[str, Any]()
    with FakeOpenAI(abilities=able) as server:
        config = replace(config_of(server), price=Price(Decimal(0), Decimal(0)))
        with OpenAIOracle(config, memory) as oracle:
            oracle.connect()
            known = Known.from_json(memory[probe_key(config)])
            answers = list(oracle.ask(labels(["cat", "dog"], texts(2))))
        assert known is not None
        assert (known.next_word, known.rate, known.width) == (tells, 0.0, 0)
        assert all((answer.probability is not None) == tells for answer in answers)
        assert (sum(answer.usage.requests for answer in answers) == len(answers)) == tells


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"[]", b'{"status": "ok"}', b"data: {}\n\n", b""])
def test_a_page_that_answers_for_the_server_is_not_the_server(
    server: FakeOpenAI, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory: dict[str, Any] = {}
    answer = server._answer
    monkeypatch.setattr(server._server, "_answer", lambda _: Response(body, 200, {"content-type": "text/html"}))
    with OpenAIOracle(config_of(server), memory) as oracle, pytest.raises(OracleUnavailable):
        oracle.connect()
    assert memory == {}
    monkeypatch.setattr(server._server, "_answer", answer)
    with OpenAIOracle(config_of(server), memory) as oracle:
        oracle.connect()
        assert dict(oracle.identity.parameters)["format"] == "json_schema"


KNOWN = Known(format="json_schema").to_json()
CACHED: dict[str, Any] = {
    "null": None,
    "a list": [KNOWN],
    "a word": "json_schema",
    "a flag in words": KNOWN | {"decisions": "yes"},
    "another format": KNOWN | {"format": "xml"},
    "a format that is a list": KNOWN | {"format": []},
    "another limit": KNOWN | {"limit": "model"},
    "missing nothing that we send": KNOWN | {"missing": ["model"]},
    "missing a word": KNOWN | {"missing": "seed"},
    "missing numbers": KNOWN | {"missing": [1, {}]},
    "a speed that is a flag": KNOWN | {"rate": True},
    "one field too many": KNOWN | {"more": 1},
    "one field too few": {"decisions": True},
    "empty": {},
}


@pytest.mark.parametrize("cached", CACHED.values(), ids=CACHED)
def test_what_is_remembered_of_a_server_is_checked(server: FakeOpenAI, tmp_path: Path, cached: Any) -> None:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({probe_key(config_of(server)): cached, "another": cached, "good": KNOWN}))
    with OpenAIOracle(config_of(server), Remembered(path)) as oracle:
        assert not oracle.is_probed()
        oracle.connect()
        assert dict(oracle.identity.parameters)["format"] == "json_schema"
    assert json.loads(path.read_text()) == {"good": KNOWN, probe_key(config_of(server)): KNOWN}


@pytest.mark.parametrize("depth", [900, 100_000])
@pytest.mark.parametrize("shape", ["{}", '{{"key": {}}}', '{{"key": {{"missing": {}}}}}'])
def test_a_file_without_a_bottom_counts_as_empty(server: FakeOpenAI, tmp_path: Path, depth: int, shape: str) -> None:
    path = tmp_path / "servers.json"
    path.write_text(shape.format("[" * depth + "]" * depth))
    with OpenAIOracle(config_of(server), Remembered(path)) as oracle:
        oracle.connect()
    assert list(json.loads(path.read_text())) == [probe_key(config_of(server))]
