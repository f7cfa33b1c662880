"""Sums for people: what may be spent is never printed smaller than it is, and never as nothing."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twothirds.flows.settings import micro_of
from twothirds.models.oracle import MICRO, in_usd


def read(text: str) -> Decimal:
    assert text.endswith(" USD")
    return Decimal(text.removesuffix(" USD"))


@given(st.integers(0, 10**15), st.sampled_from([2, 4, 6]))
def test_an_upper_bound_is_printed_as_one(amount: int, digits: int) -> None:
    exact, shown = Decimal(amount) / MICRO, read(in_usd(amount, digits, at_most=True))
    assert exact <= shown <= exact + Decimal("0.01")
    assert (shown == 0) is (amount == 0)
    assert (read(in_usd(amount, digits)) == 0) is (amount == 0)
    assert abs(read(in_usd(amount, digits)) - exact) <= Decimal("0.005")


@pytest.mark.parametrize(
    ("amount", "digits", "at_most", "shown"),
    [
        (0, 2, True, "0.00 USD"),
        (1, 2, True, "0.000001 USD"),
        (357, 2, True, "0.0004 USD"),
        (357, 4, False, "0.0004 USD"),
        (349, 4, False, "0.0003 USD"),
        (2_010_000, 2, True, "2.01 USD"),
        (2_010_001, 2, True, "2.02 USD"),
        (360_000, 2, True, "0.36 USD"),
        (12_345_678, 4, False, "12.3457 USD"),
    ],
)
def test_digits(amount: int, digits: int, at_most: bool, shown: str) -> None:
    assert in_usd(amount, digits, at_most=at_most) == shown


@pytest.mark.parametrize("written", ["2.01", 2.01])
def test_a_budget_in_kept_settings_is_read_to_the_last_micro_dollar(written: float | str) -> None:
    assert micro_of(written) == 2_010_000


@given(st.integers(1, 10**12))
def test_what_was_written_to_json_is_read_as_it_was(amount: int) -> None:
    assert micro_of(amount / MICRO) == amount
