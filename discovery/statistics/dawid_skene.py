"""Labels from many workers of unknown skill: expectation maximisation over each worker's two error rates.

A. P. Dawid and A. M. Skene 1979, "Maximum likelihood estimation of observer error-rates using the EM algorithm"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.questions import UNKNOWN, Labels

Floats = NDArray[np.float64]
ITERATIONS = 1_000
TOLERANCE = 1e-12  # of the log likelihood, per vote
ENOUGH_TO_LABEL = 1e-7  # where only the labels count, not the rates
FLOOR = 1e-10  # no worker is certain: a rate of exactly 0 could never be revised
FEWEST_WORKERS = 3  # with two, any share of yes explains the votes equally well


@dataclass(frozen=True, eq=False)
class Consensus:
    probability: Floats  # of yes, per example; NaN without votes
    sensitivity: Floats  # per worker: says yes where it is yes; NaN where the worker never voted
    specificity: Floats  # per worker: says no where it is no
    share: float  # of yes
    iterations: int
    converged: bool

    @property
    def labels(self) -> Labels:
        known = ~np.isnan(self.probability)
        sides = np.where(known & (self.probability > 0.5), np.int8(1), np.int8(0))
        return np.where(known & (self.probability != 0.5), sides, np.int8(UNKNOWN)).astype(np.int8)


def why_not(votes: NDArray[np.int8]) -> str:
    """Why there is no consensus of these votes (examples × workers); empty where there is one."""
    workers = int((votes != UNKNOWN).any(0).sum())
    if workers < FEWEST_WORKERS:
        voted = "1 worker voted" if workers == 1 else f"{workers} workers voted"
        return f"{voted}, and it takes {FEWEST_WORKERS} to tell good ones from bad ones"
    if not ((votes != UNKNOWN).sum(1) > 1).any():
        return "no example has two votes"
    return ""


def dawid_skene(votes: NDArray[np.int8], tolerance: float = TOLERANCE) -> Consensus:
    """`votes` are examples × workers: 1, 0 or UNKNOWN. Begins with the majority, which decides which side is yes."""
    yes, no = (votes == 1).astype(np.float64), (votes == 0).astype(np.float64)
    cast = (yes + no).sum(1)
    voted = cast > 0
    belief = np.full(len(votes), 0.5)
    np.divide(yes.sum(1), cast, out=belief, where=voted)
    before, iterations, converged = -np.inf, 0, False
    while not converged and iterations < ITERATIONS:
        iterations += 1
        share = float(np.clip(belief[voted].mean(), FLOOR, 1 - FLOOR)) if voted.any() else 0.5
        sensitivity, specificity = _rates(yes, no, belief * voted), _rates(no, yes, (1 - belief) * voted)
        for_yes = yes @ np.log(sensitivity) + no @ np.log1p(-sensitivity) + np.log(share)
        for_no = no @ np.log(specificity) + yes @ np.log1p(-specificity) + np.log1p(-share)
        together = np.logaddexp(for_yes, for_no)
        belief = np.where(voted, np.exp(for_yes - together), 0.5)
        likelihood = float(together[voted].sum())
        converged = bool(likelihood - before <= tolerance * max(cast.sum(), 1.0))
        before = likelihood
    absent = cast_by_worker(votes) == 0
    return Consensus(
        probability=np.where(voted, belief, np.nan),
        sensitivity=np.where(absent, np.nan, sensitivity),
        specificity=np.where(absent, np.nan, specificity),
        share=share,
        iterations=iterations,
        converged=converged,
    )


def cast_by_worker(votes: NDArray[np.int8]) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = (votes != UNKNOWN).sum(0)
    return counts


def _rates(right: Floats, wrong: Floats, weight: Floats) -> Floats:
    """Of each worker's votes on the examples of one side, weighted by belief, the share that is right."""
    hits, misses = weight @ right, weight @ wrong
    rates = np.divide(hits, hits + misses, out=np.full(right.shape[1], 0.5), where=hits + misses > 0)
    clipped: Floats = np.clip(rates, FLOOR, 1 - FLOOR)
    return clipped
