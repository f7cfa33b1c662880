"""Sums of money: exact decimals of USD where people write them, micro-dollars wherever they are counted."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Annotated

from pydantic import Field

from flows.errors import UsageError
from models import MICRO, Money

MAX_USD = 10**12
Usd = Annotated[Decimal, Field(gt=0, lt=MAX_USD, decimal_places=6)]  # of a settings model


def micro(amount: Decimal) -> Money:
    """The same sum in micro-dollars."""
    return int((amount * MICRO).to_integral_value(ROUND_HALF_EVEN))


def parse_usd(text: str) -> Decimal:
    """Raises ValueError where the text is not a sum."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("nan")
    if not amount.is_finite() or abs(amount) >= MAX_USD:
        raise ValueError(f"{text!r} is not a sum in USD: give a number such as 2.50")
    return amount


def read_usd(text: str, flag: str) -> Decimal:
    """The sum given with an option; raises UsageError."""
    try:
        return parse_usd(text)
    except ValueError as error:
        raise UsageError(f"{flag} {error}") from None
