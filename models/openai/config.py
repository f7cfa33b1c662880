"""How to reach an OpenAI-compatible server and how to ask it. Nothing is read from the environment."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from pydantic import SecretStr

from twothirds.models.openai.grouping import MANY_LABELS, Grouping
from twothirds.models.oracle import OracleError, digest_of
from twothirds.models.prices import Price
from twothirds.models.prompting import Brief, Listing, counts_tiles
from twothirds.sources import quoted, secret_forms

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_HOST = "api.openai.com"
USUAL_PORTS = {"http": 80, "https": 443}
SERVED_BY_CHARS = 100
YES_FROM = 0.5
DECISIONS_LIMIT = 400  # predicates that one call of the decisions endpoint takes

_ABOVE_ZERO = (
    *("timeout", "concurrency", "requests_per_minute", "tokens_per_minute", "image_size", "frames"),
    *("max_output_tokens", "labels_per_request", "attempts", "asks", "batch_questions"),
)

Detail = Literal["auto", "low", "high"]
Sheet = Literal["auto", "off"]
Output = Literal["auto", "decisions", "schema", "json", "text"]


@dataclass(frozen=True, slots=True)
class OpenAIConfig:
    model: str
    base_url: Annotated[str | None, "address of the server (default: OpenAI, or OPENAI_BASE_URL)"] = None
    api_key: SecretStr = field(default=SecretStr(""), repr=False)
    timeout: Annotated[float | None, "seconds for one request (default: 120, and more where a server is slow)"] = None
    concurrency: Annotated[int, "requests in flight at once"] = 16
    requests_per_minute: Annotated[int | None, "limit of your account"] = None
    tokens_per_minute: Annotated[int | None, "limit of your account"] = None
    image_size: Annotated[int, "pixels of the longer side of a picture that is sent"] = 512
    detail: Annotated[Detail, "resolution at which the server looks at a picture"] = "auto"
    sheet: Annotated[
        Sheet, "a question's small pictures on one sheet, where the model counts tiles and that is cheaper"
    ] = "auto"
    frames: Annotated[int, "pictures sent of a film or an animation"] = 4
    temperature: Annotated[float | None, "of the replies; left out where the server refuses it"] = 0.0
    reasoning_effort: Annotated[str | None, "how long a model thinks, in the server's words"] = None
    logprobs: Annotated[bool, "ask for the probabilities of labels, where the server tells those of its tokens"] = False
    yes_from: Annotated[float, "probability from which a label is yes, where the server tells it"] = YES_FROM
    max_output_tokens: Annotated[int | None, "tokens of one reply (default: fits the question)"] = None
    output: Annotated[Output, "form of the replies (auto: the best that the server is found to do)"] = "auto"
    grouping: Annotated[Grouping, "which labels share a request"] = "auto"
    labels_per_request: Annotated[int | None, "labels in one request at most (default: 400)"] = None
    label_reply: Annotated[
        Listing, "how labels that share a request are answered: each, or a list of the names or numbers that hold"
    ] = "each"
    about: Annotated[str, "what the data is and what the features are for, as --about"] = ""
    avoid: Annotated[str, "kinds of features that are not wanted, as --avoid"] = ""
    attempts: Annotated[int, "tries of one request while the server fails"] = 6
    retry_delay: Annotated[float, "seconds before the second attempt; it doubles from there"] = 0.5
    asks: Annotated[int, "paid replies for one question while they cannot be used"] = 4
    longest_wait: Annotated[float, "seconds that a server may ask us to wait"] = 120.0
    provider_batch: Annotated[bool, "send labels through the Batch API"] = False
    batch_questions: Annotated[int, "labels in one batch"] = 20_000
    batch_wait: Annotated[float, "seconds to wait for a batch before the run ends and is to be run again"] = 900.0
    batch_poll: Annotated[float, "seconds between two looks at a batch"] = 20.0
    price: Annotated[Price | None, "USD per million tokens: INPUT,OUTPUT[,CACHED[,CACHE_WRITE]]"] = None
    prices: Annotated[Mapping[str, Price], "JSON file with the prices of models"] = field(default_factory=dict)
    served_by: Annotated[str, "whose answers these are (default: by the address)"] = ""

    def __post_init__(self) -> None:
        _check_words(self)
        for name in _ABOVE_ZERO:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise OracleError(f"{name} of openai:{self.model} is {value!r}: give a number above 0")
        _ = self.brief  # raises where it is too long
        if not 0 < self.yes_from < 1:
            raise OracleError(f"yes_from of openai:{self.model} is {self.yes_from!r}: give a number between 0 and 1")
        if self.most_labels > DECISIONS_LIMIT:
            raise OracleError(f"labels_per_request of openai:{self.model} is above {DECISIONS_LIMIT}: give less")

    @property
    def brief(self) -> Brief:
        return Brief(self.about, self.avoid)

    @property
    def draws_sheets(self) -> bool:
        return self.sheet == "auto" and counts_tiles(self.model)

    @property
    def most_labels(self) -> int:
        """Labels in one request at most."""
        return self.labels_per_request or MANY_LABELS

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
        address = urlsplit(self.url)
        return address.hostname + (f":{address.port}" if address.port else "") if address.hostname else self.url

    @property
    def server(self) -> str:
        """Whose answers these are, for the identity: one name may be another model elsewhere."""
        return self.served_by or _server_of(self.url)


def _server_of(url: str) -> str:
    """Host, the port where it is not the usual one, and eight digits for a path other than /v1; no secret."""
    address = urlsplit(url)
    host = (address.hostname or "").rstrip(".")
    port = "" if address.port in (None, USUAL_PORTS[address.scheme]) else f":{address.port}"
    if address.scheme == "https" and not port and f".{host}".endswith(f".{OPENAI_HOST}"):
        return "openai"
    path = address.path.strip("/").removesuffix("v1").strip("/")
    return f"{_one_name(host)}{port}" + (f"/{digest_of(path)[:8]}" if path else "")


def _one_name(host: str) -> str:
    """This machine has many names."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return "localhost" if address.is_loopback else f"[{address}]" if address.version == 6 else host


def _check_words(config: OpenAIConfig) -> None:
    if not config.model.strip():
        raise OracleError("openai: names no model: say which, as in openai:gpt-4o-mini")
    try:
        address = urlsplit(config.url)
        usable = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise OracleError(f"base URL {quoted(config.url)} is not an http address: give one such as {OPENAI_URL}")
    if not config.served_by.isprintable() or len(config.served_by) > SERVED_BY_CHARS:
        raise OracleError(f"served_by of openai:{config.model} is no name: give up to {SERVED_BY_CHARS} characters")
    words = (("detail", Detail), ("sheet", Sheet), ("output", Output), ("grouping", Grouping), ("label_reply", Listing))
    for name, allowed in words:
        if getattr(config, name) not in get_args(allowed):
            choices = ", ".join(get_args(allowed))
            raise OracleError(f"{name} of openai:{config.model} is {getattr(config, name)!r}: choose from {choices}")
