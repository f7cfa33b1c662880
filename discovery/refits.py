"""Intervals of what depends on a fit to all examples: the fit varies with the examples too, so each resample is fitted.

They are few, since they take time: the interval comes from their standard deviation (Efron and Tibshirani 1993)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from discovery.bootstrap import NOTHING_VARIES, Floats
from discovery.estimates import Estimate, wilson

REFITS = 40
T = 2.022691  # Student's quantile of a two-sided 95 % interval, one degree of freedom less than fits
Fit = Callable[[NDArray[np.intp]], Floats]  # rows of examples → for each feature the share that is right, NaN if none


def refitted(values: Floats, fit: Fit, n: int, rng: np.random.Generator) -> tuple[list[Estimate], Estimate]:
    """Per feature, and the mean over the features of which the share is defined; `values` are those of all examples."""
    drawn = np.stack([fit(rng.integers(0, n, n)) for _ in range(REFITS)])
    drawn = np.where(np.isnan(drawn), values, drawn)  # a draw that leaves a feature without a value keeps its own
    each = [_estimate(value, draws, n) for value, draws in zip(values.tolist(), drawn.T, strict=True)]
    defined = ~np.isnan(values)
    return each, _estimate(float(values[defined].mean()), drawn[:, defined].mean(1), n * int(defined.sum()))


def _estimate(value: float, drawn: Floats, trials: int) -> Estimate:
    if np.isnan(value):
        return Estimate.undefined("")
    deviation = float(drawn.std(ddof=1))
    if deviation == 0:
        return Estimate(value, *wilson(value * trials, trials)) if trials else Estimate(value, reason=NOTHING_VARIES)
    return Estimate(value, max(0.0, value - T * deviation), min(1.0, value + T * deviation))
