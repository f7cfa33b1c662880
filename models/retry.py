"""How long to wait before a request is tried again. No other layer retries: the SDK's own is turned off."""

from __future__ import annotations

import email.utils
import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass

LONGEST_DELAY = 20.0


@dataclass(frozen=True, slots=True)
class Retry:
    attempts: int
    longest_wait: float
    first_delay: float = 0.5

    def delay(self, attempt: int, asked_for: float | None, dice: random.Random) -> float | None:
        """Seconds until the next try after the failed one numbered `attempt` (from 1); None to give up.

        A server that names a time is believed up to `longest_wait`; else the delay doubles, with chance in it so that
        requests that failed together do not come back together."""
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
    moment = email.utils.parsedate_tz(value) if value else None
    if moment is None:
        return None
    return max(0.0, email.utils.mktime_tz(moment) - (time.time() if now is None else now))


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
