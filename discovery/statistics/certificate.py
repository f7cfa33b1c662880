"""A certificate for the predicted labels of several features together, on the same examples.

The examples that are to be predicted are put to the oracle in random order until the certificate is decided. With
probability 1 - level over the order both hold of what passes, whenever one stops:

- of the predictions that were not sampled, at least the share `agree` are what the oracle would say;
- of the rarer answers, those of the predicted examples and those that were asked before, at most the share 1 - `found`
  are lost, so that always predicting the commoner answer does not pass.

An example counts with the share of its labels that disagree. Nothing is assumed about how they come together: all
labels of an example may be wrong at once. The test bets on the sum over all examples and multiplies what it wins,
drawing without replacement (Waudby-Smith and Ramdas 2020); by Ville's inequality the stake on what is false ever grows
to 1/level with a probability of at most the level. Winnings grow with the sum that is bet against, so that it may be
the one with which the promise is just broken among what was not sampled. Both tests must pass, which needs no
correction (Berger 1982)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil, log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.statistics.intervals import wilson

Floats = NDArray[np.float64]
LEVELS = (
    0.6,
    0.25,
    0.15,
)  # parts of delta: predictions that fail are followed by others that have learned from the sample
BETS = (0.1, 0.98)  # the least and the most that is staked at once: with 1 an example could lose all
FIRST_GUESS, FIRST_GAP, FIRST_SQUARE = 10, 0.02, 0.02  # examples by which the first bets go, and what they would show
GROWTH, MOST_SIZES = 1.4, 16  # of the sample from test to test


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
    covered: int  # of these, those that were to be predicted when the sample was drawn
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
    """Of the predicted labels of each sampled example: those that disagree, those whose answer is their feature's rarer
    one, and those of the rarer ones that are lost."""

    wrong: Floats
    rarer: Floats
    lost: Floats

    @classmethod
    def of(cls, answers: NDArray[np.int8], guess: NDArray[np.bool_], rarer: NDArray[np.int8]) -> Shares:
        """What is not answered disagrees."""
        wrong, is_rarer = answers != guess, answers == rarer
        return cls(wrong.mean(axis=1), is_rarer.mean(axis=1), (wrong & is_rarer).mean(axis=1))


def sample_sizes(promise: Promise) -> list[int]:
    """How many examples are sampled when the certificate is tested: at first as many as can decide it."""
    sizes = [ceil(1.1 * log(1 / (LEVELS[0] * promise.delta)) / log1p(1 - promise.agree))]
    while len(sizes) < MOST_SIZES:
        sizes.append(ceil(GROWTH * sizes[-1]))
    return sizes


def passes(sample: Shares, population: int, kept_rarer: float, promise: Promise, level: float) -> bool:
    """`sample` is what was drawn of the population, in the order of the draw. `kept_rarer` is the sum of the shares of
    rarer answers of examples that were asked before."""
    may_lose = 1 - promise.found
    wrong = sample.wrong - (1 - promise.agree)
    lost = _won(sample.lost - may_lose * sample.rarer, population, may_lose * kept_rarer)
    return min(_won(wrong, population, float(wrong.sum())), lost) >= log(1 / level)


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
