"""Numbers without end, dates of no calendar and JSON without a bottom: what cannot be read counts as absent."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openai import AsyncOpenAI

from twothirds.models.openai.batch import Listed, lines_of, results_of
from twothirds.models.openai.chat import answers_by_position
from twothirds.models.openai.client import ServerReply
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.errors import Fault, Retry, fault_of, retry_after
from twothirds.models.oracle import OracleUnavailable
from twothirds.models.prices import TOKENS_LIMIT, read_usage

CONFIG = OpenAIConfig("some-model", "http://127.0.0.1:9/v1")
HUGE = 10**400
NUMBERS = st.sampled_from([HUGE, -HUGE, 10**4200, float("inf"), float("-inf"), float("nan"), 1e308, -0.0, 2**63, True])
ANY = st.recursive(
    NUMBERS | st.none() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
DATES = st.builds(
    "{}, {:02d} Jan {} {}:00:00 {}".format,
    st.sampled_from(["Fri", "", "Xyz"]),
    st.integers(0, 99),
    st.integers(-1, 10**6),
    st.integers(0, 10**6),
    st.sampled_from(["GMT", "+9999999", "-0000", "PST", ""]),
)


def nested(depth: int) -> Any:
    data: Any = 1
    for _ in range(depth):
        data = [data]
    return data


@given(st.one_of(st.text(max_size=40), DATES, NUMBERS.map(str), st.integers().map(str)), st.sampled_from([0.0, 1e9]))
@example("Fri, 01 Jan 99999 00:00:00 GMT", 0.0)
@example("Fri, 31 Dec 9999 23:59:59 -9999", 0.0)
@example("9" * 400, 0.0)
@example("1e999", 0.0)
def test_any_retry_after_is_seconds_or_nothing(value: str, now: float) -> None:
    dice, retry = random.Random(0), Retry(attempts=5, longest_wait=60)
    for headers in ({"retry-after": value}, {"retry-after-ms": value}, {"retry-after": value, "retry-after-ms": value}):
        seconds = retry_after(headers, now)
        assert seconds is None or 0 <= seconds < float("inf")
        delay = retry.delay(1, seconds, dice)
        assert delay is None or 0 <= delay <= 60


@given(ANY, ANY, ANY)
@example(HUGE, 1, 1)
@example(1, float("inf"), 1)
@example(1, 1, HUGE)
def test_any_usage_is_tokens_or_nothing(given_: Any, written: Any, details: Any) -> None:
    usage = {"prompt_tokens": given_, "completion_tokens": written, "prompt_tokens_details": {"cached_tokens": details}}
    for block in (usage, usage | {"prompt_tokens_details": details}, given_):
        tokens = read_usage({"usage": block})
        assert tokens is None or 0 <= tokens.cached <= tokens.input <= TOKENS_LIMIT


@given(ANY, ANY, ANY)
@example("predicate", HUGE, "1")
@example("predicate", 0.5, nested(300))
def test_any_decision_is_a_probability_or_nothing(kind: Any, probability: Any, name: Any) -> None:
    answer = {"type": kind, "probability": probability, "name": name}
    data = ServerReply.read(
        json.dumps({"answers": [answer, {"type": "predicate", "probability": probability, "name": "1"}]})
    )
    for found in answers_by_position(data.data or {}, 2).values():
        assert json.dumps(found)
        assert found["type"] == "refusal" or 0 <= found["probability"] <= 1


@pytest.mark.parametrize("depth", [10, 60, 900, 100_000])
def test_a_reply_without_a_bottom_is_no_reply(depth: int) -> None:
    text = '{"choices": ' + "[" * depth + "]" * depth + "}"
    assert (ServerReply.read(text).data is None) == (depth > 50)


@given(st.integers(200, 999), ANY, ANY, ANY, st.one_of(DATES, st.text("0123456789e+-.", max_size=30)))
@example(400, nested(900), "x", None, "1")
@example(429, HUGE, nested(400), HUGE, "Fri, 01 Jan 99999 00:00:00 GMT")
@example(307, 1, 1, 1, "http://[::1")
def test_any_error_of_a_server_is_one_line(status: int, code: Any, message: Any, whole: Any, header: str) -> None:
    bodies = [{"error": {"code": code, "message": message, "type": whole, "param": code}}, {"error": code}, whole]
    for body in bodies:
        fault = _fault(status, json.dumps(body).encode(), header)
        assert fault is None or (isinstance(fault, Fault | OracleUnavailable) and "\n" not in str(fault))
        assert fault is None or len(str(fault)) < 1_000


def _fault(status: int, body: bytes, header: str) -> Exception | None:
    """What our HTTP client, the SDK and our errors make of a reply."""
    import openai

    from twothirds.models.openai.client import bounded_http

    headers = {"retry-after": header, "location": header}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, headers=headers, content=body))

    async def send() -> Exception | None:
        http = bounded_http(CONFIG, transport=transport)
        async with AsyncOpenAI(api_key="none", base_url=CONFIG.url, max_retries=0, http_client=http) as sdk:
            try:
                await sdk.post("/chat/completions", cast_to=httpx2.Response, body={})
            except (openai.APIError, httpx2.HTTPError) as error:
                return fault_of(error, CONFIG)
            except Fault as fault:
                return fault
        return None

    return asyncio.run(send())


class FileClient:
    """Hands out one file."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def retried(self, _: Any) -> httpx2.Response:
        return httpx2.Response(200, content=self._text.encode("utf-8", "replace"))


class FileServer:
    def __init__(self, text: str) -> None:
        self.client = FileClient(text)
        self.config = CONFIG


@given(st.lists(ANY | st.text(), max_size=3), ANY | st.text(), ANY)
@example(["digest"], "a", "file")
@example(["digest", HUGE], "a", "file")
@example(["digest"], nested(600), "file")
def test_any_file_of_a_batch_is_read_without_an_exception(questions: Any, name: Any, file: Any) -> None:
    line = (
        json.dumps({"custom_id": name, "questions": questions, "paths": questions, "response": name})
        + "\n"
        + "[" * 100_000
    )
    server: Any = FileServer(line)
    for found in asyncio.run(lines_of(server, file)):
        assert len(found.questions) == len(found.paths)
    assert all(
        isinstance(key, str)
        for key in asyncio.run(results_of(server, Listed.model_validate({"id": "batch", "output_file_id": file})))
    )
