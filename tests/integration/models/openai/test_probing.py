"""What can be wrong before the first question, each one line; and of a server only what it has really said about
itself is remembered: a fault of the moment is not."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.integration.models.openai.conftest import KEY, begin, config_of
from tests.support.asking import ask, learn
from tests.support.fake_openai import CHAT, DECISIONS, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from tests.support.fake_openai.wire import Request, Response
from twothirds.models import CachedOracle, RunLedger
from twothirds.models.openai import OpenAIOracle, Remembered
from twothirds.models.openai.abilities import Abilities as Known
from twothirds.models.openai.abilities import probe_key
from twothirds.models.oracle import Answer, OracleError, ServerAway, Unlike
from twothirds.models.prices import UnknownPrice, parse_price
from twothirds.store import Store

PASSING = ["429", "429 for an hour", "no quota", "500", "503", "hang", "cut", "silence", "malformed", "not JSON"]


def found(server: FakeOpenAI, memory: Any, **changes: Any) -> Known | None:
    """What is remembered of the server when it has been asked."""
    config = config_of(server, attempts=2, **changes)
    with OpenAIOracle(config, memory) as oracle:
        learn(oracle)
    return Known.from_json(memory.get(probe_key(config)))


def line(server: FakeOpenAI, memory: Any = None, **changes: Any) -> str:
    with pytest.raises(OracleError) as caught:
        found(server, {} if memory is None else memory, **changes)
    message = str(caught.value)
    assert "\n" not in message
    assert KEY not in message
    return message


def answering(monkeypatch: pytest.MonkeyPatch, server: FakeOpenAI, path: str, response: Response) -> None:
    """Put another reply in the place of every one of a path."""
    answer = server._answer

    def replaced(request: Request) -> Response:
        return response if request.path == path else answer(request)

    monkeypatch.setattr(server._server, "_answer", replaced)


@pytest.mark.parametrize(
    ("key", "changes", "words"),
    [
        ("sk-the-right-one", {}, "does not accept the API key: set OPENAI_API_KEY"),
        ("", {"model": "gpt-9-ultra"}, "model 'gpt-9-ultra' is not known to 127.0.0.1"),
        ("", {"output": "decisions"}, "has no decisions endpoint for 'gpt-4o-mini': use output=auto"),
    ],
)
def test_what_is_wrong_from_the_start_is_one_line(
    server: FakeOpenAI, key: str, changes: dict[str, Any], words: str
) -> None:
    server.abilities = Abilities(key=key)
    assert words in line(server, **changes)


def test_an_address_that_is_not_the_api(server: FakeOpenAI) -> None:
    address = server.base_url.removesuffix("/v1")
    assert "check the base URL, it often ends in /v1" in line(server, base_url=address)


def test_a_model_without_a_price_is_reported_before_anything_is_sent(server: FakeOpenAI) -> None:
    with pytest.raises(UnknownPrice, match=r"\?price="):
        OpenAIOracle(config_of(server, model="my-own", price=None))
    assert server.requests == []


def test_a_free_look_says_whether_the_server_answers_unless_it_is_remembered(server: FakeOpenAI) -> None:
    memory: dict[str, Any] = {}
    away = config_of(server, base_url="http://127.0.0.1:9/v1")
    with OpenAIOracle(away) as oracle, pytest.raises(ServerAway, match="cannot be reached"):
        oracle.prepare([])
    with OpenAIOracle(config_of(server), memory) as oracle:
        assert oracle.prepare([]) == Unlike()
        assert [request.path for request in server.requests] == ["/v1/models"]
        learn(oracle)
        assert oracle.prepare([]) == Unlike()
    assert [request.path for request in server.requests] == ["/v1/models", CHAT, DECISIONS]
    assert server.spent_on_questions(config_of(server).price) == 0  # type: ignore[arg-type]


def test_a_closed_oracle_leaves_no_thread_behind(server: FakeOpenAI) -> None:
    before = set(threading.enumerate())
    with OpenAIOracle(config_of(server)) as oracle:
        learn(oracle)
        started = [thread for thread in threading.enumerate() if thread not in before]
        assert "openai" in [thread.name for thread in started]
    assert not [thread for thread in started if thread.is_alive()]


PROGRAM = """
from tests.support.asking import learn
from tests.support.fake_openai import FakeOpenAI
from twothirds.models.openai import OpenAIConfig, OpenAIOracle
with FakeOpenAI() as server:
    oracle = OpenAIOracle(OpenAIConfig("gpt-4o-mini", server.base_url))
    learn(oracle)
    print(oracle.identity)
"""
IMPORTED = "import twothirds.models.openai, sys; print('openai' in sys.modules, 'genai_prices' in sys.modules)"


@pytest.mark.parametrize(("program", "said"), [(PROGRAM, "openai:gpt-4o-mini"), (IMPORTED, "False False")])
def test_a_program_that_closes_nothing_ends_without_a_word_and_one_that_asks_nothing_imports_little(
    program: str, said: str
) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=500)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, said, "")


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("path", [CHAT, DECISIONS])
def test_a_fault_of_the_moment_is_not_taken_for_what_the_server_cannot_do(
    server: FakeOpenAI, path: str, fault: str
) -> None:
    server.abilities, memory = Abilities(decisions=True), dict[str, Any]()
    server.script(path, [fault] * 6)
    line(server, memory, timeout=0.3 if fault == "hang" else 60.0)
    assert memory == {}
    server._scripts.clear()
    assert found(server, memory) == Known(decisions=True, format="json_schema")


@pytest.mark.parametrize("status", [301, 307, 401, 403])
def test_who_is_turned_away_learns_nothing_about_the_server(
    server: FakeOpenAI, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, server, DECISIONS, Response(b"{}", status, {"location": "/login"}))
    memory: dict[str, Any] = {}
    line(server, memory)
    assert memory == {}
    assert found(server, memory, output="schema"), "what the messages are about is not asked for"


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
    answering(monkeypatch, server, DECISIONS, Response(json.dumps(body).encode(), status))
    assert found(server, {}) == Known(format="json_schema")


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"[]", b'{"status": "ok"}', b"data: {}\n\n", b""])
def test_a_page_that_answers_for_the_server_is_not_the_server(
    server: FakeOpenAI, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory: dict[str, Any] = {}
    with monkeypatch.context() as patched:
        answering(patched, server, CHAT, Response(body))
        line(server, memory)
    assert memory == {}
    assert found(server, memory) == Known(format="json_schema")


@pytest.mark.parametrize(("unsupported", "tells"), [((), True), (("logprobs",), False)])
def test_a_free_server_that_tells_the_next_word_is_asked_one_label_a_request(
    server: FakeOpenAI, unsupported: tuple[str, ...], tells: bool
) -> None:
    server.abilities, memory = Abilities(unsupported=unsupported), dict[str, Any]()
    free = {"price": parse_price("0,0")}
    known = found(server, memory, **free)
    assert known is not None
    assert (known.next_word, known.rate, known.width) == (tells, 0.0, 0)
    with OpenAIOracle(config_of(server, attempts=2, **free), memory) as oracle:
        assert oracle.traits.profile == "local"
        answers = list(ask(oracle, labels(["cat", "dog"], texts(2))))
    assert all((answer.probability is not None) == tells for answer in answers)
    assert {answer.how for answer in answers} == {"next word" if tells else "json_schema"}
    assert (sum(answer.usage.requests for answer in answers) == len(answers)) == tells


# --- what is stored is found


def stored(server: FakeOpenAI, store: Store, run: str, memory: Any = None, **changes: Any) -> list[Answer]:
    begin(store, run, run)
    with OpenAIOracle(config_of(server, **changes), memory) as oracle:
        return list(CachedOracle(oracle, RunLedger(store, run, run)).ask(labels(["cat"], texts(8))))


@pytest.mark.parametrize("fault", ["429", "503", "cut", "malformed"])
def test_answers_are_found_whatever_the_probe_met(server: FakeOpenAI, store: Store, tmp_path: Path, fault: str) -> None:
    """With a cache folder that is not kept."""
    server.abilities = Abilities(decisions=True)
    for number, script in enumerate(([], [fault])):
        server.script(DECISIONS, script)
        answers = stored(server, store, f"run {number}", Remembered(tmp_path / str(number) / "servers.json"))
        assert all(answer.cached for answer in answers) == bool(number)


def test_a_model_of_the_same_name_elsewhere_gives_its_own_answers(server: FakeOpenAI, store: Store) -> None:
    with FakeOpenAI(FakeModel(["dog"])) as other:  # which finds no cat anywhere
        first, others = stored(server, store, "first"), stored(other, store, "second")
        assert wrong(first) == []
        assert not any(answer.cached for answer in others)
        assert {answer.verdict for answer in others} != {answer.verdict for answer in first}
        again = stored(server, store, "third")
    assert all(answer.cached for answer in again)
    assert wrong(again) == []


def test_a_server_that_has_moved_goes_on_under_the_name_that_it_is_given(server: FakeOpenAI, store: Store) -> None:
    with FakeOpenAI(FakeModel(WORDS)) as moved:
        stored(server, store, "first", served_by="ours")
        assert all(answer.cached for answer in stored(moved, store, "second", served_by="ours"))
        assert moved.requests == []


# --- the file in which it is remembered


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
    path, key = tmp_path / "servers.json", probe_key(config_of(server))
    path.write_text(json.dumps({key: cached, "another": cached, "good": KNOWN}))
    assert Remembered(path).get(key) is None
    found(server, Remembered(path))
    assert json.loads(path.read_text()) == {"good": KNOWN, key: KNOWN}


@pytest.mark.parametrize("depth", [900, 100_000])
@pytest.mark.parametrize("shape", ["{}", '{{"key": {}}}', '{{"key": {{"missing": {}}}}}'])
def test_a_file_without_a_bottom_counts_as_empty(server: FakeOpenAI, tmp_path: Path, depth: int, shape: str) -> None:
    path = tmp_path / "servers.json"
    path.write_text(shape.format("[" * depth + "]" * depth))
    found(server, Remembered(path))
    assert list(json.loads(path.read_text())) == [probe_key(config_of(server))]
