"""Estimates with 95 % intervals: Wilson's for shares, the percentile bootstrap (Efron 1979) for other statistics.

Examples are resampled with replacement, all features of an example together, because its labels are not independent.
A resample is a vector of weights, so that the statistics of all resamples come from one matrix product. Where a
statistic depends on a fit to all examples, each resample is fitted too; these are few, since fits take time, and the
interval comes from their standard deviation (Efron and Tibshirani 1993)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.statistics.agreement import Statistic, ratio

Z_95 = 1.959963984540054  # the normal quantile of a two-sided 95 % interval


@dataclass(frozen=True, slots=True)
class Interval:
    """A value that is always defined, with its 95 % interval."""

    value: float
    low: float
    high: float


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
    share, z2 = successes / trials, Z_95 * Z_95
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z_95 / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    return low, 1.0 if successes == trials else min(1.0, middle + half)


def share(successes: int, trials: int, why_not: str = "nothing was labelled") -> Estimate:
    if trials == 0:
        return Estimate.undefined(why_not)
    return Estimate(successes / trials, *wilson(successes, trials))


Floats = NDArray[np.float64]
DRAWS = 1_000
BATCH_BYTES = 64_000_000
ENOUGH_DEFINED = 0.95  # of the draws must define the statistic for an interval
LIMITS = (2.5, 97.5)
NOTHING_VARIES = "no interval: no two resamples differ"
SELDOM_DEFINED = "no interval: its value is not defined in {:.0f}\N{NO-BREAK SPACE}% of the resamples"


class Resamples:
    """Draws of `n` examples, the same for every statistic that is asked for."""

    def __init__(self, n: int, seed: int | Sequence[int], draws: int = DRAWS) -> None:
        self.n, self.draws = n, draws
        self._seed = seed
        self._at_once = max(1, BATCH_BYTES // (8 * max(n, 1)))
        self._kept: list[Floats] = []

    def totals(self, columns: Floats) -> Floats:
        """Of each draw: draws × the axes of `columns` after the first, which is the examples."""
        flat = columns.reshape(self.n, -1)
        return np.concatenate([weights @ flat for weights in self._weights()]).reshape(self.draws, *columns.shape[1:])

    def _weights(self) -> Iterator[Floats]:
        """How often each example is drawn; kept where that takes little room."""
        if self._kept:
            yield from self._kept
            return
        rng = np.random.default_rng(self._seed)
        for start in range(0, self.draws, self._at_once):
            size = min(self._at_once, self.draws - start)
            weights = rng.multinomial(self.n, np.full(self.n, 1 / self.n), size=size).astype(np.float64)
            if self._at_once >= self.draws:
                self._kept.append(weights)
            yield weights


def estimate(statistic: Statistic, totals: Floats, drawn: Floats) -> Estimate:
    """Of one feature: its totals, and draws × totals."""
    value = float(statistic.of(totals))
    if np.isnan(value):
        return Estimate.undefined(statistic.why_not if totals.any() else statistic.empty)
    resampled = statistic.of(drawn)
    interval = _interval(resampled) or _of_a_share(statistic, value, totals)
    return _with_interval(value, interval, why_not=_why_no_interval(resampled))


def mean_over_features(statistic: Statistic, totals: Floats, drawn: Floats) -> Estimate:
    """Of the features of which it is defined: `totals` are features × columns, `drawn` draws × features × columns.

    The mean of a draw is that of the features which the draw defines: others have no value in it, and the overall
    value in its place would make the interval too short. Such a mean is biased, towards the frequent features and
    because the draws of a rare one are skewed. So the interval spans the percentile interval and the same interval
    after its bias, the mean of the draws less the value, is taken off twice (Efron and Tibshirani 1993, chapter 10).
    """
    values = statistic.of(totals)
    defined = ~np.isnan(values)
    if not defined.any():
        return Estimate.undefined(statistic.why_not if totals.any() else statistic.empty)
    value = float(values[defined].mean())
    means = _mean_of_defined(statistic.of(drawn[:, defined]))
    interval = _interval(means)
    if interval:
        shift = 2 * (float(np.nanmean(means)) - value)
        low, high = min(interval[0], interval[0] - shift), max(interval[1], interval[1] - shift)
        interval = max(low, statistic.lowest), min(high, 1.0)
    else:
        interval = _of_a_share(statistic, value, totals[defined].sum(0))
    left_out = int((~defined).sum())
    counted = int(defined.sum())
    note = f"the mean of {counted} feature{'s' * (counted > 1)}; of {left_out} it is not defined" if left_out else ""
    why_not = "; ".join(filter(None, (_why_no_interval(means), note)))
    return _with_interval(value, interval, note, why_not=why_not)


def _with_interval(value: float, interval: tuple[float, float] | None, note: str = "", *, why_not: str) -> Estimate:
    if interval is None:
        return Estimate(value, reason=why_not)
    low, high = interval
    return Estimate(value, low, high, reason=note)


def _mean_of_defined(values: Floats) -> Floats:
    """Over the last axis, NaN where no value is defined."""
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0.0).sum(-1), defined.sum(-1).astype(np.float64))


def _why_no_interval(resampled: Floats) -> str:
    undefined = float(np.isnan(resampled).mean())
    return SELDOM_DEFINED.format(100 * undefined) if undefined > 1 - ENOUGH_DEFINED else NOTHING_VARIES


def _of_a_share(statistic: Statistic, value: float, totals: Floats) -> tuple[float, float] | None:
    if statistic.trials is None:
        return None
    trials = float(totals @ np.array(statistic.trials))
    return wilson(value * trials, trials) if trials else None


def estimates(
    statistics: Sequence[Statistic], columns: Floats, resamples: Resamples
) -> tuple[list[dict[str, Estimate]], dict[str, Estimate]]:
    """Per feature and overall; `columns` are examples × features × columns."""
    totals = columns.sum(0)
    if not len(columns) or not columns.shape[1]:
        nothing = {statistic.name: Estimate.undefined("there is nothing to compare") for statistic in statistics}
        return [dict(nothing) for _ in range(columns.shape[1])], nothing
    drawn = resamples.totals(columns)
    by_feature = [
        {statistic.name: estimate(statistic, totals[feature], drawn[:, feature]) for statistic in statistics}
        for feature in range(columns.shape[1])
    ]
    return by_feature, {statistic.name: mean_over_features(statistic, totals, drawn) for statistic in statistics}


def _interval(values: Floats) -> tuple[float, float] | None:
    """None where too few draws define the statistic, or where none differs from another."""
    defined = values[~np.isnan(values)]
    if len(defined) < ENOUGH_DEFINED * len(values) or not len(defined) or np.ptp(defined) == 0:
        return None
    low, high = np.percentile(defined, LIMITS)
    return float(low), float(high)


REFITS = 40
T = 2.022691  # Student's quantile of a two-sided 95 % interval, one degree of freedom less than fits
Fit = Callable[[NDArray[np.intp]], Floats]  # rows of examples → for each feature the share that is right, NaN if none


def refitted(values: Floats, fit: Fit, n: int, rng: np.random.Generator) -> tuple[list[Estimate], Estimate]:
    """Per feature, and the mean over the features of which the share is defined; `values` are those of all examples."""
    drawn = np.stack([fit(rng.integers(0, n, n)) for _ in range(REFITS)])
    by_feature = [_estimate(value, draws, n) for value, draws in zip(values.tolist(), drawn.T, strict=True)]
    defined = ~np.isnan(values)
    means = _mean_of_defined(drawn[:, defined])
    return by_feature, _estimate(float(values[defined].mean()), means, n * int(defined.sum()))


def _estimate(value: float, drawn: Floats, trials: int) -> Estimate:
    if np.isnan(value):
        return Estimate.undefined("")
    known = drawn[~np.isnan(drawn)]
    if len(known) < ENOUGH_DEFINED * len(drawn):
        return Estimate(value, reason=_why_no_interval(drawn))
    deviation = float(known.std(ddof=1))
    if deviation == 0:
        return Estimate(value, *wilson(value * trials, trials)) if trials else Estimate(value, reason=NOTHING_VARIES)
    return Estimate(value, max(0.0, value - T * deviation), min(1.0, value + T * deviation))
