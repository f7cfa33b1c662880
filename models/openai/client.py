"""The pace of all processes that ask one server, kept in the store: each reserves its turn, a complaint slows all.

One request at a time over the openai SDK: paced, retried, and its reply read without trust."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from models.openai.config import OpenAIConfig
from models.openai.errors import Fault, Passing, Retry, fault_of
from models.oracle import OracleUnavailable, Question
from models.prices import Tokens, read_usage
from models.rate_limit import RateLimit
from sources.secrets import redacted
from store import Rate, Store

LOOK_SECONDS = 1.0  # between two looks at whether another process was asked to pause


class SharedLimit:
    """As `RateLimit`, for whoever shares the store. Where nothing is limited, only pauses are shared."""

    def __init__(
        self,
        store: Store,
        name: str,
        rate: Rate,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store, self._name, self._rate = store, name, rate
        self._clock, self._sleep = clock, sleep
        self._not_before = 0.0
        self._looked = float("-inf")

    async def admit(self, tokens: int) -> None:
        """Return when a request of so many tokens may be sent."""
        if self._rate != Rate():
            wait = await asyncio.to_thread(self._store.rates.reserve, self._name, self._rate, tokens)
        else:
            wait = await self._pause_of_others()
        while wait > 0:
            await self._sleep(wait)
            wait = self._not_before - self._clock()

    def pause(self, seconds: float) -> None:
        self._not_before = max(self._not_before, self._clock() + seconds)
        self._store.rates.pause(self._name, seconds)

    async def _pause_of_others(self) -> float:
        now = self._clock()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            paused = await asyncio.to_thread(self._store.rates.paused_for, self._name)
            self._not_before = max(self._not_before, now + paused)
        return self._not_before - now


@dataclass(frozen=True, slots=True)
class Said:
    text: str
    refused: bool = False
    cut: bool = False  # at the limit of tokens
    note: str = ""  # what is wrong with it, where something is


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply with status 200. `data` is None when it is not a JSON object, `tokens` when it says no credible usage."""

    text: str
    data: dict[str, Any] | None
    tokens: Tokens | None = None

    @classmethod
    def read(cls, text: str) -> Reply:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
        return cls.of(text, data if isinstance(data, dict) else None)

    @classmethod
    def of(cls, text: str, data: dict[str, Any] | None) -> Reply:
        return cls(text, data, read_usage(data) if data else None)

    @property
    def said(self) -> Said:
        """The message of a chat reply, whatever its shape."""
        choices = (self.data or {}).get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        if not isinstance(message, dict):
            return Said("", note="the reply holds no message")
        finish, content = choice.get("finish_reason"), message.get("content")
        if isinstance(message.get("refusal"), str) and message["refusal"]:
            return Said(message["refusal"], refused=True, note="the model declined to answer")
        if finish == "content_filter":
            return Said("", refused=True, note="the provider's content filter stopped the reply")
        text = _text_of(content)
        cut = "the reply was cut at its longest: raise max_output_tokens"
        return Said(text, cut=finish == "length", note=cut if finish == "length" else "" if text else "an empty reply")


def _text_of(content: object) -> str:
    """Some servers give what is said in parts."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


class Lost(OracleUnavailable):
    """Patience has ended; `in_doubt` where one of the attempts may have been charged."""

    def __init__(self, message: str, in_doubt: bool) -> None:
        super().__init__(message)
        self.in_doubt = in_doubt


@dataclass(slots=True)
class Trail:
    """What questions that travel together have left at the server."""

    paid: set[Question] = field(default_factory=set)
    in_doubt: bool = False


_trail: ContextVar[Trail] = ContextVar("trail")


def trail() -> Trail:
    """Of the group that this task delivers, and of the tasks that it starts."""
    try:
        return _trail.get()
    except LookupError:
        _trail.set(Trail())
        return _trail.get()


class Wire:
    """Belongs to one event loop. Raises a Fault that concerns these questions, or OracleUnavailable."""

    def __init__(self, config: OpenAIConfig, store: Store | None = None) -> None:
        """With a store, the pace is shared by all processes that use it."""
        from openai import AsyncOpenAI

        self.config = config
        self.client = AsyncOpenAI(
            api_key=config.api_key.get_secret_value() or "none",  # servers of one's own ask for none, the SDK does
            base_url=config.url,
            timeout=config.timeout,
            max_retries=0,
        )
        self._retry = Retry(config.attempts, config.longest_wait, config.retry_delay)
        rate = Rate(config.requests_per_minute, config.tokens_per_minute)
        alone = RateLimit(rate.requests, rate.tokens)
        self._limit = SharedLimit(store, f"openai:{config.model}@{config.host}", rate) if store else alone
        self._places = asyncio.Semaphore(config.concurrency)
        self._dice = random.Random()

    async def chat(self, body: dict[str, Any], tokens: int) -> Reply:
        """`tokens` is at most what the request takes, for the pace."""
        return await self._reply("/chat/completions", body, tokens)

    async def decide(self, body: dict[str, Any], tokens: int) -> Reply:
        return await self._reply("/decisions", body, tokens)

    async def close(self) -> None:
        await self.client.close()

    async def _reply(self, path: str, body: dict[str, Any], tokens: int) -> Reply:
        """Sent as it is and read as it came: the SDK's typed methods would spend a quarter of the time on shapes."""
        import httpx2

        send = partial(self.client.post, path, cast_to=httpx2.Response, body=body)
        try:
            response = await self.persist(send, tokens)
        except Lost as lost:
            trail().in_doubt |= lost.in_doubt
            raise
        return Reply.read(redacted(response.text, self.config.secrets))

    async def fetch(
        self, send: Callable[[], Awaitable[Any]], instead: Callable[[], Awaitable[dict[str, Any] | None]] | None = None
    ) -> dict[str, Any]:
        """The JSON object with which the server answers a call of the SDK's `with_raw_response`."""

        async def sent() -> dict[str, Any]:
            reply = Reply.read(redacted((await send()).http_response.text, self.config.secrets))
            if reply.data is None:
                message = f"{self.config.host} answers with what is no JSON object: run again later"
                raise Passing(f"{message}; what was answered is kept")
            return reply.data

        data: dict[str, Any] = await self.persist(sent, instead=instead)
        return data

    async def persist(
        self,
        send: Callable[[], Awaitable[Any]],
        tokens: int = 0,
        instead: Callable[[], Awaitable[Any | None]] | None = None,
    ) -> Any:
        """Send until there is a response, or until patience or the question's own fault ends it.

        `instead` is asked after a failure: what it finds makes another try needless."""
        failed, in_doubt = 0, False
        while True:
            try:
                async with self._places:
                    await self._limit.admit(tokens)
                    return await send()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                fault = _understood(error, self.config)
            if not isinstance(fault, Passing):
                raise fault
            failed += fault.tries
            in_doubt |= fault.in_doubt
            delay = self._retry.delay(failed, fault.wait, self._dice)
            if delay is None:
                raise Lost(str(fault), in_doubt)
            if fault.limited:
                self._limit.pause(delay)
            await asyncio.sleep(delay)
            if instead is not None and (found := await instead()) is not None:
                return found


def _understood(error: Exception, config: OpenAIConfig) -> Exception:
    """Errors of the SDK and of the connection below it; what is neither is a defect of ours and is raised as it is."""
    import httpx2
    import openai

    if isinstance(error, openai.APIError | httpx2.HTTPError | httpx2.StreamError | OSError):
        return fault_of(error, config)
    if isinstance(error, Fault | OracleUnavailable):
        return error
    raise error
