"""How far predictions may be trusted: a certificate that holds for a threshold chosen from the data.

A population of examples is ranked by how sure the predictions are, by a rule that has not seen the sample. A sample of
it, drawn at random without replacement, is put to the oracle. Cuts of the ranking are tested one after the other, the
surest first. A test that passes hands its level to the next one; a part of the level is set aside for the first of the
wide cuts, from `WIDE` of the ranking on, so that bad luck at the narrow ones does not end it (fallback procedure: Wiens
2003; learn then test: Angelopoulos et al. 2021; the aim is that of BARGAIN: Zeighami et al. 2025). Cuts and levels
depend on the two sizes alone, so that with probability 1 - delta over the draw of the sample both hold for every cut
that passed:

- of the predictions above the cut that were not sampled, at least the share `agree` are what the oracle would say;
- of the rarer answer's examples in the whole population, at most the share 1 - `found` are lost above the cut, above a
  narrow one as much less as it is narrower than `WIDE`, so that always predicting the commoner answer does not pass.

The first is tested by the hypergeometric tail of the sample above the cut, for as many disagreements as the promise
allows outside the sample; the second by the binomial tail, which is above the hypergeometric one. A cut must pass both
tests, and a test of a union needs no correction (Berger 1982)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil, comb, exp, floor, lgamma, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

CUTS, STARTS = 10, 21
FORGIVEN = 3  # disagreements that the first cut can bear
WIDE = 0.6  # of the ranking: always predicting the commoner answer loses more than 1 - FOUND there
NARROW, NARROW_CUTS = (0.2, 0.4), 4  # where the narrowest cut may lie, and how many there are below WIDE
NARROW_LEVEL, NARROW_FORGIVEN = 0.2, 1  # of delta, for the first of them, and the disagreements that it can bear
SPREAD = 3.0  # standard deviations of how many of a sample lie above a cut
FOUND = 0.5
DELTA = 0.05


@dataclass(frozen=True, slots=True)
class Promise:
    """`found` is the least share of the rarer answer's examples that keep it; `together` promises both of all features
    together, instead of each."""

    agree: float
    delta: float = DELTA
    found: float = FOUND
    together: bool = False

    def sample_size(self, population: int) -> int:
        """Enough to certify predictions that disagree half as often as allowed; of a large population some more."""
        enough = ceil(5 * NormalDist().inv_cdf(1 - self.delta) ** 2 * self.agree / (1 - self.agree))
        return max(enough, min(population // 40, 2_000))

    def cuts(self, population: int, sampled: int) -> list[tuple[int, float]]:
        """How many of the ranking each cut covers, the surest first, and its own part of the level, which come to delta
        in all; no more than these two numbers decides it. Narrow cuts need a large sample."""
        aside = NARROW_LEVEL * self.delta
        least = self._first(population, sampled, NARROW, NARROW_FORGIVEN, aside)
        narrow = [] if least is None else np.linspace(least, WIDE, NARROW_CUTS, endpoint=False).tolist()
        start = self._first(population, sampled, (WIDE, 1.0), FORGIVEN, self.delta - aside * bool(narrow))
        wide = [] if start is None else np.linspace(start, 1.0, CUTS).tolist()
        levels = {ceil(share * population): 0.0 for share in (*narrow, *wide)}
        if narrow:
            levels[ceil(narrow[0] * population)] = aside if wide else self.delta
        if wide:
            levels[ceil(wide[0] * population)] = self.delta - aside * bool(narrow)
        return sorted(levels.items())

    def _first(
        self, population: int, sampled: int, between: tuple[float, float], forgiven: int, level: float
    ) -> float | None:
        """The narrowest share of the ranking at which a test can bear so many disagreements."""
        for share in np.linspace(*between, STARTS).tolist():
            cut, about = ceil(share * population), floor(share * sampled)
            allowed = self.allowed(cut, population, sampled)
            if allowed >= 0 and hypergeometric_tail(forgiven, cut, allowed + 1, about) <= level:
                return float(share)
        return None

    def lost(self, cut: int, population: int) -> float:
        """The share of the rarer answer's examples that may be lost above a cut."""
        return (1 - self.found) * min(1.0, cut / (WIDE * population))

    def most_sampled(self, cut: int, population: int, sampled: int) -> int:
        """How many of the sample lie above a cut at most, but for mischance: then the cut fails."""
        share = cut / population
        return min(sampled, ceil(sampled * share + SPREAD * sqrt(sampled * share * (1 - share))))

    def allowed(self, cut: int, population: int, sampled: int) -> int:
        """Disagreements above a cut that cannot break the promise outside the sample. The hypothesis that is tested
        must not depend on the sample, so it is as if as many of it lay above the cut as ever may."""
        return floor((1 - self.agree) * (cut - self.most_sampled(cut, population, sampled)) + 1e-9)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Of the predictions of one feature. Counts are of the sample, but for `population` and `covered`."""

    agree: float
    confidence: float
    found: float
    population: int  # examples that were ranked; with `together` those that were not learned from at first
    covered: int  # of these, above the cut, or chosen to be predicted
    sampled: int  # of the covered
    disagreed: int
    rarer: int  # the answer, 0 or 1
    rarer_sampled: int
    rarer_lost: int
    together: int = 0  # features that share the promise; 0: it is about this one alone
    labels_disagreed: int = 0  # of all these features, of `together` × `sampled` labels

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Audit:
    """A sample of a ranked population: places in the ranking, and what the oracle made of the predictions there.

    What the oracle did not answer is a disagreement."""

    population: int
    places: NDArray[np.intp]
    agreed: NDArray[np.bool_]
    is_rarer: NDArray[np.bool_]  # the oracle gave the rarer answer
    rarer: int

    def passed(self, promise: Promise) -> list[Certificate]:
        """One per cut that passed."""
        certificates: list[Certificate] = []
        level = 0.0
        for cut, more in promise.cuts(self.population, len(self.places)):
            level += more
            one = self._at(cut, promise)
            if level > 0 and self._agrees(one, promise, level) and self._keeps_the_rarer(one, promise, level):
                certificates.append(one)
            else:
                level = 0.0
        return certificates

    def _at(self, cut: int, promise: Promise) -> Certificate:
        above = self.places < cut
        return Certificate(
            agree=promise.agree,
            confidence=1 - promise.delta,
            found=1 - promise.lost(cut, self.population),
            population=self.population,
            covered=cut,
            sampled=int(above.sum()),
            disagreed=int((above & ~self.agreed).sum()),
            rarer=self.rarer,
            rarer_sampled=int(self.is_rarer.sum()),
            rarer_lost=int((above & self.is_rarer & ~self.agreed).sum()),
        )

    def _agrees(self, one: Certificate, promise: Promise, level: float) -> bool:
        allowed = promise.allowed(one.covered, self.population, len(self.places))
        if one.sampled > promise.most_sampled(one.covered, self.population, len(self.places)) or allowed < 0:
            return False
        return hypergeometric_tail(one.disagreed, one.covered, allowed + 1, one.sampled) <= level

    def _keeps_the_rarer(self, one: Certificate, promise: Promise, level: float) -> bool:
        return binomial_tail(one.rarer_lost, one.rarer_sampled, promise.lost(one.covered, self.population)) <= level


def binomial_tail(most: int, trials: int, chance: float) -> float:
    """P(at most so many successes)."""
    return min(1.0, sum(comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(most + 1)))


def hypergeometric_tail(most: int, population: int, marked: int, drawn: int) -> float:
    """P(at most so many of the drawn are marked)."""
    if marked > population:
        return 0.0
    least = max(0, drawn + marked - population)
    ways = _log_comb(population, drawn)
    counts = range(least, min(most, drawn, marked) + 1)
    terms = (_log_comb(marked, k) + _log_comb(population - marked, drawn - k) for k in counts)
    return min(1.0, sum(exp(term - ways) for term in terms))


def _log_comb(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def shared_cut(passed: Sequence[Sequence[Certificate]], *, every: bool = True) -> int:
    """The widest cut that every feature has passed, where all are predicted on the same examples; without `every` the
    one at which most labels are predicted, of the features that have passed it. 0 if there is none.

    A cut that a feature passed before its last one is certified too."""
    counted = Counter(certificate.covered for certificates in passed for certificate in certificates)
    cuts = [cut for cut, features in counted.items() if features == len(passed) or not every]
    return max(cuts, key=lambda cut: (cut * counted[cut], cut), default=0)
