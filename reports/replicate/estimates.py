"""Estimates with 95 % confidence intervals, by plain numpy, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Z = 1.959964  # the normal quantile of a two-sided 95 % interval


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{number(self.value)} [{number(self.low)}, {number(self.high)}]"


def proportion(hits: int, runs: int) -> Estimate:
    """A share with Wilson's interval, which is sound at 0 and 1 and for few runs."""
    if runs == 0:
        return Estimate(math.nan, 0.0, 1.0)
    share, z2 = hits / runs, Z * Z
    middle = (share + z2 / (2 * runs)) / (1 + z2 / runs)
    half = Z * math.sqrt(share * (1 - share) / runs + z2 / (4 * runs * runs)) / (1 + z2 / runs)
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == runs else min(1.0, middle + half)
    return Estimate(share, low, high)


def mean(values: Sequence[float]) -> Estimate:
    """A mean with the normal interval of its standard error."""
    average, half = float(np.mean(values)), Z * standard_error(values)
    return Estimate(average, average - half, average + half)


def standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def median(values: Sequence[float]) -> Estimate:
    """A median with the interval between two order statistics, whatever the distribution (infinite values allowed)."""
    ordered = sorted(values)
    count = len(ordered)
    half = Z * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - half))
    high = min(count - 1, math.ceil(count / 2 + half) - 1)
    return Estimate(_middle(ordered), ordered[low], ordered[max(high, low)])


def _middle(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    if len(ordered) % 2 or math.isinf(ordered[half]):
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


def ratio(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """The ratio of two independent means, with the interval of the delta method on its logarithm."""
    top, bottom = float(np.mean(above)), float(np.mean(below))
    if top <= 0 or bottom <= 0:
        return Estimate(math.nan, math.nan, math.nan)
    half = Z * math.hypot(standard_error(above) / top, standard_error(below) / bottom)
    return Estimate(top / bottom, top / bottom * math.exp(-half), top / bottom * math.exp(half))


def number(value: float) -> str:
    """Three or four significant digits, thousands with a comma."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "never"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100 or value == int(value):
        return f"{value:.0f}" if value == int(value) else f"{value:.1f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 0.01:
        return f"{value:.2f}" if size >= 1 else f"{value:.3f}"
    return f"{value:.1e}"


def percent(share: Estimate) -> str:
    low, high = f"{100 * share.low:.1f}", f"{100 * share.high:.1f}"
    return f"{100 * share.value:.1f} % [{low}, {high}]"
