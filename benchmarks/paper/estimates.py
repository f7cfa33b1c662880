"""Estimates with 95 % confidence intervals, by plain numpy, and how they are written."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

from twothirds.discovery.statistics import Z_95, Interval, wilson


def proportion(hits: int, runs: int) -> Interval:
    """A share with Wilson's interval."""
    return Interval(hits / runs, *wilson(hits, runs)) if runs else Interval(math.nan, 0.0, 1.0)


def mean(values: Sequence[float]) -> Interval:
    """A mean with the normal interval of its standard error."""
    average, half = float(np.mean(values)), Z_95 * standard_error(values)
    return Interval(average, average - half, average + half)


def standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def median(values: Sequence[float]) -> Interval:
    """A median with the interval between two order statistics, whatever the distribution (infinite values allowed)."""
    ordered = sorted(values)
    count = len(ordered)
    half = Z_95 * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - half))
    high = min(count - 1, math.ceil(count / 2 + half) - 1)
    return Interval(statistics.median(ordered), ordered[low], ordered[max(high, low)])


def ratio(above: Sequence[float], below: Sequence[float]) -> Interval:
    """The ratio of two independent means, with the interval of the delta method on its logarithm."""
    top, bottom = float(np.mean(above)), float(np.mean(below))
    if top <= 0 or bottom <= 0:
        return Interval(math.nan, math.nan, math.nan)
    half = Z_95 * math.hypot(standard_error(above) / top, standard_error(below) / bottom)
    return Interval(top / bottom, top / bottom * math.exp(-half), top / bottom * math.exp(half))


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


def with_interval(estimate: Interval) -> str:
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def percent(share: Interval) -> str:
    low, high = f"{100 * share.low:.1f}", f"{100 * share.high:.1f}"
    return f"{100 * share.value:.1f} % [{low}, {high}]"
