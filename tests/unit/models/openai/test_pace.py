"""How fast requests go out, and when they come back after a failure."""

from __future__ import annotations

import asyncio
import random

import pytest

from models.openai.errors import Retry, retry_after
from models.rate_limit import RateLimit


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def sent_at(limit: RateLimit, clock: Clock, tokens: list[int]) -> list[float]:
    async def send() -> list[float]:
        moments = []
        for amount in tokens:
            await limit.admit(amount)
            moments.append(clock.now - 1000.0)
        return moments

    return asyncio.run(send())


def most_in_a_minute(moments: list[float], amounts: list[int]) -> int:
    return max(sum(a for m, a in zip(moments, amounts, strict=True) if start <= m < start + 60) for start in moments)


def test_no_minute_holds_more_requests_than_allowed() -> None:
    clock = Clock()
    moments = sent_at(RateLimit(10, None, clock=clock, sleep=clock.sleep), clock, [1] * 45)
    assert most_in_a_minute(moments, [1] * 45) == 10
    assert moments[-1] == pytest.approx(240, abs=1)


def test_no_minute_holds_more_tokens_than_allowed() -> None:
    clock, amounts = Clock(), [random.Random(3).randint(1, 400) for _ in range(60)]
    moments = sent_at(RateLimit(None, 1000, clock=clock, sleep=clock.sleep), clock, amounts)
    assert most_in_a_minute(moments, amounts) <= 1000


def test_a_request_larger_than_a_minute_allows_still_goes_alone() -> None:
    clock = Clock()
    moments = sent_at(RateLimit(None, 100, clock=clock, sleep=clock.sleep), clock, [50, 500, 50])
    assert moments == pytest.approx([0, 60, 120], abs=1)


def test_a_pause_holds_back_everything() -> None:
    clock = Clock()
    limit = RateLimit(None, None, clock=clock, sleep=clock.sleep)
    limit.pause(7)
    limit.pause(3)
    assert sent_at(limit, clock, [1, 1]) == pytest.approx([7, 7])


def test_without_limits_nothing_waits() -> None:
    clock = Clock()
    assert sent_at(RateLimit(None, None, clock=clock, sleep=clock.sleep), clock, [1] * 1000)[-1] == 0


def test_delays_double_within_their_range_and_end_with_the_attempts() -> None:
    retry, dice = Retry(attempts=5, longest_wait=60), random.Random(0)
    for attempt, most in ((1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0)):
        delays = [retry.delay(attempt, None, dice) for _ in range(50)]
        assert all(delay is not None and most / 2 <= delay <= most for delay in delays)
    assert retry.delay(5, None, dice) is None


def test_a_server_that_names_a_time_is_obeyed_up_to_the_longest_wait() -> None:
    retry, dice = Retry(attempts=5, longest_wait=60), random.Random(0)
    assert retry.delay(1, 42.0, dice) == 42.0
    assert retry.delay(1, 61.0, dice) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=100.0) == seconds
