"""Agreement on yes/no labels. Every statistic is a function of sums over examples, so that one matrix product gives it
for all resamples of a bootstrap.

An example's `columns` are what it adds to the sums; `totals` are such sums, with any axes before the last. A statistic
is NaN where it is not defined, and `Statistic.why_not` says why.

Cohen 1960 (kappa); Fleiss 1971; Krippendorff 2011, "Computing Krippendorff's alpha-reliability" (nominal data, missing
values allowed); Cicchetti and Feinstein 1990 (positive and negative agreement); Byrt, Bishop and Carlin 1993
(prevalence and bias)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery.questions import Labels

Floats = NDArray[np.float64]
Votes = NDArray[np.int8]  # examples × workers: 1, 0 or UNKNOWN


@dataclass(frozen=True)
class Statistic:
    name: str
    of: Callable[[Floats], Floats]
    why_not: str
    empty: str  # why not, where nothing was counted at all
    trials: Callable[[Floats], Floats] | None = None  # of a share: where no resample differs, Wilson's interval holds
    lowest: float = 0.0  # value it can have; the highest is 1


def pair_columns(a: Labels, b: Labels) -> Floats:
    """Both yes; only a; only b; both no. Nothing where either is unknown."""
    return np.stack([(a == x) & (b == y) for x, y in ((1, 1), (1, 0), (0, 1), (0, 0))], axis=-1).astype(np.float64)


def vote_columns(votes: Votes) -> Floats:
    """Of an example with two votes or more: agreeing pairs among all pairs, 1, yes, no, and yes · no / (votes − 1)."""
    yes, no = (votes == 1).sum(-1).astype(np.float64), (votes == 0).sum(-1).astype(np.float64)
    cast = yes + no
    pairable = cast >= 2
    agreeing = ratio(yes * (yes - 1) + no * (no - 1), cast * (cast - 1))
    columns = np.stack([agreeing, np.ones_like(yes), yes, no, ratio(yes * no, cast - 1)], axis=-1)
    return np.where(pairable[..., None], columns, 0.0)


def ratio(above: Floats, below: Floats) -> Floats:
    """NaN where the denominator is 0, without a warning."""
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)
    return quotient


def raw_agreement(totals: Floats) -> Floats:
    return ratio(totals[..., 0] + totals[..., 3], totals.sum(-1))


def cohen_kappa(totals: Floats) -> Floats:
    """Not defined where one of the two never varies: the formula would always give 0."""
    both, only_a, only_b, neither = np.moveaxis(totals, -1, 0)
    count = totals.sum(-1)
    yes_a, yes_b = both + only_a, both + only_b
    observed = ratio(both + neither, count)
    expected = ratio(yes_a * yes_b + (count - yes_a) * (count - yes_b), count * count)
    vary = yes_a * yes_b * (count - yes_a) * (count - yes_b) > 0
    return np.where(vary, ratio(observed - expected, 1 - expected), np.nan)


def positive_agreement(totals: Floats) -> Floats:
    """Of the times that one of the two says yes, how often the other does too."""
    return ratio(2 * totals[..., 0], 2 * totals[..., 0] + totals[..., 1] + totals[..., 2])


def negative_agreement(totals: Floats) -> Floats:
    return ratio(2 * totals[..., 3], 2 * totals[..., 3] + totals[..., 1] + totals[..., 2])


def prevalence(totals: Floats) -> Floats:
    """The share of yes among both labels of every example."""
    return ratio(2 * totals[..., 0] + totals[..., 1] + totals[..., 2], 2 * totals.sum(-1))


def bias(totals: Floats) -> Floats:
    """How much more often the first says yes than the second, as a share of the examples."""
    return ratio(totals[..., 1] - totals[..., 2], totals.sum(-1))


def alpha_of_two(totals: Floats) -> Floats:
    """Krippendorff's alpha of two raters."""
    both, only_a, only_b, neither = np.moveaxis(totals, -1, 0)
    differing = only_a + only_b
    return _alpha(2 * both + differing, 2 * neither + differing, differing)


def fleiss_kappa(totals: Floats) -> Floats:
    """With unequal numbers of votes, an example's agreement is that of its own votes and the votes are pooled for
    chance; with equal numbers this is Fleiss' formula."""
    agreeing, examples, yes, no, _ = np.moveaxis(totals, -1, 0)
    rate = ratio(yes, yes + no)
    expected = rate * rate + (1 - rate) * (1 - rate)
    return ratio(ratio(agreeing, examples) - expected, 1 - expected)


def vote_agreement(totals: Floats) -> Floats:
    """Of two votes on the same example, how often they agree."""
    return ratio(totals[..., 0], totals[..., 1])


def alpha(totals: Floats) -> Floats:
    """Krippendorff's alpha of all votes."""
    return _alpha(totals[..., 2], totals[..., 3], totals[..., 4])


def _alpha(yes: Floats, no: Floats, differing: Floats) -> Floats:
    return np.where(yes * no > 0, 1 - ratio((yes + no - 1) * differing, yes * no), np.nan)


ONE_VALUE = "the two labels never vary: one and the same value everywhere"
CONSTANT = "one of the two gives the same label to every example"
NO_COMMON = "no example is labelled by both"
NO_SECOND_VOTE = "no example has two votes"


def all_counted(totals: Floats) -> Floats:
    counts: Floats = totals.sum(-1)
    return counts


OF_PAIRS = (
    Statistic("raw agreement", raw_agreement, NO_COMMON, NO_COMMON, all_counted),
    Statistic("Cohen's kappa", cohen_kappa, CONSTANT, NO_COMMON, lowest=-1.0),
    Statistic("Krippendorff's alpha", alpha_of_two, ONE_VALUE, NO_COMMON, lowest=-1.0),
    Statistic(
        "positive agreement",
        positive_agreement,
        "neither says yes of any example",
        NO_COMMON,
        lambda totals: totals.sum(-1) - totals[..., 3],
    ),
    Statistic(
        "negative agreement",
        negative_agreement,
        "neither says no of any example",
        NO_COMMON,
        lambda totals: totals.sum(-1) - totals[..., 0],
    ),
    Statistic("prevalence", prevalence, NO_COMMON, NO_COMMON, all_counted),
    Statistic("bias", bias, NO_COMMON, NO_COMMON, lowest=-1.0),
)
OF_VOTES = (
    Statistic("agreement of two votes", vote_agreement, NO_SECOND_VOTE, NO_SECOND_VOTE),
    Statistic("Fleiss' kappa", fleiss_kappa, "all votes are the same", NO_SECOND_VOTE, lowest=-1.0),
    Statistic("Krippendorff's alpha of votes", alpha, "all votes are the same", NO_SECOND_VOTE, lowest=-1.0),
)


def krippendorff_alpha(votes: Votes) -> float:
    """Of examples × workers, 1, 0 or UNKNOWN; NaN where no example has two votes or all votes are the same."""
    return float(alpha(vote_columns(votes).sum(0)))
