"""When a request is sent again after a failure."""

from __future__ import annotations

import random

import pytest

from twothirds.models.openai.errors import Retry, retry_after


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
