"""Sums of money, exact, in micro-dollars; and what questions will take, by the rules and by earlier answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

MICRO = 1_000_000
Money = int  # micro-dollars: sums of money are exact


def in_usd(amount: Money, digits: int = 4, *, at_most: bool = False) -> str:
    """The sum in USD for people, an upper bound rounded up. More digits where these would say that it is nothing."""
    while digits < 6 and 0 < amount < 10 ** (6 - digits):
        digits += 2
    step: int = 10 ** (6 - digits)
    steps = -(-amount // step) if at_most else round(amount / step)
    dollars, rest = divmod(steps, 10**digits)
    return f"{dollars}.{rest:0{digits}d} USD"


@dataclass(frozen=True, slots=True)
class Forecast:
    """About what questions will take: requests with the labels grouped, and replies of the usual length."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Money = 0
    most: Money = 0  # what the cost is not expected to exceed
    in_flight: Money = 0  # at most what is reserved at a time

    def __add__(self, other: Forecast) -> Forecast:
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        return Forecast(**sums, in_flight=max(self.in_flight, other.in_flight))

    def times(self, factor: float) -> Forecast:
        return replace(self, **{name: round(getattr(self, name) * factor) for name in _SUMS})


_SUMS = ("requests", "input_tokens", "output_tokens", "cost", "most")


@dataclass(frozen=True, slots=True)
class Measured:
    """What earlier answers of the same model to the same prompts have taken, in tokens; None where there are none."""

    answers: int = 0  # from which this is known
    input_ratio: float = 1.0  # of a request, to what is usual by the rules
    comparison_output: float | None = None
    label_output: float | None = None


NOTHING_MEASURED = Measured()
