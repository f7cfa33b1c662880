"""Agreement on yes/no labels, and how right labels and probabilities are against labels that are taken for true. Every
statistic is a function of sums over examples, so that one matrix product gives it for all resamples of a bootstrap.

An example's `columns` are what it adds to the sums; `totals` are such sums, with any axes before the last. A statistic
is NaN where it is not defined, and `Statistic.why_not` says why.

Cohen 1960 (kappa); Fleiss 1971; Krippendorff 2011, "Computing Krippendorff's alpha-reliability" (nominal data, missing
values allowed); Cicchetti and Feinstein 1990 (positive and negative agreement); Byrt, Bishop and Carlin 1993
(prevalence and bias); Brier 1950 (score); Naeini, Cooper and Hauskrecht 2015 (calibration error over bins)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.questions import UNKNOWN, Labels

Floats = NDArray[np.float64]
Votes = NDArray[np.int8]  # examples × workers: 1, 0 or UNKNOWN
Weights = tuple[float, ...]  # of the totals in a sum


@dataclass(frozen=True)
class Statistic:
    name: str
    of: Callable[[Floats], Floats]
    why_not: str
    empty: str  # why not, where nothing was counted at all
    trials: Weights | None = None  # of a share: where no resample differs, Wilson's interval holds
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


def quotient(above: Weights, below: Weights) -> Callable[[Floats], Floats]:
    """Of two sums of the totals."""
    return lambda totals: ratio(totals @ np.array(above), totals @ np.array(below))


ALL_PAIRS = (1.0, 1.0, 1.0, 1.0)
raw_agreement = quotient((1, 0, 0, 1), ALL_PAIRS)
positive_agreement = quotient((2, 0, 0, 0), (2, 1, 1, 0))  # where one of the two says yes, how often the other does too
negative_agreement = quotient((0, 0, 0, 2), (0, 1, 1, 2))
prevalence = quotient((2, 1, 1, 0), (2, 2, 2, 2))  # share of yes among both labels of every example
bias = quotient((0, 1, -1, 0), ALL_PAIRS)  # how much more often the first says yes than the second
vote_agreement = quotient((1, 0, 0, 0, 0), (0, 1, 0, 0, 0))  # of two votes on the same example


def cohen_kappa(totals: Floats) -> Floats:
    """Not defined where one of the two never varies: the formula would always give 0."""
    shared, only_a, only_b, neither = np.moveaxis(totals, -1, 0)
    count = totals.sum(-1)
    yes_a, yes_b = shared + only_a, shared + only_b
    observed = ratio(shared + neither, count)
    expected = ratio(yes_a * yes_b + (count - yes_a) * (count - yes_b), count * count)
    vary = yes_a * yes_b * (count - yes_a) * (count - yes_b) > 0
    return np.where(vary, ratio(observed - expected, 1 - expected), np.nan)


def alpha_of_two(totals: Floats) -> Floats:
    """Krippendorff's alpha of two raters."""
    shared, only_a, only_b, neither = np.moveaxis(totals, -1, 0)
    differing = only_a + only_b
    return _alpha(2 * shared + differing, 2 * neither + differing, differing)


def fleiss_kappa(totals: Floats) -> Floats:
    """With unequal numbers of votes, an example's agreement is that of its own votes and the votes are pooled for
    chance; with equal numbers this is Fleiss' formula."""
    agreeing, examples, yes, no, _ = np.moveaxis(totals, -1, 0)
    rate = ratio(yes, yes + no)
    expected = rate * rate + (1 - rate) * (1 - rate)
    return ratio(ratio(agreeing, examples) - expected, 1 - expected)


def alpha(totals: Floats) -> Floats:
    """Krippendorff's alpha of all votes."""
    return _alpha(totals[..., 2], totals[..., 3], totals[..., 4])


def _alpha(yes: Floats, no: Floats, differing: Floats) -> Floats:
    return np.where(yes * no > 0, 1 - ratio((yes + no - 1) * differing, yes * no), np.nan)


ONE_VALUE = "the two labels never vary: one and the same value everywhere"
CONSTANT = "one of the two gives the same label to every example"
NO_COMMON = "no example is labelled by both"
NO_SECOND_VOTE = "no example has two votes"


NO_YES, NO_NO = "neither says yes of any example", "neither says no of any example"
OF_PAIRS = (
    Statistic("raw agreement", raw_agreement, NO_COMMON, NO_COMMON, ALL_PAIRS),
    Statistic("Cohen's kappa", cohen_kappa, CONSTANT, NO_COMMON, lowest=-1.0),
    Statistic("Krippendorff's alpha", alpha_of_two, ONE_VALUE, NO_COMMON, lowest=-1.0),
    Statistic("positive agreement", positive_agreement, NO_YES, NO_COMMON, (1, 1, 1, 0)),
    Statistic("negative agreement", negative_agreement, NO_NO, NO_COMMON, (0, 1, 1, 1)),
    Statistic("prevalence", prevalence, NO_COMMON, NO_COMMON, ALL_PAIRS),
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


BINS = 10
UNSCORED = "it gave no label that is known to be right or wrong"


precision = quotient((1, 0, 0, 0), (1, 1, 0, 0))
recall = quotient((1, 0, 0, 0), (1, 0, 1, 0))
specificity = quotient((0, 0, 0, 1), (0, 1, 0, 1))
OF_CORRECTNESS = (  # totals are those of `pair_columns(labels, true)`
    Statistic("accuracy", raw_agreement, UNSCORED, UNSCORED, ALL_PAIRS),
    Statistic("precision", precision, "it says yes of no example", UNSCORED, (1, 1, 0, 0)),
    Statistic("recall", recall, "no example is truly yes", UNSCORED, (1, 0, 1, 0)),
    Statistic("specificity", specificity, "no example is truly no", UNSCORED, (0, 1, 0, 1)),
)


def brier_columns(probability: Floats, true: Labels) -> Floats:
    """The squared error of an example's probability, and 1; nothing where either is unknown."""
    known = ~np.isnan(probability) & (true != UNKNOWN)
    error = np.where(known, (np.where(known, probability, 0.0) - true) ** 2, 0.0)
    return np.stack([error, known.astype(np.float64)], axis=-1)


NO_CHANCES = "it gives no probabilities"
BRIER = Statistic("Brier score", quotient((1, 0), (0, 1)), NO_CHANCES, NO_CHANCES)


def error_columns(votes: Votes, true: Labels) -> Floats:
    """Of an example's votes, which are the last axis: pairs that are both wrong, pairs whose first is, and pairs."""
    cast = (votes != UNKNOWN) & (true[..., None] != UNKNOWN)
    count = cast.sum(-1).astype(np.float64)
    wrong = (cast & (votes != true[..., None])).sum(-1).astype(np.float64)
    return np.stack([wrong * (wrong - 1), wrong * (count - 1), count * (count - 1)], axis=-1)


def error_correlation(totals: Floats) -> Floats:
    """Of two votes on one label: 0 where they err independently, 1 where a second vote repeats the first."""
    twice, first = ratio(totals[..., 0], totals[..., 2]), ratio(totals[..., 1], totals[..., 2])
    return ratio(twice - first**2, first * (1 - first))


NO_ERRORS = "its votes are never, or always, wrong"
ERRORS_ALIKE = Statistic("errors in common", error_correlation, NO_ERRORS, "no label has two votes", lowest=-1.0)


@dataclass(frozen=True, slots=True)
class Bin:
    low: float
    high: float
    examples: int
    predicted: float  # mean probability
    true: float  # share of yes


@dataclass(frozen=True, slots=True)
class Calibration:
    bins: tuple[Bin, ...]  # those that hold examples
    error: float | None  # mean distance of the probability from what was true, weighted by examples
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        bins = [[group.low, group.high, group.examples, group.predicted, group.true] for group in self.bins]
        return {"error": self.error, "reason": self.reason, "bins": bins}


FEWEST_OF_EACH = 10  # yes and no that are known, for a threshold to be chosen
FEWEST_PROBABILITIES = 20  # different ones: fewer are shares of votes
MOST_THRESHOLDS = 200  # that are tried


@dataclass(frozen=True, slots=True)
class Threshold:
    """The probability from which a label is best called yes: by the mean of the shares of yes and of no that it finds
    (balanced accuracy), of examples by which it was not chosen."""

    value: float
    balanced: float
    now: float  # of the labels as they are

    @property
    def is_better(self) -> bool:
        return self.balanced > self.now

    def to_json(self) -> dict[str, float]:
        return {"value": self.value, "balanced_accuracy": self.balanced, "balanced_accuracy_now": self.now}


def best_threshold(probability: Floats, labels: Labels, true: Labels) -> Threshold | None:
    """For features × examples; each example's labels are judged by the threshold that is best for all others. None
    where too few labels or probabilities are known."""
    known = ~np.isnan(probability) & (labels != UNKNOWN) & (true != UNKNOWN)
    yes, no = known & (true == 1), known & (true == 0)
    values = np.unique(probability[known])
    if min(yes.sum(), no.sum()) < FEWEST_OF_EACH or len(values) < FEWEST_PROBABILITIES:
        return None
    between = (values[1:] + values[:-1]) / 2
    tried = between[np.unique(np.linspace(0, len(between) - 1, MOST_THRESHOLDS).astype(np.intp))]
    tried = tried[np.argsort(np.abs(tried - 0.5))]  # of those that are alike, the one next to one half
    right_yes, right_no = np.empty((2, len(tried), probability.shape[-1]))
    for place, value in enumerate(tried):
        above = probability >= value
        right_yes[place], right_no[place] = (above & yes).sum(0), (~above & no).sum(0)
    of_yes, of_no = yes.sum(0), no.sum(0)
    shares_yes = (right_yes.sum(1, keepdims=True) - right_yes) / np.maximum(of_yes.sum() - of_yes, 1)
    shares_no = (right_no.sum(1, keepdims=True) - right_no) / np.maximum(of_no.sum() - of_no, 1)
    chosen = (shares_yes + shares_no).argmax(0), np.arange(probability.shape[-1])
    best = (right_yes.sum(1) / of_yes.sum() + right_no.sum(1) / of_no.sum()).argmax()
    return Threshold(
        value=round(float(tried[best]), 3),
        balanced=float(right_yes[chosen].sum() / of_yes.sum() + right_no[chosen].sum() / of_no.sum()) / 2,
        now=float((labels[yes] == 1).mean() + (labels[no] == 0).mean()) / 2,
    )


def calibration(probability: NDArray[np.float64], true: Labels) -> Calibration:
    """Ten bins of equal width; a probability on the edge of two belongs to the upper one."""
    known = ~np.isnan(probability) & (true != UNKNOWN)
    if not known.any():
        return Calibration((), None, "it gives no probabilities of examples whose label is known")
    predicted, is_true = probability[known], true[known].astype(np.float64)
    place = np.minimum((predicted * BINS).astype(np.int64), BINS - 1)
    counts = np.bincount(place, minlength=BINS)
    sums, trues = (np.bincount(place, weights=values, minlength=BINS) for values in (predicted, is_true))
    bins = tuple(
        Bin(
            low=place / BINS,
            high=(place + 1) / BINS,
            examples=int(counts[place]),
            predicted=float(sums[place] / counts[place]),
            true=float(trues[place] / counts[place]),
        )
        for place in np.flatnonzero(counts).tolist()
    )
    error = sum(group.examples * abs(group.predicted - group.true) for group in bins) / len(predicted)
    return Calibration(bins, float(error))
