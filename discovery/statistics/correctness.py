"""How right labels and probabilities are, against labels that are taken for true.

As in `agreement.py`, every statistic is a function of sums over examples. G. W. Brier 1950 (score); Naeini,
Cooper and M. Hauskrecht 2015 (calibration error over bins)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery.questions import UNKNOWN, Labels
from discovery.statistics.agreement import Floats, Statistic, all_counted, ratio, raw_agreement

BINS = 10
UNSCORED = "it gave no label that is known to be right or wrong"


def precision(totals: Floats) -> Floats:
    """Totals are those of `pair_columns(said, true)`."""
    return ratio(totals[..., 0], totals[..., 0] + totals[..., 1])


def recall(totals: Floats) -> Floats:
    return ratio(totals[..., 0], totals[..., 0] + totals[..., 2])


def specificity(totals: Floats) -> Floats:
    return ratio(totals[..., 3], totals[..., 3] + totals[..., 1])


OF_CORRECTNESS = (
    Statistic("accuracy", raw_agreement, UNSCORED, UNSCORED, all_counted),
    Statistic("precision", precision, "it says yes of no example", UNSCORED, lambda sums: sums[..., 0] + sums[..., 1]),
    Statistic("recall", recall, "no example is truly yes", UNSCORED, lambda sums: sums[..., 0] + sums[..., 2]),
    Statistic("specificity", specificity, "no example is truly no", UNSCORED, lambda sums: sums[..., 3] + sums[..., 1]),
)


def brier_columns(probability: Floats, true: Labels) -> Floats:
    """The squared error of an example's probability, and 1; nothing where either is unknown."""
    known = ~np.isnan(probability) & (true != UNKNOWN)
    error = np.where(known, (np.where(known, probability, 0.0) - true) ** 2, 0.0)
    return np.stack([error, known.astype(np.float64)], axis=-1)


NO_CHANCES = "it gives no probabilities"
BRIER = Statistic("Brier score", lambda totals: ratio(totals[..., 0], totals[..., 1]), NO_CHANCES, NO_CHANCES)


def error_columns(said: NDArray[np.int8], true: Labels) -> Floats:
    """Of an example's votes, which are the last axis: pairs that are both wrong, pairs whose first is, and pairs."""
    cast = (said != UNKNOWN) & (true[..., None] != UNKNOWN)
    votes = cast.sum(-1).astype(np.float64)
    wrong = (cast & (said != true[..., None])).sum(-1).astype(np.float64)
    return np.stack([wrong * (wrong - 1), wrong * (votes - 1), votes * (votes - 1)], axis=-1)


def error_correlation(totals: Floats) -> Floats:
    """Of two votes on one label: 0 where they err independently, 1 where a second vote repeats the first."""
    both, first = ratio(totals[..., 0], totals[..., 2]), ratio(totals[..., 1], totals[..., 2])
    return ratio(both - first**2, first * (1 - first))


NO_ERRORS = "its votes are never, or always, wrong"
ERRORS_ALIKE = Statistic("errors in common", error_correlation, NO_ERRORS, "no label has two votes", lowest=-1.0)


@dataclass(frozen=True, slots=True)
class Bin:
    low: float
    high: float
    examples: int
    said: float  # mean probability
    true: float  # share of yes


@dataclass(frozen=True, slots=True)
class Calibration:
    bins: tuple[Bin, ...]  # those that hold examples
    error: float | None  # mean distance of what was said from what was true, weighted by examples
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        bins = [[one.low, one.high, one.examples, one.said, one.true] for one in self.bins]
        return {"error": self.error, "reason": self.reason, "bins": bins}


def calibration(probability: NDArray[np.float64], true: Labels) -> Calibration:
    """Ten bins of equal width; a probability on the edge of two belongs to the upper one."""
    known = ~np.isnan(probability) & (true != UNKNOWN)
    if not known.any():
        return Calibration((), None, "it gives no probabilities of examples whose label is known")
    said, is_true = probability[known], true[known].astype(np.float64)
    place = np.minimum((said * BINS).astype(np.int64), BINS - 1)
    counts = np.bincount(place, minlength=BINS)
    sums, trues = (np.bincount(place, weights=values, minlength=BINS) for values in (said, is_true))
    bins = tuple(
        Bin(
            one / BINS,
            (one + 1) / BINS,
            int(counts[one]),
            float(sums[one] / counts[one]),
            float(trues[one] / counts[one]),
        )
        for one in np.flatnonzero(counts).tolist()
    )
    error = sum(one.examples * abs(one.said - one.true) for one in bins) / len(said)
    return Calibration(bins, float(error))
