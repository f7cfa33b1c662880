"""Sums of money: exact, in micro-dollars."""

from __future__ import annotations

MICRO = 1_000_000
Money = int  # micro-dollars: sums of money are exact


def in_usd(amount: Money, digits: int = 4, *, at_most: bool = False) -> str:
    """The sum in USD for people, an upper bound rounded up. More digits where these would say that it is nothing."""
    while digits < 6 and 0 < amount < 10 ** (6 - digits):
        digits += 2
    step: int = 10 ** (6 - digits)
    steps = -(-amount // step) if at_most else round(amount / step)
    whole, rest = divmod(steps, 10**digits)
    return f"{whole}.{rest:0{digits}d} USD"
