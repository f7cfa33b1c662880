"""What a failed request means, and how long to back off before the next attempt. No other layer retries.

Fault
├── TransientError the same request may succeed a moment later
│   └── TimedOut   no reply came in time
├── TooLong        these questions do not fit into one request
└── Declined       the server will not process these questions
OracleUnavailable
└── Unsupported    the server does not know a parameter, an endpoint or a model"""

from __future__ import annotations

import email.utils
import math
import random
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.oracle import OracleUnavailable, ServerAway
from twothirds.sources import redacted

LONGEST_DELAY = 20.0
RUN_AGAIN = "run again later; what was answered is kept"
DEEPEST = 50  # levels of JSON in a reply
DETAILS_LIMIT = 1_000  # characters of what a server says about an error


@dataclass(frozen=True, slots=True)
class Retry:
    attempts: int
    longest_wait: float
    first_delay: float = 0.5

    def delay(self, attempt: int, asked_for: float | None, dice: random.Random) -> float | None:
        """Seconds until the next attempt after `attempt` failed ones; None to give up.

        A server's Retry-After counts up to `longest_wait`; else the delay doubles, with jitter so that requests that
        failed together are not retried together."""
        if attempt >= self.attempts:
            return None
        if asked_for is not None:
            return asked_for if asked_for <= self.longest_wait else None
        doubled: float = min(self.first_delay * 2 ** (attempt - 1), LONGEST_DELAY)
        return doubled * dice.uniform(0.5, 1.0)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """What Retry-After says, in seconds from now: a number, a date, or OpenAI's own milliseconds."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        moment = email.utils.parsedate_tz(value) if value else None
        ends = email.utils.mktime_tz(moment) if moment is not None else None
    except (ValueError, OverflowError, IndexError, TypeError):  # a date that no calendar has
        return None
    return None if ends is None else max(0.0, ends - (time.time() if now is None else now))


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def is_shallow(data: object) -> bool:
    """Whether JSON is nested no deeper than a reply can be: what is deeper exhausts the stack of whoever reads it."""
    level = [data]
    for _ in range(DEEPEST):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return True
    return False


def _inside(data: object) -> Iterable[object]:
    return data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()


_TOO_LONG = re.compile(
    r"context.?length|maximum context|context window|too many (input )?tokens|prompt is too long|too large"
    r"|reduce the length|exceeds? the (model|available|max)\S*.{0,40}(context|tokens)|at most [1-9]\d* image",
    re.IGNORECASE,
)
_POLICY = re.compile(r"content.?(policy|filter|management)|moderation|safety|usage polic", re.IGNORECASE)
_BAD_IMAGE = re.compile(
    r"(invalid|unsupported|corrupt\w*|could not|cannot|unable to|failed to)\W+(?:\w+\W+){0,5}image"
    r"|image.?(parse|format|type)|invalid_image|image.{0,40}(invalid|corrupt|could not be)",
    re.IGNORECASE,
)
_NO_IMAGES = re.compile(
    r"(not|n['’]t) (support|accept|allow)\w*( \w+){0,3} (image|vision|multimodal)|not a (multimodal|vision)"
    r"|image\w*(?! (format|type))( \w+){0,2} (is|are) (not (supported|accepted|allowed)|only supported)|at most 0 image"
    r"|missing data required for image",
    re.IGNORECASE,
)


class Fault(Exception):
    """One line about one request."""


class TransientError(Fault):
    def __init__(
        self,
        message: str,
        wait: float | None = None,
        *,
        limited: bool = False,
        attempts_cost: int = 1,
        maybe_charged: bool = False,
    ) -> None:
        super().__init__(message)
        self.maybe_charged = maybe_charged  # the server may have answered, and charged
        self.wait = wait  # seconds, from Retry-After
        self.limited = limited  # by a rate limit, which holds for every request
        self.attempts_cost = attempts_cost  # how many attempts it counts for: a time-out for two
        self.is_last = False  # another attempt is not covered by what the request may cost


class TimedOut(TransientError):
    def __init__(self, host: str, seconds: float, *, maybe_charged: bool = True) -> None:
        message = f"{host} did not answer within {seconds:g} s: raise the timeout or run again later"
        super().__init__(message, attempts_cost=2, maybe_charged=maybe_charged)
        self.seconds = seconds


class TooLong(Fault):
    pass


class Declined(Fault):
    pass


class Unsupported(OracleUnavailable):
    """`about` is the server's whole message, to find the parameter that it does not know."""

    def __init__(self, message: str, status: int, details: str) -> None:
        super().__init__(message)
        self.status = status
        self.details = details


def fault_of(error: Exception, config: OpenAIConfig) -> Exception:
    """The fault, or the OracleUnavailable, that an SDK error stands for."""
    import httpx2
    import openai

    if isinstance(error, openai.APITimeoutError):
        seconds = error.request.extensions["timeout"]["read"]
        return TimedOut(config.host, seconds, maybe_charged=not isinstance(error.__cause__, httpx2.ConnectTimeout))
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, config)
    cause = error.__cause__ or error
    reason = one_line(str(cause) or type(cause).__name__, config)
    message = f"{config.host} cannot be reached ({reason}): check that the server runs and the base URL is right"
    return TransientError(message, maybe_charged=not isinstance(cause, httpx2.ConnectError))


def one_line(text: str, config: OpenAIConfig, limit: int = 200) -> str:
    return redacted(" ".join(text.split()), config.secrets)[:limit].rstrip(". ")


def _of_status(error: Any, config: OpenAIConfig) -> Exception:
    status, reason = error.status_code, _reason(error, config)
    is_quota = "insufficient_quota" in (error.code, error.type) or "exceeded your current quota" in reason
    if status == 429 and is_quota:
        return ServerAway(f"the account at {config.host} has no quota left ({reason}): add credit and run again")
    if 300 <= status < 400:
        where = _target(error, config)
        return OracleUnavailable(
            f"{config.host} answers {status} and redirects to {where}, which is not followed: examples go to no "
            "address but the base URL; change it if this is where your server is"
        )
    if status in (408, 409, 425, 429) or (status >= 500 and status != 501):
        limited = status == 429
        remedy = "lower concurrency or set requests_per_minute" if limited else "run again later"
        message = f"{config.host} answers {status} ({reason}): {remedy}; what was answered is kept"
        # A gateway that gave up waiting does not know whether the model has answered.
        charged = status == 408 or (status > 500 and status not in (503, 529))
        return TransientError(message, retry_after(error.response.headers), limited=limited, maybe_charged=charged)
    if status == 401 and not config.api_key.get_secret_value():
        return OracleUnavailable(
            f"{config.host} wants an API key and was sent none: set OPENAI_API_KEY; it goes to OpenAI, to the server "
            f"of OPENAI_BASE_URL and to hosts in TWOTHIRDS_KEY_HOSTS only: add {config.host} there if it may have it"
        )
    if status == 401:
        return OracleUnavailable(f"{config.host} does not accept the API key: set OPENAI_API_KEY to a valid one")
    if status == 403:
        return OracleUnavailable(f"{config.host} does not allow this ({reason}): check what the API key may use")
    return _of_request(error, status, reason, config)


def _of_request(error: Any, status: int, reason: str, config: OpenAIConfig) -> Exception:
    details = " ".join(str(part) for part in (error.code, error.type, error.param, reason) if part)[:DETAILS_LIMIT]
    if status == 413 or _TOO_LONG.search(details):
        return TooLong(f"longer than {config.model} takes in one request")
    if _POLICY.search(details):
        return Declined(f"declined by {config.host}: {reason}")
    if _NO_IMAGES.search(details):
        remedy = "choose a model that accepts images"
        return OracleUnavailable(f"model {config.model!r} does not accept images ({reason}): {remedy}")
    if _BAD_IMAGE.search(details):
        return Declined(f"image not accepted by {config.host}: {reason}")
    if status == 404 and re.search(r"model", details, re.IGNORECASE):
        where = f"its models are listed at {config.host}/v1/models"
        message = f"model {config.model!r} is not known to {config.host}: choose another, {where}"
        return Unsupported(message, status, details)
    if status in (404, 405, 501):
        message = f"{config.host} answers {status} at this address: check the base URL, it often ends in /v1"
        return Unsupported(message, status, details)
    message = f"{config.host} does not accept the request ({reason}): see docs/oracles.md for the options"
    return Unsupported(message, status, details)


def _reason(error: Any, config: OpenAIConfig) -> str:
    body = error.body if isinstance(error.body, dict) else {}
    message = body.get("message") or body.get("detail") or error.message
    return one_line(str(message), config)


def _target(error: Any, config: OpenAIConfig) -> str:
    """Where a redirect points, without what may be secret in it."""
    location = one_line(error.response.headers.get("location") or "nowhere", config)
    scheme, separator, rest = location.split("?")[0].rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"
