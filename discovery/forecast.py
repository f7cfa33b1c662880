"""What each kind of question would bring, told from the features found so far, by whatever kind they were found.

A feature true of a share f of the examples answers a random question of a kind with a known chance: 3f²(1-f) for two of
three, 2f(1-f) for a pair, f for a tag. So a feature found by one kind also says what another kind would have met. Where
shares are small, a pair or a tag finds what is too rare to count and two of three finds nothing at all: the first shows
in the shares, the second in how often the answer was NONE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery.questions import Kind

Shares = NDArray[np.float64]

CHANCE: dict[Kind, Callable[[Shares], Shares]] = {
    Kind.TWO_OF_THREE: lambda f: 3 * f**2 * (1 - f),
    Kind.PAIR: lambda f: 2 * f * (1 - f),
    Kind.ONE_OF_THREE: lambda f: 3 * f * (1 - f) ** 2,
    Kind.TAG: lambda f: f,
}
# Before anything is known: many rare features, few common ones, and most answers in between count.
PRIOR_SHARES: Shares = np.geomspace(0.01, 0.9, 20)
PRIOR_WEIGHTS: Shares = PRIOR_SHARES**-0.5
PRIOR_COUNTS: Shares = np.where(PRIOR_SHARES >= 0.1, 0.9, 0.0)
LEAST_CHANCE = 0.03  # of a feature that was found: keeps a single lucky find from standing for hundreds
SIZES = np.geomspace(1, 500, 25)  # how many features may be left to find


@dataclass(frozen=True)
class Found:
    share: float  # of the examples that have the feature
    counts: bool  # it is interesting and distinct
    chance: float  # that a question of the kind that found it finds a feature of this share
    query: int


class Forecast:
    """`memory` is the weight of a query relative to the next one: what is left to find changes as the search goes on.

    `caution` is how many answers to two-of-three questions the assumptions about unknown data are worth."""

    def __init__(self, memory: float = 0.97, caution: float = 1.5) -> None:
        self._memory = memory
        chance = CHANCE[Kind.TWO_OF_THREE](PRIOR_SHARES)
        self._prior_weights = PRIOR_WEIGHTS * caution / (PRIOR_WEIGHTS * chance).sum()
        self._queries = 0
        self._answered = dict.fromkeys(CHANCE, 0.0)
        self._nones = dict.fromkeys(CHANCE, 0.0)
        self._found: list[Found] = []

    def note(self, kind: Kind, *, answered: bool) -> None:
        self._queries += 1
        for tally in (self._answered, self._nones):
            for each in tally:
                tally[each] *= self._memory
        (self._answered if answered else self._nones)[kind] += 1.0

    def found(self, kind: Kind, share: float, *, counts: bool) -> None:
        chance = float(CHANCE[kind](np.array([share]))[0])
        self._found.append(Found(share, counts, max(chance, LEAST_CHANCE), self._queries))

    def yields(self) -> dict[Kind, float]:
        """For each kind the probability that a random question of it finds a feature that counts."""
        shares = np.concatenate([PRIOR_SHARES, [found.share for found in self._found]])
        counts = np.concatenate([PRIOR_COUNTS, [float(found.counts) for found in self._found]])
        weight = np.concatenate([self._prior_weights, self._weights()])
        meets = {kind: weight * chance(shares) for kind, chance in CHANCE.items()}
        left = self._left_to_find({kind: float(met.sum() / weight.sum()) for kind, met in meets.items()})
        result = {}
        for kind, met in meets.items():
            answered = float((left * -np.expm1(-SIZES * met.sum() / weight.sum())).sum())
            result[kind] = answered * float((met * counts).sum() / met.sum())
        return result

    def _weights(self) -> Shares:
        """How many features like each of those found there are, found or not: the rarer the find, the more."""
        age = self._queries - np.array([found.query for found in self._found], dtype=np.float64)
        return self._memory**age / np.array([found.chance for found in self._found], dtype=np.float64)

    def _left_to_find(self, mean: dict[Kind, float]) -> Shares:
        """The probability of each of SIZES, told by how often the answer was NONE."""
        likelihood = np.zeros(SIZES.size)
        for kind, chance in mean.items():
            nothing = -SIZES * max(chance, 1e-9)
            likelihood += self._nones[kind] * nothing + self._answered[kind] * np.log(-np.expm1(nothing))
        probability = np.exp(likelihood - likelihood.max())
        normalised: Shares = probability / probability.sum()
        return normalised
