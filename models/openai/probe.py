"""What a server can do, found out by a few paid requests and remembered in a file: it is part of the identity."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from twothirds.models.openai.client import Attempts, Client, Endpoint, Reply
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.errors import Unsupported
from twothirds.models.oracle import OracleUnavailable, digest_of
from twothirds.models.prices import Tokens
from twothirds.models.prompting import json_objects, next_word


class Remembered:
    """A small JSON file, used like a dict. Losing it costs another probe."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str) -> Any:
        return self._read().get(key)

    def __setitem__(self, key: str, value: Any) -> None:
        with contextlib.suppress(OSError):  # a folder that cannot be written only means another probe
            self._path.parent.mkdir(parents=True, exist_ok=True)
            written = self._path.with_name(f"{self._path.name}.{uuid4().hex}")
            written.write_text(json.dumps({**self._read(), key: value}, indent=1), encoding="utf-8")
            os.replace(written, self._path)

    def _read(self) -> dict[str, Any]:
        """What `Abilities.to_json` wrote; the rest counts as absent."""
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        stored = content if isinstance(content, dict) else {}
        return {key: value for key, value in stored.items() if Abilities.from_json(value) is not None}


PROBE_TOKENS = Tokens(input=1_000, output=2_000)  # at most what a probe takes
# One bad reply must not decide what a server can do.
GREETINGS = ("Say hello.", "Say hello. Be brief.", "Say hello. Use one word.")
FORMATS = {"schema": ("json_schema",), "json": ("json_object",), "text": ("",)}
LIMITS = ("max_completion_tokens", "max_tokens")
OPTIONAL = ("temperature", "seed", "reasoning_effort", "top_logprobs", "logprobs")
YES_OR_NO = "Is snow white? Answer with one word, yes or no."
ASKED_LOGPROBS = {"logprobs": True, "top_logprobs": 5}
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": ["twothirds"]}},
    "required": ["word"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Abilities:
    decisions: bool = False  # probabilities for many predicates in one call
    format: str = ""  # json_schema is enforced, json_object is enforced, or neither
    limit: str = "max_completion_tokens"  # how the length of a reply is limited
    missing: tuple[str, ...] = ()  # parameters that the server rejects
    reasoning: bool = False  # thinks before it answers, in tokens that are paid for
    rate: float = 0.0  # tokens that one request was last seen to write a second; 0: many, or it is not known
    width: int = 0  # requests that were then in flight
    next_word: bool = False  # tells how probable yes and no are as the first word of a reply

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"missing": list(self.missing)}

    @classmethod
    def from_json(cls, data: Any) -> Abilities | None:
        """None for anything that `to_json` did not write."""
        if not isinstance(data, dict) or set(data) != {field.name for field in fields(cls)}:
            return None
        words = isinstance(data["missing"], list) and all(name in OPTIONAL for name in data["missing"])
        flags = all(isinstance(data[name], bool) for name in ("decisions", "reasoning", "next_word"))
        known = data["format"] in ("json_schema", "json_object", "") and data["limit"] in LIMITS
        speeds = [data[name] for name in ("rate", "width")]
        pace = all(isinstance(speed, int | float) and not isinstance(speed, bool) and speed >= 0 for speed in speeds)
        return cls(**(data | {"missing": tuple(data["missing"])})) if words and flags and known and pace else None


class Payer(Protocol):
    """Books what a request costs."""

    async def pay(self, endpoint: Endpoint, send: Callable[[Attempts], Awaitable[Reply]]) -> Reply: ...


async def probe(client: Client, payer: Payer, *, one_by_one: bool) -> Abilities:
    """What the server can do; where labels may be asked `one_by_one`, also whether the next word tells them."""
    return await _Probe(client, payer).abilities(one_by_one=one_by_one)


class _Probe:
    def __init__(self, client: Client, payer: Payer) -> None:
        self._client = client
        self._payer = payer
        self._thinks = False
        self._config = client.config
        self._limit = "max_completion_tokens"
        self._missing: set[str] = set()

    async def abilities(self, *, one_by_one: bool) -> Abilities:
        form = await self._form()
        wanted = self._config.output
        decisions = wanted in ("auto", "decisions") and await self._has_decisions()
        if wanted == "decisions" and not decisions:
            host, model = self._config.host, self._config.model
            raise OracleUnavailable(f"{host} has no decisions endpoint for {model!r}: use output=auto")
        tells = one_by_one and not self._thinks and await self._has_next_word()
        return Abilities(
            decisions=decisions,
            format=form,
            limit=self._limit,
            missing=tuple(sorted(self._missing)),
            reasoning=self._thinks,
            next_word=tells,
        )

    async def _has_next_word(self) -> bool:
        """Whether the first token of an answer is yes or no, and the server tells how probable both are."""
        body = self._body("", YES_OR_NO) | {self._limit: 1} | ASKED_LOGPROBS
        try:
            reply = await self._payer.pay("chat", partial(self._client.send, "chat", body, PROBE_TOKENS))
        except Unsupported:
            return False
        return next_word(reply.message.tokens) is not None

    async def _form(self) -> str:
        """The strictest format that the server accepts and enforces; the last one is not tested."""
        *strict, last = FORMATS.get(self._config.output, ("json_schema", "json_object", ""))
        for form in strict:
            if await self._enforces(form):
                return form
        await self._chat(last, may_fail=False)
        return last

    async def _enforces(self, form: str) -> bool:
        answered = False
        for greeting in GREETINGS:
            reply = await self._chat(form, may_fail=True, greeting=greeting)
            if reply is None:
                return False
            if _enforced(reply, form):
                return True
            answered |= bool((reply.data or {}).get("choices"))
        return self._noted(answered, "chat")

    def _noted(self, answered: bool, endpoint: Endpoint) -> bool:
        """False, which is remembered, where the server itself has said so. What others answer in its place, such as a
        sign-in page, says nothing about it."""
        if not answered:
            host = self._config.host
            raise OracleUnavailable(f"{host} gives no {endpoint} reply: check the base URL, or run again later")
        return False

    async def _chat(self, form: str, *, may_fail: bool, greeting: str = GREETINGS[0]) -> Reply | None:
        while True:
            try:
                send = partial(self._client.send, "chat", self._body(form, greeting), PROBE_TOKENS)
                reply = await self._payer.pay("chat", send)
            except Unsupported as fault:
                if self._adapts_to(fault):
                    continue
                if may_fail and fault.status in (400, 422):
                    return None
                raise
            self._thinks |= reply.tokens is not None and reply.tokens.reasoning > 0
            return reply

    def _adapts_to(self, fault: Unsupported) -> bool:
        """Whether the server rejects a parameter that can be renamed or left out, which is done from now on."""
        named = next((name for name in ("max_completion_tokens", *OPTIONAL) if name in fault.details), None)
        if named is None or named in self._missing:
            return False
        if named == "max_completion_tokens":
            changed = self._limit != "max_tokens"
            self._limit = "max_tokens"
            return changed
        self._missing.add(named)
        return True

    def _body(self, form: str, greeting: str) -> dict[str, Any]:
        """The prompt asks for something that the format does not allow: only an enforced one changes the answer."""
        config = self._config
        prompt = f"{greeting} Answer in JSON." if form == "json_object" else greeting
        body: dict[str, Any] = {
            "model": config.model,
            "messages": [{"role": "user", "content": prompt}],
            self._limit: PROBE_TOKENS.output,
            "seed": 1,
        }
        if config.temperature is not None:
            body["temperature"] = config.temperature
        if config.reasoning_effort is not None:
            body["reasoning_effort"] = config.reasoning_effort
        if config.logprobs:
            body |= ASKED_LOGPROBS
        if form:
            body["response_format"] = response_format(form, "probe", _SCHEMA)
        return {name: value for name, value in body.items() if name not in self._missing}

    async def _has_decisions(self) -> bool:
        answered = False
        for statement in ("It is a greeting.", "It greets somebody.", "Somebody is greeted."):
            instructions = [{"type": "input_text", "text": statement}]
            question = {"type": "predicate", "name": "1", "instructions": instructions}
            body = {"model": self._config.model, "input": "Hello!", "questions": [question]}
            send = partial(self._client.send, "decisions", body, PROBE_TOKENS)
            try:
                reply = await self._payer.pay("decisions", send)
            except Unsupported:
                return False
            answers = (reply.data or {}).get("answers")
            if isinstance(answers, list) and len(answers) == 1:
                return True
            answered |= reply.data is not None
        return self._noted(answered, "decisions")


def response_format(form: str, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    if form == "json_schema":
        return {"type": form, "json_schema": {"name": name, "schema": schema, "strict": True}}
    return {"type": form}


def _enforced(reply: Reply, form: str) -> bool:
    found = json_objects(reply.message.text)
    if form == "json_schema":
        return any(item.get("word") == "twothirds" for item in found)
    return bool(found)


def probe_key(config: OpenAIConfig) -> str:
    """The key of remembered abilities: all that could change them, and no secret."""
    sampling = [config.temperature is not None, config.reasoning_effort, config.logprobs]
    return digest_of([config.url, config.model, config.output, *sampling])
