"""How to reach an OpenAI-compatible server and how to ask it. Nothing is read from the environment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import urlsplit

from pydantic import SecretStr

from models.openai.label_groups import Grouping
from models.oracle import OracleError
from models.prices import Price
from sources.printable import quoted
from sources.secrets import secret_forms

OPENAI_URL = "https://api.openai.com/v1"
DECISIONS_LIMIT = 400  # predicates that one call of the decisions endpoint takes

_ABOVE_ZERO = (
    *("timeout", "concurrency", "requests_per_minute", "tokens_per_minute", "image_size", "frames"),
    *("max_output_tokens", "labels_per_request", "attempts", "asks", "batch_questions"),
)

Detail = Literal["auto", "low", "high"]
Output = Literal["auto", "decisions", "schema", "json", "text"]


@dataclass(frozen=True, slots=True)
class OpenAIConfig:
    model: str
    base_url: str | None = None  # None is OpenAI itself
    api_key: SecretStr = field(default=SecretStr(""), repr=False)
    timeout: float = 120.0  # seconds for one request
    concurrency: int = 16  # requests in flight at once
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    image_size: int = 512  # pixels of the longer side of a picture that is sent
    detail: Detail = "auto"
    frames: int = 4  # of a moving picture
    temperature: float | None = None  # None is the server's own
    reasoning_effort: str | None = None
    max_output_tokens: int | None = None  # of one reply; None fits it to the question
    output: Output = "auto"  # the best that the server is found to do, or one of them
    grouping: Grouping = "auto"  # which labels share a request
    labels_per_request: int = 20
    attempts: int = 6  # at one request, while the server fails
    retry_delay: float = 0.5  # seconds before the second attempt; it doubles from there
    asks: int = 4  # paid replies for one question, while they cannot be used
    longest_wait: float = 120.0  # seconds that a server may ask us to wait
    provider_batch: bool = False
    batch_questions: int = 20_000  # labels in one batch
    batch_wait: float = 900.0  # seconds to wait for a batch before the run ends and is to be run again
    batch_poll: float = 20.0
    price: Price | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_words(self)
        for name in _ABOVE_ZERO:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise OracleError(f"{name} of openai:{self.model} is {value!r}: give a number above 0")
        if self.labels_per_request > DECISIONS_LIMIT:
            raise OracleError(f"labels_per_request of openai:{self.model} is above {DECISIONS_LIMIT}: give less")

    @property
    def refusals(self) -> int:
        """How often a question must be declined to be recorded as refused: some refusals are random."""
        return max(1, self.asks // 2)

    @property
    def url(self) -> str:
        return self.base_url or OPENAI_URL

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be redacted from everything that the server sends."""
        return secret_forms(self.api_key.get_secret_value(), self.url)

    @property
    def host(self) -> str:
        """The server for messages, without a password that its address may hold."""
        parts = urlsplit(self.url)
        return parts.hostname + (f":{parts.port}" if parts.port else "") if parts.hostname else self.url

    @property
    def price_table(self) -> Mapping[str, Price]:
        return {self.model: self.price} if self.price is not None else self.prices


def _check_words(config: OpenAIConfig) -> None:
    if not config.model.strip():
        raise OracleError("openai: names no model: say which, as in openai:gpt-4o-mini")
    try:
        parts = urlsplit(config.url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise OracleError(f"base URL {quoted(config.url)} is not an http address: give one such as {OPENAI_URL}")
    for name, allowed in (("detail", Detail), ("output", Output), ("grouping", Grouping)):
        if getattr(config, name) not in get_args(allowed):
            choices = ", ".join(get_args(allowed))
            raise OracleError(f"{name} of openai:{config.model} is {getattr(config, name)!r}: choose from {choices}")
