"""A certificate for the predicted labels of several features together, on the same examples.

Examples are chosen by how sure their predictions are, by a rule that has not seen the sample, and put to the oracle in
random order until the certificate is decided. With probability 1 - level over the order both hold of what passes,
whenever one stops:

- of the predictions that were not sampled, at least the share `agree` are what the oracle would say;
- of the rarer answers, those of the chosen examples and those that were asked before, at most the share 1 - `found`
  are lost, so that always predicting the commoner answer does not pass.

An example counts with the share of its labels that disagree. Nothing is assumed about how they come together: all
labels of an example may be wrong at once. The test bets on the sum over all chosen examples and multiplies what it
wins, drawing without replacement (Waudby-Smith and Ramdas 2020); by Ville's inequality the stake on what is false ever
grows to 1/level with a probability of at most the level. Winnings grow with the sum that is bet against, so that it may
be the one with which the promise is just broken among what was not sampled. Both tests must pass, which needs no
correction (Berger 1982)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery.statistics.intervals import wilson

Floats = NDArray[np.float64]
LEVELS = (0.6, 0.25, 0.15)  # parts of delta: a choice of examples that fails may be followed by another
BETS = (0.1, 0.98)  # the least and the most that is staked at once: with 1 an example could lose all
FIRST_GUESS, FIRST_GAP, FIRST_SQUARE = 10, 0.02, 0.02  # examples by which the first bets go, and what they would show
GROWTH, MOST_SIZES = 1.4, 16  # of the sample from test to test
MARGIN = 1.3  # times the sample that is needed on average
CAUTION = 0.7  # standard errors that disagreement may be above what is expected
TRUSTED_PLAN = 100  # examples that a plan is worth beside those that were sampled
FEWEST_ALIKE = 30  # examples by which it is judged how much disagreements vary
PLAIN_SPREAD = 0.1  # variance of an example's disagreement over its mean, where it cannot be measured
WORTH = 0.5  # of the chosen examples at most are sampled


@dataclass(frozen=True, slots=True)
class Promise:
    """With probability 1 - delta at least the share `agree` of the predictions are what the oracle would say, and at
    least the share `found` of the rarer answers are kept."""

    agree: float
    delta: float = 0.05
    found: float = 0.5


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is promised of the predictions of `together` features, and the counts of one of them in the sample."""

    agree: float
    confidence: float
    found: float
    population: int  # examples that were not learned from at first
    covered: int  # of these, chosen to be predicted
    sampled: int  # of the covered
    disagreed: int  # of the sampled, by this feature
    rarer: int  # the answer, 0 or 1
    rarer_sampled: int
    rarer_lost: int
    together: int
    labels_disagreed: int  # of all these features, of `together` × `sampled` labels

    def to_json(self) -> dict[str, Any]:
        """`agreement` is that of this feature's own sample, with its 95 % interval."""
        agreed = self.sampled - self.disagreed
        low, high = wilson(agreed, self.sampled)
        return asdict(self) | {"agreement": agreed / self.sampled, "agreement_low": low, "agreement_high": high}


@dataclass(frozen=True, eq=False)
class Shares:
    """Of the predicted labels of each example: those that disagree, those whose answer is their feature's rarer one,
    and those of the rarer ones that are lost."""

    wrong: Floats
    rarer: Floats
    lost: Floats

    @classmethod
    def of(cls, answers: NDArray[np.int8], guess: NDArray[np.bool_], rarer: NDArray[np.int8]) -> Shares:
        """What is not answered disagrees."""
        wrong, is_rarer = answers != guess, answers == rarer
        return cls(wrong.mean(axis=1), is_rarer.mean(axis=1), (wrong & is_rarer).mean(axis=1))

    def __getitem__(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Shares:
        return Shares(self.wrong[rows], self.rarer[rows], self.lost[rows])


def sample_sizes(promise: Promise) -> list[int]:
    """How many examples are sampled when the certificate is tested: at first as many as can decide it."""
    sizes = [ceil(1.1 * log(1 / (LEVELS[0] * promise.delta)) / log1p(1 - promise.agree))]
    while len(sizes) < MOST_SIZES:
        sizes.append(ceil(GROWTH * sizes[-1]))
    return sizes


@dataclass(frozen=True, eq=False)
class TableAudit:
    """What was sampled of the chosen examples, in the order of the draw. `kept_rarer` is the sum of the shares of rarer
    answers of examples that were asked before."""

    chosen: int
    shares: Shares
    promise: Promise
    level: float
    kept_rarer: float = 0.0

    @property
    def passes(self) -> bool:
        shares, may_lose = self.shares, 1 - self.promise.found
        wrong = shares.wrong - (1 - self.promise.agree)
        lost = _won(shares.lost - may_lose * shares.rarer, self.chosen, may_lose * self.kept_rarer)
        return min(_won(wrong, self.chosen, float(wrong.sum())), lost) >= log(1 / self.level)

    def goes_on(self, planned: float) -> bool:
        """Whether a larger sample is likely to pass and to be worth it. `planned` is by how much less than allowed an
        example was expected to disagree."""
        wrong, sampled = self.shares.wrong, len(self.shares.wrong)
        gap = ((1 - self.promise.agree - wrong).sum() + TRUSTED_PLAN * planned) / (sampled + TRUSTED_PLAN)
        bet, growth = _growth(gap, float(wrong.var()))
        for size in sample_sizes(self.promise):
            won = size * (growth - bet * gap * size / (2 * self.chosen))  # what is left is judged, not what was sampled
            if size > sampled and won >= log(1 / self.level):
                return size <= WORTH * self.chosen
        return False


def _growth(gap: float, variance: float) -> tuple[float, float]:
    """The best bet on examples that come to so much less than expected, and how the logarithm of the stake grows."""
    square = variance + gap**2 + 1e-12
    bet = float(np.clip(gap / square, *BETS))
    return bet, bet * gap - bet**2 * square / 2


def _won(values: Floats, population: int, total: float) -> float:
    """The logarithm of the stake after betting that `population` numbers come to less than `total`, some of which were
    drawn in this order. Numbers must lie in an interval of length 1 that holds 0. A bet goes by the numbers before."""
    if not 0 < len(values) < population:
        return 0.0
    count = np.arange(len(values)) + FIRST_GUESS
    before = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    squares = np.concatenate([[0.0], np.cumsum(values**2)[:-1]]) + FIRST_GUESS * FIRST_SQUARE
    bets = np.clip((FIRST_GUESS * FIRST_GAP - before) / squares, *BETS)
    expected = (total - before) / (population - count + FIRST_GUESS)
    factors = 1 + bets * (expected - values)
    return float(np.log(factors).sum()) if (factors > 0).all() else -np.inf


@dataclass(frozen=True)
class CutPlan:
    """How many of a ranking to predict, what asking will then cost in examples, and by how much less than allowed an
    example will disagree."""

    cut: int
    cost: float
    gap: float


def plan_cut(expected: Floats, known: Floats, wrong: Floats, promise: Promise) -> CutPlan:
    """The cut with which least is expected to be asked. `expected` are the shares of each example's labels that will
    disagree, in the order of the ranking; of some that are known, `known` were expected and `wrong` did."""
    population, best = len(expected), CutPlan(0, float(len(expected)), 0.0)
    needed = MARGIN * log(1 / (LEVELS[0] * promise.delta))
    for cut in np.unique(np.ceil(np.linspace(0.2, 1, 81) * population).astype(int)).tolist() if population else ():
        mean = float(expected[:cut].mean())
        alike = wrong[known <= expected[cut - 1]]
        alike = alike if len(alike) >= FEWEST_ALIKE else wrong
        variance = float(alike.var()) if len(alike) else PLAIN_SPREAD * mean
        doubtful = CAUTION * sqrt(variance / len(alike)) if len(alike) else 0.0
        gap = 1 - promise.agree - mean - doubtful
        _, growth = _growth(gap, variance)
        sampled = max(sample_sizes(promise)[0], needed / growth) if growth > 0 else float("inf")
        cost = population - cut + sampled
        if sampled <= WORTH * cut and cost < best.cost:
            best = CutPlan(cut, cost, gap)
    return best
