"""Two sets of features of the same examples, matched by what they select.

H. W. Kuhn 1955 (optimal assignment); M. G. Kendall 1938 (rank correlation, here tau-b)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.statistics.intervals import Estimate

Floats = NDArray[np.float64]
ALIKE = 0.7  # correlation from which two features count as the same finding: half of the variance is shared
FEWEST_MATCHES = 3  # for an order to be compared


@dataclass(frozen=True, slots=True)
class Match:
    a: int
    b: int
    correlation: float  # negative where one is the complement of the other


def best_matches(correlations: Floats, alike: float = ALIKE) -> list[Match]:
    """Features of one set × features of the other: the assignment with the largest sum of squared correlations, weak
    pairs left out. A complement selects the same examples, so only the size of a correlation counts."""
    from scipy.optimize import linear_sum_assignment

    if not correlations.size:
        return []
    rows, columns = linear_sum_assignment(correlations**2, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [Match(a, b, float(correlations[a, b])) for a, b in pairs if abs(correlations[a, b]) >= alike]


def order_agreement(matches: list[Match]) -> Estimate:
    """Kendall's tau of the orders in which the two sets name what both have."""
    from scipy.stats import kendalltau

    if len(matches) < FEWEST_MATCHES:
        return Estimate.undefined(f"{len(matches)} features are in both, and it takes {FEWEST_MATCHES}")
    return Estimate(float(kendalltau([match.a for match in matches], [match.b for match in matches]).statistic))


def distinct_selections(correlations: Floats, same: float) -> int:
    """How many different things a set selects: features that correlate by `same` or more, directly or through others,
    are one."""
    left = set(range(len(correlations)))
    groups = 0
    while left:
        groups += 1
        waiting = [left.pop()]
        while waiting:
            alike = {other for other in left if abs(correlations[waiting[-1], other]) >= same}
            waiting.pop()
            left -= alike
            waiting.extend(alike)
    return groups
