"""A reply has a deadline and a size, and leads nowhere else: over real sockets, for every kind of request."""

from __future__ import annotations

import gzip
import itertools
import json
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.models.openai.conftest import config_of
from tests.support.asking import ask, learn
from tests.support.fake_openai import BATCHES, CHAT, DECISIONS, FILES, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from tests.support.fake_openai.wire import Request, Response
from twothirds.models.openai import OpenAIOracle, batch, client
from twothirds.models.openai.client import RetriesExhausted
from twothirds.models.oracle import OracleUnavailable

QUESTIONS = labels(["cat"], texts(4))
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
MEGABYTE = 1_000_000


class OddServer(FakeOpenAI):
    """Answers one path in an odd way, and keeps how much of it was read."""

    path, odd = "", staticmethod(lambda: Response(b""))
    asked, sent = 0, 0

    def _answer(self, request: Request) -> Response:
        if not self.path or not request.path.startswith(self.path):
            return super()._answer(request)
        self.asked += 1
        response = self.odd()
        response.raw = self._counted(response.raw) if response.raw else ()
        return response

    def _counted(self, pieces: Any) -> Iterator[bytes]:
        for piece in pieces:
            self.sent += len(piece)
            yield piece

    def answers(self, path: str, odd: Callable[[], Response]) -> None:
        self.path, self.odd = path, odd


@pytest.fixture
def odd_server() -> Iterator[OddServer]:
    running = OddServer(FakeModel(WORDS))
    with running:
        yield running


@pytest.fixture
def oracle(odd_server: OddServer, request: pytest.FixtureRequest) -> Iterator[OpenAIOracle]:
    """Connected while the server behaves; by chat, or the way that the test names."""
    way = getattr(request, "param", "chat")
    odd_server.abilities = Abilities(decisions=way == "decisions")
    timing = {"batch_poll": 0.01, "timeout": 1.0, "attempts": 2}
    with OpenAIOracle(config_of(odd_server, provider_batch=way == "batch", **timing)) as opened:
        learn(opened)
        yield opened


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def drip() -> Response:
    start = HEAD + b"transfer-encoding: chunked\r\n\r\n"
    return Response(b"", raw=itertools.chain([start], itertools.repeat(chunked(b" "))), pace=0.05)


def dripping_head() -> Response:
    return Response(b"", raw=itertools.chain([HEAD], itertools.repeat(b"x-more: and more\r\n")), pace=0.05)


def endless() -> Response:
    start = HEAD + b"transfer-encoding: chunked\r\n\r\n"
    return Response(b"", raw=itertools.chain([start], itertools.repeat(chunked(b" " * 65_536))))


def compressed(coding: str, squeeze: Callable[[bytes], bytes]) -> Callable[[], Response]:
    bomb = squeeze(b" " * 200 * MEGABYTE)
    return lambda: Response(bomb, headers={"content-encoding": coding})


def fault(oracle: OpenAIOracle) -> RetriesExhausted:
    with pytest.raises(OracleUnavailable) as caught:
        list(ask(oracle, QUESTIONS))
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, RetriesExhausted)
    return caught.value


PLACES = [("chat", CHAT), ("decisions", DECISIONS), ("batch", FILES), ("batch", BATCHES)]
BY_EVERY_WAY = pytest.mark.parametrize(("oracle", "path"), PLACES, indirect=["oracle"])


@BY_EVERY_WAY
@pytest.mark.parametrize("odd", [drip, dripping_head])
def test_a_reply_that_never_ends_is_left_at_its_deadline(
    odd_server: OddServer, oracle: OpenAIOracle, path: str, odd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "UPLOAD_SECONDS", 1.0)
    odd_server.answers(path, odd)
    started = time.monotonic()
    ended = fault(oracle)
    assert time.monotonic() - started < 10
    assert ended.maybe_charged
    assert "within 1 s: raise the timeout" in str(ended)


@BY_EVERY_WAY
def test_a_body_without_end_is_cut_off(
    odd_server: OddServer, oracle: OpenAIOracle, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.REPLY_BYTES == 16 * 1_000_000
    monkeypatch.setattr(client, "REPLY_BYTES", 2_000_000)  # on a busy machine more may not come before the deadline
    odd_server.answers(path, endless)
    ended = fault(oracle)
    assert "a reply of more than 2 MB" in str(ended)
    assert ended.maybe_charged
    assert odd_server.sent < 60 * MEGABYTE


@pytest.mark.parametrize(
    ("coding", "squeeze"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
    ],
    ids=["gzip", "deflate", "gzip twice"],
)
def test_a_compressed_bomb_is_not_unpacked(
    odd_server: OddServer, oracle: OpenAIOracle, coding: str, squeeze: Any
) -> None:
    odd_server.answers(CHAT, compressed(coding, squeeze))
    tracemalloc.start()
    ended = fault(oracle)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 80 * MEGABYTE
    assert "sends a reply" in str(ended)


def test_a_compressed_reply_that_is_honest_is_read_though_none_is_asked_for(
    odd_server: OddServer, oracle: OpenAIOracle
) -> None:
    plain = odd_server._spoiled

    def packed(path: str, body: dict[str, Any]) -> Response:
        good = plain(path, body)
        return Response(gzip.compress(good.body), headers={**good.headers, "content-encoding": "gzip"})

    odd_server._spoiled = packed  # type: ignore[method-assign]
    assert wrong(ask(oracle, QUESTIONS)) == []
    assert odd_server.requests[-1].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("oracle", ["batch"], indirect=True)
def test_the_results_of_a_batch_have_a_limit_of_their_own(
    odd_server: OddServer, oracle: OpenAIOracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "REPLY_BYTES", 20_000)
    assert wrong(ask(oracle, labels(WORDS, texts(64)))) == []  # their file is longer than that
    monkeypatch.setattr(client, "FILE_BYTES", 1_000_000)
    odd_server.answers(f"{FILES}/", endless)
    assert "a reply of more than 1 MB" in str(fault(oracle))


def test_a_charset_that_unpacks_is_not_heeded(odd_server: OddServer, oracle: OpenAIOracle) -> None:
    bomb = zlib.compress(b" " * 100 * MEGABYTE)
    odd_server.answers(CHAT, lambda: Response(bomb, 400, {"content-type": "application/json; charset=zlib"}))
    with pytest.raises(OracleUnavailable, match="does not accept the request"):
        list(ask(oracle, QUESTIONS))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@BY_EVERY_WAY
def test_no_redirect_is_followed_and_one_line_says_where_it_points(
    odd_server: OddServer, oracle: OpenAIOracle, path: str, status: int
) -> None:
    with FakeOpenAI(FakeModel(WORDS)) as other:
        target = f"http://user:hunter2@127.0.0.1:{other.base_url.rpartition(':')[2]}/elsewhere?token=secret-token"
        odd_server.answers(path, lambda: Response(b"", status, {"location": target}))
        with pytest.raises(OracleUnavailable) as caught:
            list(ask(oracle, QUESTIONS))
        assert other.requests == []
    message = str(caught.value)
    assert f"answers {status} and redirects to http://127.0.0.1:" in message
    assert "/elsewhere, which is not followed" in message
    assert "hunter2" not in message
    assert "secret-token" not in message
    assert "\n" not in message
    assert odd_server.asked == 1


@pytest.mark.parametrize("location", [None, "", "//other/v1", "/login", "not an address", "http://[::1", "\x00\xff"])
def test_a_redirect_to_nowhere_is_one_line_too(
    odd_server: OddServer, oracle: OpenAIOracle, location: str | None
) -> None:
    headers = {} if location is None else {"location": location.replace("\x00", "")}
    odd_server.answers(CHAT, lambda: Response(json.dumps({}).encode(), 307, headers))
    with pytest.raises(OracleUnavailable, match=r"answers 307 and redirects to|in location header"):
        list(ask(oracle, QUESTIONS))


def test_finding_out_about_a_server_has_a_deadline_and_follows_nobody(odd_server: OddServer) -> None:
    for odd, words in ((drip, "within 1 s"), (lambda: Response(b"", 308, {"location": "http://b/"}), "http://b/, ")):
        odd_server.answers(CHAT, odd)
        config = config_of(odd_server, timeout=1.0, attempts=2)
        with OpenAIOracle(config) as oracle, pytest.raises(OracleUnavailable, match=words):
            learn(oracle)
