"""How likely a comparison is to find a feature that counts: a Bayesian model of the features that are left to find.

It has two parts. A posterior over M, the number of features left, and a sample of hypothetical features, drawn by
importance sampling from what the K features found so far suggest. Below, m_t is the mass of question t, i.e. the
probability that a hypothetical feature answers it, and age the number of questions asked since.

    count       P(M) ∝ Π_t p_t^(MEMORY^age),  p_t = P(N_t = j) for j features named, P(N_t ≥ k) for k, the most that
                an answer may hold, with N_t a Poisson number of mean M m_t
    share       f of the examples have a feature: f is drawn around a found share, which weighs MEMORY^age / P(a feature
                of that share answers the question that found it), or from a prior ∝ f^(−1/2) that CAUTION scales;
                the proposal is that weight times √(3 f² (1 − f)), and the importance weight makes up for it
    labels      x has it if √(1 − ρ) ε_x + √ρ Σ_j z_j k_jx > Φ⁻¹(1 − f), with ρ = 0.9 K / (K + 2), standard normal ε
                and z, and k_jx the standardised label of the known feature j: similar examples get similar labels
    duplicates  a share 0.3 K / (K + 10) of the mass are known features with some labels flipped
    unnamed     each weight is multiplied by Π_t (1 − q_t) over the questions that the feature answers: q_t = 0.99
                if fewer than k were named, min(1, k / max(1, E[M] m_t)) if k others were

A comparison of mass m, of which m⁺ belongs to features that would count, promises E min(N, k) · m⁺ / m features; its
promise is the k-th part of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial, lgamma
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
MIN_CHANCE = 0.004  # of a feature that was found: keeps a single lucky find from standing for hundreds
FEATURE_COUNTS: Floats = np.geomspace(1, 800, 25)  # how many features may be left to find
NEW_FEATURES, NEAR_DUPLICATES = 1024, 256  # hypothetical features in a sample
MAX_SHARED_VARIANCE = 0.9  # ρ once many features are known
MAX_FLIPPED_SHARE = 0.15  # of the labels of a near-duplicate
MAX_POOL = 160  # examples on which features are sampled
P_ANSWER_GIVEN_NONE = 0.01  # the probability that a feature answers a question to which the answer was NONE
MAX_REMEMBERED_QUESTIONS = 400
MEMORY = 0.97  # weight of a question relative to the next one: what is left to find changes during a search
CAUTION = 1.5  # weight of the prior, in answers to two-of-three questions
SHARE_LOG_SD = 0.15  # of a sampled share around one that was found
SHARE_LOG_BANDWIDTH = 0.35  # of the kernel by which sampled features stand for those of a similar share
_GRID = np.linspace(0.002, 0.998, 997)
_QUANTILES = np.array([NormalDist().inv_cdf(1 - share) for share in _GRID])


def answers(kind: Kind, has: Bits) -> Bits:
    """Which features answer which comparisons; `has` is comparisons × examples × features."""
    if kind is Kind.TWO_OF_THREE:
        a, b, c = has[:, 0], has[:, 1], has[:, 2]
        either: Bits = (a & b) ^ (a & c) ^ (b & c) ^ (a & b & c)
        return either
    if kind is Kind.PAIR:
        differing: Bits = has[:, 0] ^ has[:, 1]
        return differing
    return has[:, 0]


def _p_at_least(count: int, mean: Floats) -> Floats:
    """Of a Poisson number, for a count of 1 or more."""
    if count == 1:
        at_least_one: Floats = -np.expm1(-mean)
        return at_least_one
    terms = [np.exp(-mean) * mean**below / factorial(below) for below in range(count + 3)]
    # where the mean is small, 1 − Σ would be all rounding
    tail: Floats = np.where(mean < 0.1, sum(terms[count:]), 1 - sum(terms[:count]))
    return tail


def mean_named(mean: Floats, most: int) -> Floats:
    """How many features are named on average, at most `most` of a Poisson number of that mean."""
    total: Floats = np.sum([_p_at_least(count, mean) for count in range(1, most + 1)], axis=0)
    return total


@dataclass(frozen=True)
class FeatureSample:
    """Hypothetical features drawn at one moment, on a pool of examples."""

    pool: Places
    has: Bits  # examples of the pool × features
    shares: Floats  # of the examples that have each feature
    weights: NDArray[np.float32]  # features × (its weight, its weight if it would count)
    p_count: Floats  # the probability of each of FEATURE_COUNTS
    most: int  # features that an answer may hold

    def promise(self, kind: Kind, places: Places) -> tuple[Floats, Floats]:
        """For each comparison the expected share of features that count in an answer of the greatest length, and its
        mass. With one feature a question: the probability that it finds one that counts."""
        mass, counting = (answers(kind, self.has[places]).astype(np.float32) @ self.weights).astype(np.float64).T
        answered = mean_named(mass[:, None] * FEATURE_COUNTS, self.most) @ self.p_count / self.most
        return answered * counting / (mass + 1e-9), mass

    def chances(self, kind: Kind, places: Places) -> Floats:
        """The chance that a feature of each of PRIOR_SHARES answers this one comparison."""
        hit = answers(kind, self.has[places[None]])[0]
        near = np.exp(-0.5 * (np.log(self.shares / PRIOR_SHARES[:, None]) / SHARE_LOG_BANDWIDTH) ** 2)
        chances: Floats = (near @ hit + 2 * CHANCE[kind](PRIOR_SHARES)) / (near.sum(axis=1) + 2)
        return chances


@dataclass
class AskedComparison:
    kind: Kind
    examples: tuple[int, ...]
    mass: float  # of the hypothetical features that answer it
    chances: Floats  # by PRIOR_SHARES
    named: int | None = None  # features; not known yet


class HypotheticalFeatures:
    """Learns from questions and answers, and samples features from what they leave to find."""

    def __init__(self, n: int, rng: np.random.Generator, most: int = 1, difference: float = DIFFERENCE) -> None:
        self._n, self._rng, self._most, self._difference = n, rng, most, difference
        self._prior = PRIOR_WEIGHTS * CAUTION / (PRIOR_WEIGHTS * CHANCE[Kind.TWO_OF_THREE](PRIOR_SHARES)).sum()
        self._noise = rng.standard_normal((NEW_FEATURES, n if n < MAX_POOL else MAX_POOL), dtype=np.float32)
        self._known = np.zeros((0, n), np.float32)  # an unknown label is the feature's mean
        self._kept = np.zeros((0, n), np.int8)
        self._asked: list[AskedComparison] = []
        self._found: list[tuple[float, float, int]] = []  # share, chance of the question that found it, its number

    def record_question(self, sample: FeatureSample, kind: Kind, places: Places, mass: float) -> int:
        """Remember that a comparison is asked; returns its number for `record_answer`."""
        examples = tuple(sample.pool[places].tolist())
        self._asked.append(AskedComparison(kind, examples, mass, sample.chances(kind, places)))
        return len(self._asked) - 1

    def record_named(self, number: int, named: int) -> None:
        self._asked[number].named = min(named, self._most)

    def record_answer(self, number: int, named: int, new: Sequence[Labels], counting: Sequence[bool]) -> None:
        """How many features were named; `new` are the labels of those not known before, `counting` which count."""
        self.record_named(number, named)
        for labels, counts in zip(new, counting, strict=True):
            self._record_new(number, labels, counts=counts)

    def _record_new(self, number: int, labels: Labels, *, counts: bool) -> None:
        asked, share = self._asked[number], float((labels == 1).sum() / max((labels != UNKNOWN).sum(), 1))
        chance = float(np.interp(np.log(max(share, 1 / self._n)), np.log(PRIOR_SHARES), asked.chances))
        self._found.append((share, max(chance, MIN_CHANCE), number))
        self.record_known(labels, counts=counts)

    def record_known(self, labels: Labels, *, counts: bool) -> None:
        """A feature that no question of `record_question` has found says nothing of the number that is left."""
        share = (labels == 1).sum() / max((labels != UNKNOWN).sum(), 1)
        self._known = np.vstack([self._known, np.where(labels == UNKNOWN, share, labels).astype(np.float32)])
        if counts:
            self._kept = np.vstack([self._kept, labels])

    def sample(self, pool: Places) -> FeatureSample:
        new, weight = self._new(pool)
        same, known = self._duplicates(pool), len(self._known)
        duplicated = 0.3 * known / (known + 10)  # the share of the mass that near-duplicates of known features have
        has = np.vstack([new, same])
        weight = np.concatenate([weight * (1 - duplicated), np.full(len(same), duplicated / max(len(same), 1))])
        shares = has.mean(axis=1)
        weight *= (shares > 0) & (shares < 1)
        features = np.ascontiguousarray(has.T)
        p_count = self._count_posterior()
        weight *= self._p_unnamed(pool, features, float(FEATURE_COUNTS @ p_count))
        weights = np.stack([weight, weight * self._would_count(has, shares, pool)], axis=1).astype(np.float32)
        return FeatureSample(pool, features, np.maximum(shares, 0.5 / self._n), weights, p_count, self._most)

    def _new(self, pool: Places) -> tuple[Bits, Floats]:
        """New features with their importance weights: shares, then labels correlated with those of known features."""
        rng, found, known = self._rng, self._found, self._known[:, pool]
        shares = np.concatenate([PRIOR_SHARES, [share for share, _, _ in found]])
        age = len(self._asked) - np.array([number for _, _, number in found], np.float64)
        weights = np.concatenate([self._prior, MEMORY**age / np.array([chance for _, chance, _ in found])])
        proposal = weights * np.sqrt(CHANCE[Kind.TWO_OF_THREE](np.clip(shares, 0.5 / self._n, 0.99)))
        proposal /= proposal.sum()
        drawn = rng.choice(len(shares), NEW_FEATURES, p=proposal)
        share = np.clip(shares[drawn] * np.exp(SHARE_LOG_SD * rng.standard_normal(NEW_FEATURES)), 1 / self._n, 0.98)
        level = np.roll(self._noise, int(rng.integers(pool.size)), axis=1)[:, : pool.size]
        if len(known):
            mean = known.mean(axis=1, keepdims=True)
            alike = (known - mean) / np.sqrt(np.maximum(mean * (1 - mean), 0.01))
            alike /= np.maximum(np.sqrt((alike**2).sum(axis=0)), 1e-6)
            rho = MAX_SHARED_VARIANCE * len(known) / (len(known) + 2)
            mixture = rng.standard_normal((NEW_FEATURES, len(known)), dtype=np.float32) @ alike
            level = np.float32(np.sqrt(1 - rho)) * level + np.float32(np.sqrt(rho)) * mixture
        has = level > np.interp(share, _GRID, _QUANTILES)[:, None].astype(np.float32)
        weight = (weights / proposal)[drawn]
        return has, weight / weight.sum()

    def _duplicates(self, pool: Places) -> Bits:
        """Known features with some labels changed, so that about as many examples have them."""
        if not len(self._known):
            return np.zeros((0, pool.size), np.bool_)
        same = self._known[self._rng.integers(len(self._known), size=NEAR_DUPLICATES)][:, pool] > 0.5
        share = same.mean(axis=1, keepdims=True, dtype=np.float32)
        flips = np.float32(MAX_FLIPPED_SHARE) * self._rng.random((NEAR_DUPLICATES, 1), dtype=np.float32)
        changed = np.where(same, flips, flips * share / np.maximum(1 - share, 0.05))
        duplicates: Bits = same ^ (self._rng.random(same.shape, dtype=np.float32) < changed)
        return duplicates

    def _would_count(self, has: Bits, shares: Floats, pool: Places) -> Bits:
        counts: Bits = (shares >= self._difference) & (shares <= 1 - self._difference)
        if len(self._kept):
            kept, present = self._kept[:, pool].T, has.astype(np.float32)
            differing = present @ (kept == 0).astype(np.float32) + (1 - present) @ (kept == 1).astype(np.float32)
            counts &= (differing >= self._difference * pool.size).all(axis=1)
        return counts

    def _count_posterior(self) -> Floats:
        """P(M) for each of FEATURE_COUNTS, given how many features each question brought out."""
        known = [(number, asked) for number, asked in enumerate(self._asked) if asked.named is not None]
        age = len(self._asked) - np.array([number for number, _ in known], np.float64)
        named = np.array([asked.named for _, asked in known], np.intp)
        mean = FEATURE_COUNTS * np.maximum(np.array([asked.mass for _, asked in known]), 1e-6)[:, None]
        log_p = np.empty_like(mean)
        for count in range(self._most):
            log_p[named == count] = (count * np.log(mean) - mean - lgamma(count + 1))[named == count]
        log_p[named == self._most] = np.log(_p_at_least(self._most, mean[named == self._most]))
        likelihood = MEMORY**age @ log_p
        probability = np.exp(likelihood - likelihood.max())
        normalised: Floats = probability / probability.sum()
        return normalised

    def _p_named(self, asked: AskedComparison, size: float) -> float:
        """That a question has brought a feature out which answers it. Fewer than could be named are all there are."""
        if asked.named is not None and asked.named < self._most:
            return 1.0
        return min(1.0, self._most / max(size * asked.mass, 1.0))

    def _p_unnamed(self, pool: Places, features: Bits, size: float) -> Floats:
        """For each feature the probability that no question so far has found it, though it may answer some."""
        place = np.full(self._n, -1)
        place[pool] = np.arange(pool.size)
        log_missed = np.zeros(features.shape[1])
        for kind in CHANCE:
            asked = [question for question in self._asked[-MAX_REMEMBERED_QUESTIONS:] if question.kind is kind]
            if not asked:
                continue
            places = place[np.array([question.examples for question in asked], np.intp)]
            here = (places >= 0).all(axis=1)
            named = [self._p_named(question, size) for question in asked]
            missed = np.log(np.maximum(1 - np.array(named), P_ANSWER_GIVEN_NONE))[here]
            log_missed += missed @ answers(kind, features[places[here]])
        result: Floats = np.exp(log_missed)
        return result
