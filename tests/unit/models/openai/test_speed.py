"""Requests to a slow server are sized by the time that they will take."""

from __future__ import annotations

import asyncio

import pytest

from twothirds.models.openai.pace import FIRST_LABELS, FIRST_WIDTH, REQUEST_SECONDS, TIMEOUT, Pace
from twothirds.models.prices import Tokens


def replied(pace: Pace, written: int, rate: float, labels: int = 0, given: int = 0) -> None:
    pace.note(Tokens(given, written), 0.5 + (written + given / 8) / rate, labels)


def test_a_server_whose_money_is_nothing_gets_little_until_it_has_replied() -> None:
    free, paid = Pace(16, is_free=True), Pace(16, is_free=False)
    assert free.most_labels == FIRST_LABELS
    assert free.width == FIRST_WIDTH
    assert paid.most_labels is None
    assert paid.width == 16
    free.note(Tokens(40, 10), 1.0)
    assert free.most_labels == FIRST_LABELS, "so short a reply says nothing"
    crawling = Pace(16, is_free=True)
    crawling.note(Tokens(40, 10), 15.5)
    assert crawling.most_labels == 2
    free.note(Tokens(400, 80), 0.3)
    assert free.most_labels is None
    assert free.width == 16


@pytest.mark.parametrize("rate", [1.0, 5.0, 20.0])
def test_labels_are_so_many_that_a_request_takes_about_as_long_as_it_should(rate: float) -> None:
    pace = Pace(16, is_free=True)
    per_label, beside = 8, 60
    for _ in range(8):
        most = pace.most_labels
        assert most is not None
        replied(pace, beside + per_label * most, rate, most)
    seconds = (beside + per_label * (pace.most_labels or 0)) / rate
    assert seconds == pytest.approx(REQUEST_SECONDS, rel=0.25) or pace.most_labels == 1


def test_a_paid_server_is_slow_only_if_a_reply_takes_long() -> None:
    pace = Pace(16, is_free=False)
    replied(pace, 60, 20)
    assert pace.most_labels is None
    replied(pace, 2000, 20, 200)
    assert pace.most_labels == 80
    assert pace.width == 16


async def busy(pace: Pace, slots: int, workers: int = 20) -> int:
    """How many requests are in flight at a server that works on so many at a time, after a while."""
    now = 0

    async def work() -> None:
        nonlocal now
        for _ in range(60):
            async with pace.slot():
                now += 1
                for _ in range(3):
                    await asyncio.sleep(0)
                replied(pace, 200, 20 * min(1, slots / now))
                now -= 1

    await asyncio.gather(*(work() for _ in range(workers)))
    return pace.width


def test_fewer_are_sent_at_a_time_where_they_wait_for_each_other() -> None:
    assert asyncio.run(busy(Pace(16, is_free=True), slots=16)) == 16
    assert asyncio.run(busy(Pace(16, is_free=True), slots=2)) <= 4
    assert asyncio.run(busy(Pace(16, is_free=True), slots=16, workers=1)) == 2, "one at a time tells nothing of many"


def test_the_time_out_follows_the_speed_and_a_time_out_is_a_measure() -> None:
    pace, request = Pace(16, is_free=True), Tokens(1600, 300)
    assert pace.timeout(request) == TIMEOUT
    replied(pace, 100, 2.0)
    assert pace.timeout(request) == pytest.approx(500 / 2.0)
    unknown = Pace(16, is_free=True)
    unknown.note_timeout(request, 120.0)
    assert unknown.timeout(request) == pytest.approx(240.0)
    assert unknown.is_alive
    unknown.note_timeout(request, 240.0)
    unknown.note_timeout(request, 480.0)
    assert not unknown.is_alive


def test_slots_follow_the_width() -> None:
    async def most_at_once(pace: Pace) -> int:
        now = most = 0

        async def request() -> None:
            nonlocal now, most
            async with pace.slot():
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1

        await asyncio.gather(*(request() for _ in range(12)))
        return most

    assert asyncio.run(most_at_once(Pace(16, is_free=True))) == 1
    assert asyncio.run(most_at_once(Pace(5, is_free=False))) == 5
