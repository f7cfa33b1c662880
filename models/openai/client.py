"""HTTP requests to one server over the openai SDK: rate-limited, retried, and every reply checked before it is used.

No other layer retries. The rate limit is kept in the store, so that all processes that use one server and one store
share it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.errors import (
    RUN_AGAIN,
    Fault,
    Retry,
    TimedOut,
    TooLong,
    TransientError,
    fault_of,
    is_shallow,
)
from twothirds.models.openai.pace import TIMEOUT, Pace
from twothirds.models.openai.tokens import Endpoint
from twothirds.models.oracle import OracleError, ServerAway
from twothirds.models.prices import Tokens, read_usage
from twothirds.models.prompting import closed
from twothirds.sources import redacted
from twothirds.store import Rate

if TYPE_CHECKING:
    from twothirds.store import Rates

Done = TypeVar("Done")
REPLY_BYTES = 16_000_000  # of a reply, decompressed: a usual one has a few thousand
FILE_BYTES = 400_000_000  # of a file with the results of a batch
GREETING_SECONDS = 2.0
GRACE_SECONDS = 0.25  # so that httpx's own time-outs come first: they tell a connection from a reply
SILENT_SECONDS = 2.0  # a longer pause is reported
KEPT_HEADERS = (b"retry-after", b"retry-after-ms", b"location", b"x-request-id")
PAUSE_CHECK_SECONDS = 1.0  # between two looks at whether another process was asked to pause
PATHS: dict[Endpoint, str] = {"chat": "/chat/completions", "decisions": "/decisions"}


def unsaid(_subject: str, _message: str) -> None:
    pass


@dataclass
class SharedLimit:
    """At most so many requests and tokens a minute, over all processes with this store. Without limits, only pauses
    that the server asks for are shared."""

    rates: Rates
    name: str
    rate: Rate
    notice: Callable[[str, str], None] = unsaid  # told, by its name, when the server asks for a longer pause
    longest_pause: float = float("inf")
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _not_before: float = 0.0
    _checked: float = float("-inf")

    async def admit(self, tokens: int) -> None:
        """Return when a request of so many tokens may be sent."""
        if self.rate != Rate():
            wait = await asyncio.to_thread(self.rates.reserve, self.name, self.rate, tokens)
        else:
            wait = await self._shared_pause()
        if wait > SILENT_SECONDS and self.rate == Rate():
            self._say(wait)
        while wait > 0:
            await self.sleep(wait)
            wait = self._not_before - self.clock()

    def _say(self, seconds: float) -> None:
        self.notice(self.name, f"{self.name} asked for a pause: waiting {seconds:.0f} s")

    async def pause(self, seconds: float) -> None:
        if seconds > SILENT_SECONDS:
            self._say(seconds)
        self._not_before = max(self._not_before, self.clock() + seconds)
        await asyncio.to_thread(self.rates.pause, self.name, seconds)

    async def _shared_pause(self) -> float:
        now = self.clock()
        if now - self._checked >= PAUSE_CHECK_SECONDS:
            self._checked = now
            paused = await asyncio.to_thread(self.rates.paused_for, self.name)
            self._not_before = max(self._not_before, now + min(paused, self.longest_pause))
        return self._not_before - now


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """The message of a chat reply."""

    text: str
    refused: bool = False
    cut: bool = False  # at the limit of tokens
    note: str = ""  # what is wrong with it, if anything
    tokens: object = None  # with their logarithmic probabilities, as the server sends them

    @property
    def whole(self) -> str:
        """The text; of one that was cut what is complete."""
        return closed(self.text) if self.cut else self.text


@dataclass(frozen=True, slots=True)
class ServerReply:
    """A reply with status 200. `data` is None if it is not a JSON object, `tokens` if it reports no credible usage."""

    text: str
    data: dict[str, Any] | None
    tokens: Tokens | None = None

    @classmethod
    def read(cls, text: str) -> ServerReply:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
        return cls.of(text, data if isinstance(data, dict) and is_shallow(data) else None)

    @classmethod
    def of(cls, text: str, data: dict[str, Any] | None) -> ServerReply:
        return cls(text, data, read_usage(data) if data else None)

    @property
    def message(self) -> ChatMessage:
        """The message of a chat reply, whatever its shape."""
        choices = (self.data or {}).get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        if not isinstance(message, dict):
            return ChatMessage("", note="the reply holds no message")
        finish = choice.get("finish_reason")
        if isinstance(message.get("refusal"), str) and message["refusal"]:
            return ChatMessage(message["refusal"], refused=True, note="the model declined to answer")
        if finish == "content_filter":
            return ChatMessage("", refused=True, note="the provider's content filter stopped the reply")
        text = _text_of(message.get("content"))
        logprobs = choice.get("logprobs")
        tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
        if finish == "length":
            cut = "the reply was cut at its longest: raise max_output_tokens"
            return ChatMessage(text, cut=True, note=cut, tokens=tokens)
        return ChatMessage(text, note="" if text else "an empty reply", tokens=tokens)


def _text_of(content: object) -> str:
    """Some servers return the text in parts."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def bounded_http(config: OpenAIConfig, **options: Any) -> Any:
    """The HTTP client below the SDK. A reply has a deadline and a limit of decompressed bytes, redirects are not
    followed, and nothing that a server says decides how its reply is decoded."""
    import httpx2
    from openai import DefaultAsyncHttpxClient

    class BoundedHttp(DefaultAsyncHttpxClient):
        async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            seconds = request.extensions["timeout"]["read"]
            options |= {"stream": True, "follow_redirects": False}
            try:
                async with asyncio.timeout(seconds + GRACE_SECONDS):
                    response = await super().send(request, **options)
                    content = await _content(response, config)
            except TimeoutError:
                raise TimedOut(config.host, seconds) from None
            headers = [(name, value) for name, value in response.headers.raw if name.lower() in KEPT_HEADERS]
            headers.append((b"content-type", b"application/json"))  # without a charset: it is read as UTF-8
            return httpx2.Response(response.status_code, headers=headers, content=content, request=request)

    return BoundedHttp(headers={"Accept-Encoding": "identity"}, follow_redirects=False, **options)


async def _content(response: Any, config: OpenAIConfig) -> bytes:
    """The decompressed body; what is compressed twice or too long is given up at once."""
    most = FILE_BYTES if response.request.url.path.endswith("/content") else REPLY_BYTES
    size, received = 0, list[bytes]()
    async with contextlib.aclosing(response.aiter_bytes()) as pieces:
        twice = "," in response.headers.get("content-encoding", "")
        async for piece in pieces:
            size += len(piece)
            if size > most or twice:
                problem = "compressed twice" if twice else f"of more than {most // 1_000_000} MB"
                message = f"{config.host} sends a reply {problem}: check the base URL, or run again later"
                raise TransientError(message, attempts_cost=2, maybe_charged=True)
            received.append(piece)
    content = b"".join(received)
    return content if response.is_success or _is_readable(content) else b""


def _is_readable(content: bytes) -> bool:
    """Whether what an error says can be taken apart: the SDK turns its parts into text."""
    try:
        return is_shallow(json.loads(content))
    except (ValueError, RecursionError):
        return True


class RetriesExhausted(ServerAway):
    """The last attempt failed too; `maybe_charged` if the server may have charged for one of the attempts."""

    def __init__(self, message: str, maybe_charged: bool) -> None:
        super().__init__(message)
        self.maybe_charged = maybe_charged


class Client:
    """Belongs to one event loop. Raises a Fault that concerns these questions, or OracleUnavailable."""

    def __init__(self, config: OpenAIConfig, pace: Pace, limit: SharedLimit | None = None) -> None:
        """Without a shared limit only failed requests wait before they are sent again."""
        from openai import AsyncOpenAI

        self.config = config
        self.pace = pace
        self.sdk = AsyncOpenAI(
            api_key=config.api_key.get_secret_value() or "none",  # the SDK wants one, a local server does not
            base_url=config.url,
            timeout=config.timeout or TIMEOUT,
            max_retries=0,
            http_client=bounded_http(config),
        )
        self._retry = Retry(config.attempts, config.longest_wait, config.retry_delay)
        self._limit = limit
        self._dice = random.Random()

    async def close(self) -> None:
        await self.sdk.close()

    async def greet(self) -> None:
        """Raises OracleUnavailable where nothing listens, or where the key is refused. Nothing else that a server says,
        or does not say in time, tells whether it will answer questions: it may not even list its models."""
        import httpx2
        import openai

        try:
            await self.sdk.with_options(timeout=GREETING_SECONDS).get("/models", cast_to=httpx2.Response)
        except openai.AuthenticationError as error:
            raise _fault_or_raise(error, self.config) from None
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, httpx2.ConnectError):
                raise ServerAway(str(fault_of(error, self.config))) from None
        except (openai.APIError, Fault):
            return

    async def post(self, endpoint: Endpoint, body: dict[str, Any], most: Tokens, labels: int = 0) -> ServerReply:
        """Send a request of at most so many tokens once.

        Sent and read as plain JSON: the SDK's typed methods would spend a quarter of the time on validation."""
        import httpx2

        began, seconds = time.monotonic(), self.config.timeout or self.pace.timeout(most)
        try:
            response = await self.sdk.post(
                PATHS[endpoint], cast_to=httpx2.Response, body=body, options={"timeout": seconds}
            )
        except Exception as error:
            fault = _fault_or_raise(error, self.config)
            if isinstance(fault, TimedOut):
                self.pace.note_timeout(most, fault.seconds)
            raise fault from None
        reply = self._read(response.text)
        if reply.tokens is not None:
            self.pace.note(reply.tokens, time.monotonic() - began, labels)
        return reply

    def _read(self, text: str) -> ServerReply:
        """A reply that is no JSON object, such as a torn one or the page of a captive portal, is a passing fault."""
        reply = ServerReply.read(redacted(text, self.config.secrets))
        if reply.data is None:
            message = f"{self.config.host} answers with what is no JSON object: {RUN_AGAIN}"
            raise TransientError(message, maybe_charged=True)
        return reply

    async def fetch(
        self,
        send: Callable[[], Awaitable[Any]],
        find_done: Callable[[], Awaitable[dict[str, Any] | None]] | None = None,
    ) -> dict[str, Any]:
        """The JSON object with which the server answers a call of the SDK's `with_raw_response`."""

        async def sent() -> dict[str, Any]:
            return self._read((await send()).http_response.text).data or {}

        return await self.retried(sent, find_done=find_done)

    async def retried(
        self,
        attempt: Callable[[], Awaitable[Done]],
        tokens: int = 0,
        labels: int = 0,
        find_done: Callable[[], Awaitable[Done | None]] | None = None,
    ) -> Done:
        """Attempt until there is a response; raises a Fault of the request itself at once, others after all attempts,
        and TooLong where a request with several labels does not end in time.

        `find_done` is called after a failure: if it finds that the request did succeed, its result is returned."""
        spent, maybe_charged = 0, False
        while True:
            try:
                async with self.pace.slot():
                    if self._limit is not None:
                        await self._limit.admit(tokens)
                    return await attempt()
            except Exception as error:
                fault = _fault_or_raise(error, self.config)
            if not isinstance(fault, TransientError):
                raise fault
            spent += fault.attempts_cost
            maybe_charged |= fault.maybe_charged
            delay = self._retry.delay(spent, fault.wait, self._dice)
            if delay is None or fault.is_last:
                raise RetriesExhausted(str(fault), maybe_charged)
            if isinstance(fault, TimedOut) and labels > 1 and self.pace.is_alive:
                raise TooLong(str(fault))
            if fault.limited and self._limit is not None:
                await self._limit.pause(delay)
            await asyncio.sleep(delay)
            if find_done is not None and (found := await find_done()) is not None:
                return found


def _fault_or_raise(error: Exception, config: OpenAIConfig) -> Exception:
    """Errors of the SDK and of the connection below it; anything else is a defect of ours and raised as it is."""
    import httpx2
    import openai

    if isinstance(error, openai.APIError | httpx2.HTTPError | httpx2.StreamError | OSError):
        return fault_of(error, config)
    if isinstance(error, Fault | OracleError):
        return error
    raise error
