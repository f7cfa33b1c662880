"""What can go wrong with a reply that the server would have given."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.fake_openai.wire import Response

Data = dict[str, Any]


def _content(change: Callable[[str], Any], finish: str = "stop") -> Callable[[Data], None]:
    def spoil(reply: Data) -> None:
        if "choices" in reply:
            message = reply["choices"][0]["message"]
            message["content"] = change(message["content"])
            reply["choices"][0]["finish_reason"] = finish
        else:
            reply["answers"] = change(json.dumps(reply["answers"]))

    return spoil


def _items(change: Callable[[str], str], decide: Callable[[list[Data]], list[Data]]) -> Callable[[Data], None]:
    """A change of what a chat says, and the like for the answers of decisions."""

    def spoil(reply: Data) -> None:
        if "choices" in reply:
            _content(change)(reply)
        else:
            reply["answers"] = decide(reply["answers"])

    return spoil


def _usage(usage: object) -> Callable[[Data], None]:
    return lambda reply: reply.update(usage=usage)


def _counts(given: object, written: object) -> Callable[[Data], None]:
    """Usage in the spelling of the endpoint."""

    def spoil(reply: Data) -> None:
        names = ("prompt_tokens", "completion_tokens") if "choices" in reply else ("input_tokens", "output_tokens")
        reply["usage"] = dict(zip(names, (given, written), strict=True))

    return spoil


def _of_json(change: Callable[[Data], Any], word: str) -> Callable[[str], str]:
    """A change of a JSON object, and what is said in the place of a reply that is one word."""

    def changed(content: str) -> str:
        if not content.startswith("{"):
            return word
        data = change(json.loads(content))
        return data if isinstance(data, str) else json.dumps(data)

    return changed


def _are_labels(data: Data) -> bool:
    return all(isinstance(value, bool | dict) for value in data.values())


def _by_order(data: Data) -> list[Any]:
    """What the schema forbids: labels as a list, a feature as a sentence."""
    return list(data.values()) if _are_labels(data) else [f"They share {data.get('name')}."]


def _contradiction(data: Data) -> str:
    """Every key twice, the second time with the opposite."""
    pairs = [(key, data[key]) for key in data] + [(key, _opposite(data[key])) for key in data]
    return "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs) + "}"


def _opposite(value: object) -> object:
    return not value if isinstance(value, bool) else 7


def _refuse(reply: Data) -> None:
    if "choices" in reply:
        reply["choices"][0]["message"] |= {"content": None, "refusal": "I can't help with that."}
    else:
        reply["answers"] = [{"type": "refusal", "name": answer["name"]} for answer in reply["answers"]]


def _shifted(data: Data) -> Data:
    """Every label, and every field of a feature, under a name that nobody asked about."""
    return {f"the {key}": value for key, value in data.items()}


def _long_name(data: Data) -> Data:
    return data | {"name": "very " * 4000 + "long"} if "name" in data else {"1" * 4000: True}


def _half(data: Data) -> Data:
    """Without every other label of every other example."""
    if not _are_labels(data):
        return data
    return {
        key: _half(value) if isinstance(value, dict) else value
        for place, (key, value) in enumerate(data.items())
        if not place % 2
    }


PERHAPS = "Perhaps."
SHIFTED, LONG_NAME = _of_json(_shifted, PERHAPS), _of_json(_long_name, PERHAPS)
BY_ORDER, CONTRADICTION, HALF = _of_json(_by_order, PERHAPS), _of_json(_contradiction, PERHAPS), _of_json(_half, "")

# Good replies whose usage cannot be believed: the server books nothing for them.
USAGES: dict[str, Callable[[Data], None]] = {
    "no usage": lambda reply: reply.pop("usage"),
    "absurd usage": _counts(-5, 10**15),
    "negative usage": _counts(-5, -5),
    "usage of a trillion": _counts(10**12, 10**12),
    "usage of 400 digits": _counts(10**400, 10**400),
    "usage without end": _counts(float("inf"), float("nan")),
    "usage in words": _counts("12", "three"),
    "usage that is a list": _usage([1, 2]),
    "usage of nothing": _usage(None),
}

# Replies with status 200 that were paid for and cannot be used, or only in part.
SPOILERS: dict[str, Callable[[Data], None]] = {
    "prose": _content(lambda _: "They look rather alike to me, but one never knows."),
    "empty": _content(lambda _: ""),
    "null": _content(lambda _: None),
    "cut short": _content(lambda content: content[: len(content) // 2], "length"),
    "wrong shape": _content(lambda _: json.dumps({"result": [1, 2, 3]})),
    "wrong keys": _items(
        _of_json(_shifted, "Perhaps."), lambda answers: [a | {"name": str(int(a["name"]) + 1000)} for a in answers]
    ),
    "long name": _items(
        _of_json(_long_name, "Perhaps."), lambda answers: [a | {"name": a["name"] * 20_000} for a in answers]
    ),
    "half the labels": _items(HALF, lambda answers: answers[::2]),
    "schema ignored": _items(
        _of_json(_by_order, "Perhaps."), lambda answers: [{"probability": a["probability"]} for a in answers]
    ),
    "contradiction": _items(
        _of_json(_contradiction, "Perhaps."), lambda answers: answers + [a | {"probability": 0.5} for a in answers]
    ),
    "refusal": _refuse,
    "refusal in words": _content(lambda _: "I'm sorry, but I can't help with that."),
    "filtered": _content(lambda _: None, "content_filter"),
    "no choices": lambda reply: reply.pop("choices", None) or reply.pop("answers", None),
    **USAGES,
}

REPEATS = "repeats the prompt"


def repeat_prompt(body: Data, reply: Data) -> None:
    if "choices" in reply:
        reply["choices"][0]["message"]["content"] = json.dumps(body["messages"]) + str(body["messages"])
    else:
        reply["answers"] = body["questions"]


# Failures of the transport or of the server. `book` holds none of them, `processed` those that the model has answered.
FAILURES: dict[str, Callable[[Response], Response]] = {
    "429": lambda _: Response.of({"error": {"message": "slow down", "type": "rate_limit"}}, 429),
    "429 with time": lambda _: Response.of({"error": {"message": "slow down"}}, 429, retry_after_ms="40"),
    "429 for an hour": lambda _: Response.of({"error": {"message": "slow down"}}, 429, retry_after="3600"),
    "429 until 99999": lambda _: Response.of(
        {"error": {"message": "slow down"}}, 429, retry_after="Fri, 01 Jan 99999 00:00:00 GMT"
    ),
    "no quota": lambda _: Response.of({"error": {"message": "pay first", "code": "insufficient_quota"}}, 429),
    "500": lambda _: Response(b"<html>oops</html>", 500),
    "503": lambda _: Response.of({"error": {"message": "overloaded"}}, 503),
    "hang": lambda good: Response(good.body, delay=30.0),
    "cut": lambda good: Response(good.body, headers=good.headers, sent=0.5),
    "silence": lambda _: Response(b"", silent=True),
    "malformed": lambda good: Response(good.body[: len(good.body) // 2] + b"]]", headers=good.headers),
    "not JSON": lambda _: Response(b"<html>200 but no</html>", headers={"content-type": "text/html"}),
    "a list": lambda good: Response(b"[" + good.body + b"]", headers=good.headers),
    "event stream": lambda good: Response(b"data: " + good.body, headers={"content-type": "text/event-stream"}),
    "empty body": lambda _: Response(b""),
    "408": lambda _: Response.of({"error": {"message": "too slow"}}, 408),
    "502": lambda _: Response(b"<html>bad gateway</html>", 502),
    "504": lambda _: Response(b"<html>gateway time-out</html>", 504),
}
# The model has answered each of these, and the provider charges for it; no reply says what.
CHARGED = ("hang", "cut", "silence", "malformed", "a list", "event stream", "empty body", "408", "502", "504")
# Whoever asks cannot tell whether one of these was charged.
IN_DOUBT = (*CHARGED, "not JSON")
