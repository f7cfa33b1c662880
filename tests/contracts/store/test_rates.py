"""Rates that processes share through the store, on both databases."""

from __future__ import annotations

import pytest

from tests.integration.conftest import Clock
from twothirds.store import Rate, Store
from twothirds.store.rates import RECOVERY

NAME = "openai:model@host"


def turns(store: Store, rate: Rate, amounts: list[int]) -> list[float]:
    return [store.rates.reserve(NAME, rate, tokens) for tokens in amounts]


def test_turns_are_evenly_spaced_over_all_who_ask(store: Store) -> None:
    assert turns(store, Rate(requests=60), [0] * 4) == pytest.approx([0, 1, 2, 3])


def test_large_requests_wait_for_their_tokens(store: Store) -> None:
    assert turns(store, Rate(tokens=6000), [100, 300, 100]) == pytest.approx([0, 1, 4])


def test_the_tighter_of_two_limits_counts(store: Store) -> None:
    assert turns(store, Rate(requests=60, tokens=600), [1, 100, 1, 1]) == pytest.approx([0, 1, 11, 12])


def test_time_that_passes_frees_turns_but_saves_none_up(store: Store, clock: Clock) -> None:
    turns(store, Rate(requests=60), [0])
    clock.now += 30
    assert turns(store, Rate(requests=60), [0, 0]) == pytest.approx([0, 1])


def test_a_complaint_pauses_everybody_and_halves_the_pace_for_a_while(store: Store, clock: Clock) -> None:
    turns(store, Rate(requests=60), [0])
    store.rates.pause(NAME, 20)
    store.rates.pause(NAME, 20)  # of a request that was under way at the same time
    assert store.rates.paused_for(NAME) == pytest.approx(20)
    assert store.rates.paused_for("openai:other@host") == 0
    assert turns(store, Rate(requests=60), [0, 0]) == pytest.approx([20, 22])
    clock.now += 20 + RECOVERY
    assert store.rates.paused_for(NAME) == 0
    assert turns(store, Rate(requests=60), [0, 0]) == pytest.approx([0, 1])


def test_complaint_after_complaint_slows_down_to_a_floor(store: Store, clock: Clock) -> None:
    for _ in range(20):
        store.rates.pause(NAME, 1)
        clock.now += 1.0
    first, second = turns(store, Rate(requests=60), [0, 0])
    assert 10 < second - first <= 16
