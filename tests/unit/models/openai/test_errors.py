"""What a failed request means, and that no message holds the key."""

from __future__ import annotations

import httpx2
import openai
import pytest
from pydantic import SecretStr

from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.errors import Declined, TooLong, TransientError, Unsupported, fault_of
from twothirds.models.oracle import OracleError, OracleUnavailable, ServerAway

KEY = "sk-marked-secret"
CONFIG = OpenAIConfig("some-model", "http://user:hunter2@127.0.0.1:9/v1", SecretStr(KEY))


def status_error(status: int, message: str, code: str | None = None, **headers: str) -> openai.APIStatusError:
    request = httpx2.Request("POST", "http://127.0.0.1:9/v1/chat/completions")
    response = httpx2.Response(status, headers=headers, request=request)
    return openai.APIStatusError(message, response=response, body={"message": message, "code": code})


@pytest.mark.parametrize(
    ("status", "message", "kind", "words"),
    [
        (401, f"Incorrect API key provided: {KEY}", OracleUnavailable, "set OPENAI_API_KEY"),
        (403, "not for you", OracleUnavailable, "check what the API key may use"),
        (404, "The model `some-model` does not exist", Unsupported, "choose another"),
        (404, "Not Found", Unsupported, "check the base URL"),
        (
            400,
            "Invalid content type. image_url is only supported by certain models.",
            OracleUnavailable,
            "choose a model that accepts images",
        ),
        (400, "some-model is not a multimodal model", OracleUnavailable, "does not accept images"),
        (400, "This model does not support image inputs", OracleUnavailable, "does not accept images"),
        (400, "image input is not supported - hint: provide the mmproj", OracleUnavailable, "does not accept images"),
        (400, "At most 0 image(s) may be provided in one request.", OracleUnavailable, "does not accept images"),
        (400, "At most 1 image(s) may be provided in one prompt.", TooLong, "one request"),
        (400, "You uploaded an unsupported image. Please make sure it is valid.", Declined, "image not accepted"),
        (400, "image format is not supported", Declined, "image not accepted"),
        (400, "This model's maximum context length is 8192 tokens", TooLong, "longer than"),
        (400, "the request exceeds the available context size", TooLong, "longer than"),
        (413, "Payload Too Large", TooLong, "longer than"),
        (400, "Your request was rejected by our content policy", Declined, "declined"),
        (400, "Unsupported parameter: 'seed'", Unsupported, "does not accept the request"),
        (429, "You exceeded your current quota, please check your plan", ServerAway, "add credit"),
        (429, "Rate limit reached", TransientError, "lower concurrency"),
        (500, "oops", TransientError, "run again later"),
        (503, "overloaded", TransientError, "run again later"),
    ],
)
def test_each_status_has_its_meaning_and_its_remedy(
    status: int, message: str, kind: type[Exception], words: str
) -> None:
    fault = fault_of(status_error(status, message), CONFIG)
    assert type(fault) is kind
    assert words in str(fault)
    assert "\n" not in str(fault)
    assert KEY not in str(fault)
    assert "hunter2" not in str(fault)


def test_a_rate_limit_carries_the_time_that_the_server_named() -> None:
    fault = fault_of(status_error(429, "slow down", **{"retry-after": "12"}), CONFIG)
    assert isinstance(fault, TransientError)
    assert fault.limited
    assert fault.wait == 12.0


def test_a_long_message_becomes_one_short_line() -> None:
    fault = fault_of(status_error(500, "bad\nthings " * 500 + KEY), CONFIG)
    assert len(str(fault)) < 400
    assert KEY not in str(fault)


def test_the_key_is_not_shown_with_the_settings() -> None:
    assert KEY not in repr(CONFIG)
    assert KEY not in str(CONFIG)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": " "}, "names no model"),
        ({"base_url": "localhost:8000"}, "not an http address"),
        ({"base_url": "http://"}, "not an http address"),
        ({"base_url": "http://host:99999/v1"}, "not an http address"),
        ({"detail": "best"}, "choose from auto, low, high"),
        ({"output": "xml"}, "choose from auto, decisions"),
        ({"concurrency": 0}, "above 0"),
        ({"timeout": float("nan")}, "above 0"),
        ({"yes_from": 1.0}, "between 0 and 1"),
        ({"requests_per_minute": -1}, "above 0"),
        ({"labels_per_request": 401}, "above 400"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(changes: dict[str, object], words: str) -> None:
    with pytest.raises(OracleError, match=words):
        OpenAIConfig(**({"model": "m"} | changes))  # type: ignore[arg-type]
