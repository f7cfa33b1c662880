"""Finds out by a few paid requests what a server can do. What one request was charged counts to one account."""

from __future__ import annotations

from typing import Any

from twothirds.models.openai.abilities import OPTIONAL, Abilities
from twothirds.models.openai.account import Account
from twothirds.models.openai.client import ServerReply
from twothirds.models.openai.errors import Fault, Unsupported
from twothirds.models.openai.tokens import Endpoint
from twothirds.models.oracle import OracleUnavailable
from twothirds.models.prices import Tokens
from twothirds.models.prompting import json_objects, next_word

PROBE_TOKENS = Tokens(input=1_000, output=2_000)  # at most what one request of a probe takes
USUAL_TOKENS = Tokens(input=100, output=30)  # of a whole probe
MOST_REQUESTS = 20  # of a probe, attempts that may have been charged included
# One bad reply must not decide what a server can do.
GREETINGS = ("Say hello.", "Say hello. Be brief.", "Say hello. Use one word.")
STATEMENTS = ("It is a greeting.", "It greets somebody.", "Somebody is greeted.")
FORMATS = {"schema": ("json_schema",), "json": ("json_object",), "text": ("",)}
YES_OR_NO = "Is snow white? Answer with one word, yes or no."
ASKED_LOGPROBS = {"logprobs": True, "top_logprobs": 5}
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": ["twothirds"]}},
    "required": ["word"],
    "additionalProperties": False,
}


async def probe(account: Account) -> Abilities:
    """What the server can do; where labels may be asked one by one, also whether the next word tells them."""
    host = account.server.config.host
    try:
        return await _Probe(account).abilities()
    except Fault as fault:
        raise OracleUnavailable(f"{host} does not answer as it should: {fault}") from None


class _Probe:
    def __init__(self, account: Account) -> None:
        self._account = account
        self._config = account.server.config
        self._thinks = False
        self._limit = "max_completion_tokens"
        self._missing: set[str] = set()

    async def abilities(self) -> Abilities:
        form = await self._form()
        wanted = self._config.output
        decisions = wanted in ("auto", "decisions") and await self._has_decisions()
        if wanted == "decisions" and not decisions:
            host, model = self._config.host, self._config.model
            raise OracleUnavailable(f"{host} has no decisions endpoint for {model!r}: use output=auto")
        asks_words = self._account.server.pricing.may_ask_one_by_one and not self._thinks
        return Abilities(
            decisions=decisions,
            format=form,
            limit=self._limit,
            missing=tuple(sorted(self._missing)),
            reasoning=self._thinks,
            next_word=asks_words and await self._has_next_word(),
        )

    async def _send(self, endpoint: Endpoint, body: dict[str, Any]) -> ServerReply:
        return await self._account.send(endpoint, body, PROBE_TOKENS)

    async def _has_next_word(self) -> bool:
        """Whether the first token of an answer is yes or no, and the server tells how probable both are."""
        try:
            reply = await self._send("chat", self._body("", YES_OR_NO) | {self._limit: 1} | ASKED_LOGPROBS)
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

    async def _chat(self, form: str, *, may_fail: bool, greeting: str = GREETINGS[0]) -> ServerReply | None:
        while True:
            try:
                reply = await self._send("chat", self._body(form, greeting))
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
            "temperature": config.temperature,
            "reasoning_effort": config.reasoning_effort,
            **(ASKED_LOGPROBS if config.logprobs else {}),
            **({"response_format": response_format(form, "probe", _SCHEMA)} if form else {}),
        }
        return {name: value for name, value in body.items() if value is not None and name not in self._missing}

    async def _has_decisions(self) -> bool:
        answered = False
        for statement in STATEMENTS:
            instructions = [{"type": "input_text", "text": statement}]
            question = {"type": "predicate", "name": "1", "instructions": instructions}
            try:
                body = {"model": self._config.model, "input": "Hello!", "questions": [question]}
                reply = await self._send("decisions", body)
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


def _enforced(reply: ServerReply, form: str) -> bool:
    found = json_objects(reply.message.text)
    if form == "json_schema":
        return any(item.get("word") == "twothirds" for item in found)
    return bool(found)
