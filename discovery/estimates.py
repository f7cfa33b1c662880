"""A number with its interval, or the reason why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

Z = 1.959963984540054  # the normal quantile of a two-sided 95 % interval


@dataclass(frozen=True, slots=True)
class Estimate:
    """`value` is None where it is not defined, `low` and `high` where no interval is; `reason` then says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""

    @classmethod
    def undefined(cls, reason: str) -> Estimate:
        return cls(None, reason=reason)

    @property
    def defined(self) -> bool:
        return self.value is not None

    def to_json(self) -> dict[str, Any]:
        return {"value": self.value, "low": self.low, "high": self.high, "reason": self.reason}


def wilson(successes: float, trials: float) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927), sound at 0 and 1 and for few trials."""
    share, z2 = successes / trials, Z * Z
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    return max(0.0, middle - half), min(1.0, middle + half)


def share(successes: int, trials: int, why_not: str = "nothing was labelled") -> Estimate:
    if trials == 0:
        return Estimate.undefined(why_not)
    return Estimate(successes / trials, *wilson(successes, trials))
