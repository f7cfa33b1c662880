"""Features that may be left to find, imagined after those that were found, to tell what a question is likely to bring.

What was found says how many examples a feature tends to have and which examples tend to have the same features. Many
features are imagined like that, and near-duplicates of the known ones besides. Each counts less the more questions it
would have answered in vain: none that a NONE rules out is left. A question promises much when most of what answers it
would count, and when it is likely to have an answer at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discovery.metrics import DIFFERENCE
from discovery.questions import UNKNOWN, Kind, Labels

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]
Places = NDArray[np.intp]  # one comparison per row, as places in the pool of examples

# The chance that a feature true of a share f of the examples answers a random question of a kind.
CHANCE: dict[Kind, Callable[[Floats], Floats]] = {
    Kind.TWO_OF_THREE: lambda f: 3 * f**2 * (1 - f),
    Kind.PAIR: lambda f: 2 * f * (1 - f),
    Kind.TAG: lambda f: f,
}
# Before anything is known: many rare features, few common ones.
PRIOR_SHARES: Floats = np.geomspace(0.01, 0.9, 20)
PRIOR_WEIGHTS: Floats = PRIOR_SHARES**-0.5
LEAST_CHANCE = 0.004  # of a feature that was found: keeps a single lucky find from standing for hundreds
SIZES: Floats = np.geomspace(1, 800, 25)  # how many features may be left to find
NEW, DUPLICATES = 1024, 256  # imagined features
LIKENESS = 0.9  # how far new features go with the known ones, once there are many
FLIPS = 0.15  # near-duplicates differ in up to so large a share
POOL = 160  # examples on which features are imagined, at most
NOT_NONE = 0.01  # the chance that a feature answers a question to which the answer was NONE
REMEMBERED = 400  # questions
SPREAD = 0.15  # of an imagined share around one that was found, in logarithms
KERNEL = 0.35  # of shares that pass for much the same, in logarithms
_GRID = np.linspace(0.002, 0.998, 997)
_QUANTILES = np.array([NormalDist().inv_cdf(1 - share) for share in _GRID])


def answers(kind: Kind, has: Bits) -> Bits:
    """Which features answer which comparisons; `has` is comparisons × examples × features."""
    if kind is Kind.TWO_OF_THREE:
        a, b, c = has[:, 0], has[:, 1], has[:, 2]
        either: Bits = (a & b) ^ (a & c) ^ (b & c) ^ (a & b & c)
        return either
    if kind is Kind.PAIR:
        one: Bits = has[:, 0] ^ has[:, 1]
        return one
    return has[:, 0]


@dataclass(frozen=True)
class Picture:
    """The features imagined at one moment, on some of the examples."""

    pool: Places
    has: Bits  # examples of the pool × features
    shares: Floats  # of the examples that have each feature
    weights: NDArray[np.float32]  # features × (what it weighs, what it weighs if it counts)
    left: Floats  # the probability of each of SIZES

    def promise(self, kind: Kind, places: Places) -> tuple[Floats, Floats]:
        """For each comparison the probability that it finds a feature that counts, and how much weight answers it."""
        mass, counting = (answers(kind, self.has[places]).astype(np.float32) @ self.weights).astype(np.float64).T
        answered = -np.expm1(-mass[:, None] * SIZES) @ self.left
        return answered * counting / (mass + 1e-9), mass

    def chances(self, kind: Kind, places: Places) -> Floats:
        """The chance that a feature of each of PRIOR_SHARES answers this one comparison."""
        hit = answers(kind, self.has[places[None]])[0]
        near = np.exp(-0.5 * (np.log(self.shares / PRIOR_SHARES[:, None]) / KERNEL) ** 2)
        chances: Floats = (near @ hit + 2 * CHANCE[kind](PRIOR_SHARES)) / (near.sum(axis=1) + 2)
        return chances


@dataclass
class Asked:
    kind: Kind
    examples: tuple[int, ...]
    mass: float  # of the imagined features that answered it
    chances: Floats  # by PRIOR_SHARES
    answered: bool | None = None  # not known yet


class Imagination:
    """`memory` is the weight of a query relative to the next one: what is left to find changes as the search goes on.

    `caution` is how many answers to two-of-three questions the assumptions about unknown data are worth."""

    def __init__(self, n: int, rng: np.random.Generator, memory: float = 0.97, caution: float = 1.5) -> None:
        self._n, self._rng, self._memory = n, rng, memory
        self._prior = PRIOR_WEIGHTS * caution / (PRIOR_WEIGHTS * CHANCE[Kind.TWO_OF_THREE](PRIOR_SHARES)).sum()
        self._chance = rng.standard_normal((NEW, n if n < POOL else POOL), dtype=np.float32)
        self._known = np.zeros((0, n), np.float32)  # an unknown label is the feature's mean
        self._kept = np.zeros((0, n), np.int8)
        self._asked: list[Asked] = []
        self._found: list[tuple[float, float, int]] = []  # share, chance of the question that found it, its number

    def ask(self, picture: Picture, kind: Kind, places: Places, mass: float) -> int:
        """Remember that a comparison is asked; the number that `answer` wants."""
        examples = tuple(picture.pool[places].tolist())
        self._asked.append(Asked(kind, examples, mass, picture.chances(kind, places)))
        return len(self._asked) - 1

    def answer(self, number: int, labels: Labels | None, *, answered: bool, counts: bool) -> None:
        """`labels` are those of a feature that was not known."""
        asked = self._asked[number]
        asked.answered = answered
        if labels is None:
            return
        share = float((labels == 1).sum() / max((labels != UNKNOWN).sum(), 1))
        chance = float(np.interp(np.log(max(share, 1 / self._n)), np.log(PRIOR_SHARES), asked.chances))
        self._found.append((share, max(chance, LEAST_CHANCE), number))
        self._known = np.vstack([self._known, np.where(labels == UNKNOWN, share, labels).astype(np.float32)])
        if counts:
            self._kept = np.vstack([self._kept, labels])

    def picture(self, pool: Places) -> Picture:
        new, weight = self._new(pool)
        same, known = self._duplicates(pool), len(self._known)
        duplicated = 0.3 * known / (known + 10)
        has = np.vstack([new, same])
        weight = np.concatenate([weight * (1 - duplicated), np.full(len(same), duplicated / max(len(same), 1))])
        shares = has.mean(axis=1)
        weight *= (shares > 0) & (shares < 1)
        features = np.ascontiguousarray(has.T)
        left = self._left_to_find()
        weight *= self._passed_over(pool, features, float(SIZES @ left))
        weights = np.stack([weight, weight * self._would_count(has, shares, pool)], axis=1).astype(np.float32)
        return Picture(pool, features, np.maximum(shares, 0.5 / self._n), weights, left)

    def _new(self, pool: Places) -> tuple[Bits, Floats]:
        """Features of likely shares, each a random mixture of the known ones and of chance, and what each stands for.

        Those likely to be met are imagined more often than they occur, and weigh less in return."""
        rng, found, known = self._rng, self._found, self._known[:, pool]
        shares = np.concatenate([PRIOR_SHARES, [share for share, _, _ in found]])
        age = len(self._asked) - np.array([number for _, _, number in found], np.float64)
        weights = np.concatenate([self._prior, self._memory**age / np.array([chance for _, chance, _ in found])])
        often = weights * np.sqrt(CHANCE[Kind.TWO_OF_THREE](np.clip(shares, 0.5 / self._n, 0.99)))
        often /= often.sum()
        drawn = rng.choice(len(shares), NEW, p=often)
        share = np.clip(shares[drawn] * np.exp(SPREAD * rng.standard_normal(NEW)), 1 / self._n, 0.98)
        level = np.roll(self._chance, int(rng.integers(pool.size)), axis=1)[:, : pool.size]
        if len(known):
            mean = known.mean(axis=1, keepdims=True)
            alike = (known - mean) / np.sqrt(np.maximum(mean * (1 - mean), 0.01))
            alike /= np.maximum(np.sqrt((alike**2).sum(axis=0)), 1e-6)
            part = LIKENESS * len(known) / (len(known) + 2)
            mixture = rng.standard_normal((NEW, len(known)), dtype=np.float32) @ alike
            level = np.float32(np.sqrt(1 - part)) * level + np.float32(np.sqrt(part)) * mixture
        has = level > np.interp(share, _GRID, _QUANTILES)[:, None].astype(np.float32)
        weight = (weights / often)[drawn]
        return has, weight / weight.sum()

    def _duplicates(self, pool: Places) -> Bits:
        """Known features with some labels changed, so that about as many examples have them."""
        if not len(self._known):
            return np.zeros((0, pool.size), np.bool_)
        same = self._known[self._rng.integers(len(self._known), size=DUPLICATES)][:, pool] > 0.5
        share = same.mean(axis=1, keepdims=True, dtype=np.float32)
        flips = np.float32(FLIPS) * self._rng.random((DUPLICATES, 1), dtype=np.float32)
        changed = np.where(same, flips, flips * share / np.maximum(1 - share, 0.05))
        duplicates: Bits = same ^ (self._rng.random(same.shape, dtype=np.float32) < changed)
        return duplicates

    def _would_count(self, has: Bits, shares: Floats, pool: Places) -> Bits:
        counts: Bits = (shares >= DIFFERENCE) & (shares <= 1 - DIFFERENCE)
        if len(self._kept):
            kept, ones = self._kept[:, pool].T, has.astype(np.float32)
            differing = ones @ (kept == 0).astype(np.float32) + (1 - ones) @ (kept == 1).astype(np.float32)
            counts &= (differing >= DIFFERENCE * pool.size).all(axis=1)
        return counts

    def _left_to_find(self) -> Floats:
        """The probability of each of SIZES, told by how often there was an answer."""
        known = [(number, asked) for number, asked in enumerate(self._asked) if asked.answered is not None]
        age = len(self._asked) - np.array([number for number, _ in known], np.float64)
        answered = np.array([asked.answered for _, asked in known], np.bool_)
        nothing = -SIZES * np.maximum(np.array([asked.mass for _, asked in known]), 1e-6)[:, None]
        log_chance = np.where(answered[:, None], np.log(-np.expm1(nothing)), nothing)
        likelihood = self._memory**age @ log_chance
        probability = np.exp(likelihood - likelihood.max())
        normalised: Floats = probability / probability.sum()
        return normalised

    def _passed_over(self, pool: Places, features: Bits, size: float) -> Floats:
        """For each feature the probability that no question so far has brought it, though it may answer some."""
        place = np.full(self._n, -1)
        place[pool] = np.arange(pool.size)
        log_missed = np.zeros(features.shape[1])
        for kind in CHANCE:
            asked = [one for one in self._asked[-REMEMBERED:] if one.kind is kind]
            if not asked:
                continue
            places = place[np.array([one.examples for one in asked], np.intp)]
            here = (places >= 0).all(axis=1)
            named = [1.0 if one.answered is False else 1 / max(size * one.mass, 1.0) for one in asked]
            missed = np.log(np.maximum(1 - np.array(named), NOT_NONE))[here]
            log_missed += missed @ answers(kind, features[places[here]])
        result: Floats = np.exp(log_missed)
        return result
