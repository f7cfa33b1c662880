"""One request at a time over the openai SDK: paced, retried, and its reply read without trust."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from models.openai_config import OpenAIConfig
from models.openai_errors import Fault, Passing, fault_of, redacted
from models.oracle import OracleUnavailable
from models.prices import Tokens, read_usage
from models.rate_limit import RateLimit
from models.retry import Retry
from models.shared_limit import SharedLimit
from store import Rate, Store


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
        text = content if isinstance(content, str) else ""
        cut = "the reply was cut at its longest: raise max_output_tokens"
        return Said(text, cut=finish == "length", note=cut if finish == "length" else "" if text else "an empty reply")


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

        response = await self.persist(lambda: self.client.post(path, cast_to=httpx2.Response, body=body), tokens)
        return Reply.read(redacted(response.text, self.config))

    async def persist(
        self,
        send: Callable[[], Awaitable[Any]],
        tokens: int = 0,
        instead: Callable[[], Awaitable[Any | None]] | None = None,
    ) -> Any:
        """Send until there is a response, or until patience or the question's own fault ends it.

        `instead` is asked after a failure: what it finds makes another try needless."""
        failed = 0
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
            delay = self._retry.delay(failed, fault.wait, self._dice)
            if delay is None:
                raise OracleUnavailable(str(fault))
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
